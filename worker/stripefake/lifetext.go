package stripefake

import (
	"fmt"
	"strings"
)

// String prints the life small: enough to see what went wrong, and the seed to
// have it again.
func (l Life) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "life %d: %s, release %d, failure lowers %t, bare disputes %t, settles in %q\n",
		l.Seed, l.World.APIVersion, l.World.Release, l.World.FailureLowers, l.World.BareDisputes, l.World.Settlement)
	for _, o := range l.Orders {
		fmt.Fprintf(&b, "  order %s: %d %s %s", o.ID, o.Total, o.Currency, o.Policy)
		for _, part := range []struct {
			is   bool
			text string
		}{
			{o.AllowDiscount, "discount allowed"},
			{o.PaymentIntent != "", "only " + o.PaymentIntent},
			{len(o.Refs) > 0, "refs " + strings.Join(o.Refs, " ")},
			{o.Closed != 0, fmt.Sprintf("closed at %d", o.Closed-l.World.Start)},
			{o.Unregistered, "never registered"},
		} {
			if part.is {
				b.WriteString(", " + part.text)
			}
		}
		b.WriteString("\n")
	}
	for _, s := range l.Steps {
		fmt.Fprintf(&b, "  %d. %s\n", s.N, s)
	}
	for _, e := range l.Events {
		fmt.Fprintf(&b, "  %+d %s %s %s\n", e.Created-l.World.Start, e.Type, e.Object, e.ID)
	}
	if len(l.Lost) > 0 {
		fmt.Fprintf(&b, "  %d events lost\n", len(l.Lost))
	}
	return b.String()
}

func (s Step) String() string {
	text := string(s.Act)
	if s.Wait != 0 {
		text = fmt.Sprintf("after %d s: %s", s.Wait, text)
	}
	if o := s.Opening; o != nil {
		text += fmt.Sprintf(" %d %s %s", o.Pricing.Total(), o.Currency, o.Method.name())
		for _, part := range []struct{ name, value string }{
			{"link", o.Link}, {"reference", o.Reference}, {"session names", o.OnSession}, {"intent names", o.OnIntent},
		} {
			if part.value != "" {
				text += ", " + part.name + " " + part.value
			}
		}
		if o.Manual {
			text += ", held"
		}
		if p := o.Pricing; p.Subtotal != p.Total() {
			text += fmt.Sprintf(" (%d -%d +%d +%d)", p.Subtotal, p.Discount, p.Shipping, p.Tax)
		}
		return text
	}
	text += fmt.Sprintf(" (%d)", s.On)
	if s.Amount != 0 {
		text += fmt.Sprintf(" %d", s.Amount)
	}
	if s.Gap != 0 {
		text += fmt.Sprintf(", the session %d s later", s.Gap)
	}
	return text
}
