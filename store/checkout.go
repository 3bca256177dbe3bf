package store

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"paidonce/store/payment"
)

// checkCheckout checks where a Checkout Session is to send the buyer back to.
func checkCheckout(bad *problems, c *Checkout) {
	if c == nil {
		return
	}
	for _, f := range []struct {
		name, value string
		required    bool
	}{{"checkout.success_url", c.SuccessURL, true}, {"checkout.cancel_url", c.CancelURL, false}} {
		if f.value == "" && !f.required {
			continue
		}
		// Stripe fills in {CHECKOUT_SESSION_ID} itself.
		u, err := url.Parse(strings.ReplaceAll(f.value, "{CHECKOUT_SESSION_ID}", "cs_1"))
		if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" || len(f.value) > 2000 {
			bad.add(f.name, "must be an address such as https://shop.example/thanks")
		}
	}
}

// RequestCheckout queues a Checkout Session for an unpaid order: the sessions
// before it are expired first, so that only one can be paid. urls nil takes
// those of the registration. While one is on its way, that one is returned.
func (s *Store) RequestCheckout(ctx context.Context, tenant, id string, urls *Checkout) (Effect, error) {
	var bad problems
	checkCheckout(&bad, urls)
	if err := bad.invalid("checkout"); err != nil {
		return Effect{}, err
	}
	var effect Effect
	err := s.onOrder(ctx, "checkout", tenant, id, func(t *Tx, o Order, row int64) error {
		if id, err := underWay(t, row, OperationOpenCheckout); err != nil {
			return err
		} else if id != 0 {
			effect, err = viewEffect(t, id)
			return err
		}
		queued, err := s.openCheckout(t, o, row, urls)
		if err != nil {
			return err
		}
		if err := s.actEffect(t, "checkout", row, queued, "", ""); err != nil {
			return err
		}
		effect, err = viewEffect(t, queued)
		return err
	})
	return effect, err
}

// firstCheckout queues the session that a registration asks for. An order that
// its facts have paid already needs none.
func (s *Store) firstCheckout(t *Tx, row int64) error {
	o, err := viewOrder(t, row)
	if err != nil {
		return err
	}
	if err := s.needStripeKey(t, "checkout"); err != nil {
		if p, ok := AsProblem(err); ok {
			return &Problem{Code: CodeInvalid, Message: "invalid order: checkout: " + p.Message, Fields: []FieldProblem{{"checkout", p.Message}}}
		}
		return err
	}
	if o.PaidAt != 0 || o.Status != payment.StatusAwaitingPayment {
		return nil
	}
	_, err = s.openCheckout(t, o, row, nil)
	return err
}

// openCheckout queues the next session of an order.
func (s *Store) openCheckout(t *Tx, o Order, row int64, urls *Checkout) (int64, error) {
	switch o.Status {
	case payment.StatusAwaitingPayment, payment.StatusPaymentFailed, payment.StatusExpired:
	case payment.StatusCanceled:
		return 0, problem(CodeOrderClosed, "order %s is closed: register another one", o.ID)
	case payment.StatusProcessing, payment.StatusAuthorized:
		return 0, problem(CodePaymentUnderWay, "order %s is %s: a second session could be paid beside it", o.ID, o.Status)
	default:
		return 0, problem(CodeOrderPaid, "order %s is %s: there is nothing to pay", o.ID, o.Status)
	}
	if err := s.needStripeKey(t, "a Checkout Session"); err != nil {
		return 0, err
	}
	if urls == nil {
		var text string
		if _, err := one(t, `SELECT checkout FROM orders WHERE id = ?`, []any{row}, &text); err != nil {
			return 0, err
		}
		if text == "" {
			return 0, &Problem{Code: CodeInvalid, Message: "invalid checkout: checkout.success_url: is required, since the order was registered without one",
				Fields: []FieldProblem{{"checkout.success_url", "is required, since the order was registered without one"}}}
		}
		if err := json.Unmarshal([]byte(text), &urls); err != nil {
			return 0, fmt.Errorf("checkout of order %s: %w", o.ID, err)
		}
	}
	n, err := nextNumber(t, row, OperationOpenCheckout)
	if err != nil {
		return 0, err
	}
	return s.queueCall(t, o, row, fmt.Sprintf("%s:%d", OperationOpenCheckout, n), func(key string) any {
		call := CheckoutCall{Account: orderAccount(o.Tenant), SuccessURL: urls.SuccessURL, CancelURL: urls.CancelURL, Currency: o.Currency,
			Lines: checkoutLines(o), Email: o.Customer.Email, Metadata: callMetadata(key, o.ID)}
		if len(o.ID) <= 200 { // Stripe's limit
			call.Reference = o.ID
		}
		return call
	}, nil)
}

// checkoutLines are the order's items where they add up to its total, and else
// the order as one line: the buyer is to pay the total, and nothing else.
func checkoutLines(o Order) []CheckoutLine {
	var sum int64
	var lines []CheckoutLine
	for _, it := range o.Items {
		if it.UnitMinor > o.TotalMinor || it.UnitMinor > 0 && it.Quantity > o.TotalMinor/it.UnitMinor {
			return []CheckoutLine{{Name: "Order " + o.ID, UnitMinor: o.TotalMinor, Quantity: 1}}
		}
		sum += it.UnitMinor * it.Quantity
		name := it.Name
		if name == "" {
			name = it.SKU
		}
		lines = append(lines, CheckoutLine{Name: name, UnitMinor: it.UnitMinor, Quantity: it.Quantity})
	}
	if len(lines) == 0 || len(lines) > 100 || sum != o.TotalMinor {
		return []CheckoutLine{{Name: "Order " + o.ID, UnitMinor: o.TotalMinor, Quantity: 1}}
	}
	return lines
}

// checkoutURL is where the buyer pays: that of the newest session that was
// opened, while the order can still be paid there.
func checkoutURL(q querier, o Order, row int64) (string, error) {
	if o.Status != payment.StatusAwaitingPayment && o.Status != payment.StatusPaymentFailed {
		return "", nil
	}
	var text string
	ok, err := one(q, `SELECT result FROM effects WHERE order_id = ? AND operation LIKE ? || ':%' AND status = 'done' AND result <> ''
		ORDER BY id DESC LIMIT 1`, []any{row, OperationOpenCheckout}, &text)
	if err != nil || !ok {
		return "", err
	}
	var r CheckoutResult
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return "", fmt.Errorf("session of order %s: %w", o.ID, err)
	}
	return r.URL, nil
}
