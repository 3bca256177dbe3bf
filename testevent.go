package main

import (
	"crypto/rand"
	"crypto/sha256"
	"embed"
	"encoding/base32"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"paidonce/store"
	"paidonce/store/payment"
)

// templates are the built-in events, one file a type, in the shapes that
// Stripe sends in 2025. In each of them the payment is 20.00 USD.
//
//go:embed testdata/events/*.json
var templates embed.FS

// templateID ends every id in the templates, so that the ids of one payment
// belong together: pi_X has the charge ch_X, the session cs_test_X, and so on.
const templateID = "3SExample000000000000000"

// templateTypes lists the event types that send knows by itself.
func templateTypes() []string {
	files, err := templates.ReadDir("testdata/events")
	if err != nil { // they are part of the program
		panic(err)
	}
	var types []string
	for _, f := range files {
		types = append(types, strings.TrimSuffix(f.Name(), ".json"))
	}
	slices.Sort(types)
	return types
}

// testEvent is an event to be sent: what it starts from and what is changed.
type testEvent struct {
	body     []byte // a template or a file
	template bool
	live     bool
	order    *store.OrderDetail // nil is none
	age      time.Duration      // how long ago it occurred
	aged     bool               // age was asked for
	sets     []string           // PATH=VALUE
}

// bytes makes the body. One call makes one event: fresh ids, unless an order
// or a setting says which. A file that nothing is asked of goes out as it is.
func (t testEvent) bytes(now time.Time) ([]byte, error) {
	if !t.template && t.order == nil && !t.aged && len(t.sets) == 0 {
		return t.body, nil
	}
	body := t.body
	if t.template {
		body = []byte(t.renamer().Replace(string(body)))
	}
	root, err := parseJSON(body)
	if err != nil {
		return nil, fmt.Errorf("the file is no strict JSON and cannot be edited; without --set, --order and --age it is sent as it is: %s", cut(err.Error()))
	}
	if root.kind != '{' {
		return nil, errors.New("the file is no JSON object and cannot be edited; without --set, --order and --age it is sent as it is")
	}
	if t.template {
		err = errors.Join(
			root.set([]string{"id"}, textNode("evt_3S"+rand.Text()[:22])),
			root.set([]string{"livemode"}, boolNode(t.live)))
		if n := root.at("data", "object", "livemode"); n != nil {
			*n = *boolNode(t.live)
		}
	}
	if t.template || t.aged {
		if created, ok := root.at("created").integer(); ok {
			shift(root, now.Add(-t.age).Unix()-created)
		}
	}
	if t.order != nil {
		err = errors.Join(err, nameOrder(root, &t.order.Order))
	}
	for _, s := range t.sets {
		path, value, _ := strings.Cut(s, "=")
		if e := root.set(strings.Split(path, "."), jsonOrText(value)); e != nil {
			err = errors.Join(err, fmt.Errorf("--set %s: %w", path, e))
		}
	}
	if err != nil {
		return nil, err
	}
	return root.format()
}

// renamer gives the objects of a template their ids. Those of an order follow
// from its id, and give way to the ids that it already has: so a refund that
// is sent later is one of the payment that was sent before, and not of a
// second payment.
func (t testEvent) renamer() *strings.Replacer {
	suffix := "3S" + rand.Text()[:22]
	var known map[payment.Kind]string
	if t.order != nil {
		sum := sha256.Sum256([]byte(t.order.Tenant + "\x00" + t.order.ID))
		suffix = "3S" + base32.StdEncoding.EncodeToString(sum[:])[:22]
		known = idsOf(t.order)
	}
	session := "cs_test_" + suffix
	if t.live {
		session = "cs_live_" + suffix
	}
	var pairs []string
	for _, k := range []struct {
		kind    payment.Kind
		old, id string
	}{
		{payment.KindSession, "cs_test_", session},
		{payment.KindPaymentIntent, "pi_", "pi_" + suffix},
		{payment.KindCharge, "ch_", "ch_" + suffix},
	} {
		id := k.id
		if had := known[k.kind]; had != "" {
			id = had
		}
		pairs = append(pairs, k.old+templateID, id)
	}
	return strings.NewReplacer(append(pairs, templateID, suffix)...)
}

// idsOf returns the ids of one payment of the order: of an accepted one if
// there is one, and of the registered payment intent before all.
func idsOf(o *store.OrderDetail) map[payment.Kind]string {
	kinds := map[string]payment.Kind{}
	for _, f := range o.Facts {
		kinds[f.ID] = f.Kind
	}
	ids := map[payment.Kind]string{}
	payments := slices.Clone(o.Payments)
	slices.SortStableFunc(payments, func(a, b store.PaymentView) int {
		switch {
		case a.Accepted == b.Accepted:
			return 0
		case a.Accepted:
			return -1
		}
		return 1
	})
	if len(payments) > 0 {
		for _, id := range payments[0].Objects {
			if kind, ok := kinds[id]; ok && ids[kind] == "" {
				ids[kind] = id
			}
		}
	}
	if o.PaymentIntent != "" {
		ids[payment.KindPaymentIntent] = o.PaymentIntent
	}
	return ids
}

// shift moves every instant of the event by the same number of seconds.
func shift(n *node, seconds int64) {
	for i, v := range n.values {
		if n.kind == '{' && slices.Contains([]string{"created", "expires_at", "due_by", "canceled_at", "available_on"}, n.names[i]) {
			if at, ok := v.integer(); ok {
				*v = *integerNode(at + seconds)
			}
		}
		shift(v, seconds)
	}
}

// amounts are the fields that stand for the whole payment, by the object's own
// word for itself. A field that is 0 in the event stays 0: nothing was received,
// captured or refunded.
var amounts = map[string][][]string{
	"payment_intent":   {{"amount"}, {"amount_received"}, {"amount_capturable"}},
	"checkout.session": {{"amount_total"}, {"amount_subtotal"}},
	"charge": {{"amount"}, {"amount_captured"}, {"amount_refunded"},
		{"payment_method_details", "card", "amount_authorized"},
		{"payment_method_details", "card", "overcapture", "maximum_amount_capturable"}},
	"refund":              {{"amount"}},
	"dispute":             {{"amount"}},
	"balance_transaction": {{"amount"}},
}

// nameOrder makes the event speak of the order: its id where the shop would
// have written it, its total and its currency.
func nameOrder(root *node, o *store.Order) error {
	object := root.at("data", "object")
	if object == nil || object.kind != '{' {
		return errors.New("the event has no data.object to name an order in")
	}
	setAmounts(object, o)
	switch object.at("object").text() {
	case "checkout.session":
		if err := object.set([]string{"client_reference_id"}, textNode(o.ID)); err != nil {
			return err
		}
		if o.TotalMinor == 0 && object.at("payment_status").text() == "paid" {
			// A free order: Stripe makes no payment intent.
			if err := errors.Join(object.set([]string{"payment_status"}, textNode("no_payment_required")),
				object.set([]string{"payment_intent"}, nullNode())); err != nil {
				return err
			}
		}
	case "payment_intent", "charge":
	default:
		return nil // refunds and disputes carry no metadata of the payment: its ids name the order
	}
	return object.set([]string{"metadata", "order_id"}, textNode(o.ID))
}

func setAmounts(object *node, o *store.Order) {
	for _, path := range amounts[object.at("object").text()] {
		n := object.at(path...)
		switch was, ok := n.integer(); {
		case !ok || was == 0:
		case was > 0:
			*n = *integerNode(o.TotalMinor)
		default: // money that leaves
			*n = *integerNode(-o.TotalMinor)
		}
	}
	if n := object.at("currency"); n != nil {
		*n = *textNode(o.Currency)
	}
	amount, hasAmount := object.at("amount").integer()
	fee, hasFee := object.at("fee").integer()
	if net := object.at("net"); net != nil && hasAmount && hasFee {
		*net = *integerNode(amount - fee)
	}
	if list := object.at("balance_transactions"); list != nil {
		for _, t := range list.values {
			setAmounts(t, o)
		}
	}
}

// jsonOrText reads the value of a --set: JSON if it is, else the text itself.
func jsonOrText(s string) *node {
	if n, err := parseJSON([]byte(s)); err == nil && jsontext.Value(s).IsValid() {
		return n
	}
	return textNode(s)
}
