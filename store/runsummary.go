package store

import (
	"fmt"
	"strings"
	"time"
)

// summarize is the sentence that a shop owner wants.
func (r RunReport) summarize() string {
	if r.State == "failed" {
		return fmt.Sprintf("not finished: %s; %d events read, %d of them new; it goes on from there", r.Error, r.EventsSeen, r.EventsNew)
	}
	missing := fmt.Sprintf("%d missing", r.EventsNew)
	if r.EventsNew > 0 && !r.DryRun {
		missing += " and brought in"
	}
	said := []string{
		fmt.Sprintf("%d %s at Stripe, %d here, %s", r.EventsSeen, plural(r.EventsSeen, "event"), r.EventsSeen-r.EventsNew, missing),
		fmt.Sprintf("%d %s, %s", r.PaymentsSeen, plural(r.PaymentsSeen, "payment"), r.toldSums()),
	}
	changed, open := 0, 0
	for _, d := range r.Differences {
		switch {
		case d.What == DifferenceObject:
			changed++
		case d.What == DifferenceGone:
			open++
		}
	}
	if changed > 0 {
		text := fmt.Sprintf("%d %s had moved without an event", changed, plural(int64(changed), "object"))
		if !r.DryRun {
			text += ", brought in"
		}
		said = append(said, text)
	}
	if open > 0 {
		said = append(said, fmt.Sprintf("%d %s unknown at Stripe", open, plural(int64(open), "id")))
	}
	for _, g := range r.Gaps {
		said = append(said, "Stripe lists no events from "+day10(g.From)+" to "+day10(g.To)+" any more")
	}
	return strings.Join(said, "; ")
}

func (r RunReport) toldSums() string {
	var differ []string
	for _, d := range r.Sums {
		if d.StripeMinor != d.BooksMinor {
			differ = append(differ, fmt.Sprintf("%s %s: Stripe %d, books %d (minor units)", d.Day, d.Currency, d.StripeMinor, d.BooksMinor))
		}
	}
	if len(differ) == 0 {
		return "sums equal"
	}
	if len(differ) > 3 {
		differ = append(differ[:3], "…")
	}
	return "sums differ: " + strings.Join(differ, ", ")
}

func plural(n int64, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}

func day10(t Time) string { return t.Std().Format(time.DateOnly) }
