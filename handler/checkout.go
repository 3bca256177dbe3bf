package handler

import (
	"context"
	"net/http"
	"strings"
	"time"

	"paidonce/store"
	"paidonce/store/payment"
)

// stripeWait is how long an answer waits for what serve does at Stripe
// (design.md §7). The request itself is on disk by then, and is carried out
// whoever waits.
const stripeWait = 10 * time.Second

// await returns an effect when it has come to an end or waits for a person. It
// returns the effect as it stands after stripeWait, when the client has left,
// and when the service shuts down.
func (h *Handler) await(c call, id string) (store.EffectDetail, error) {
	ctx, cancel := context.WithTimeout(c.client, stripeWait)
	defer cancel()
	defer context.AfterFunc(h.serving, cancel)()
	return h.store.AwaitEffect(ctx, id)
}

// orderAfter awaits an effect and reads its order again: the two belong
// together. The error is a Refusal if the effect came to nothing.
func (h *Handler) orderAfter(c call, tenant, id, effect string) (store.Order, store.EffectDetail, error) {
	d, err := h.await(c, effect)
	if err != nil {
		return store.Order{}, d, err
	}
	if p := Refusal(d); p != nil {
		return store.Order{}, d, p
	}
	// The time that c.ctx had may be used up by the wait.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), commitWait)
	defer cancel()
	o, err := h.store.FindOrder(ctx, tenant, id)
	return o.Order, d, err
}

// checkoutOrder is POST /v1/orders/{id}/checkout {"success_url","cancel_url"},
// or nothing for the addresses of the registration. 200 has the order with its
// checkout_url, which is null if there is nothing to pay any more; 202 is not
// yet.
func (h *Handler) checkoutOrder(c call) (answer, error) {
	var urls store.Checkout
	if len(c.body) > 0 {
		if err := readObject(c.body, checkoutFields(&urls)); err != nil {
			return answer{}, err
		}
	}
	asked := &urls
	if urls == (store.Checkout{}) {
		asked = nil
	}
	e, err := h.store.RequestCheckout(c.ctx, c.tenant(), c.id, asked)
	if err != nil {
		return answer{}, ownFields(err)
	}
	o, d, err := h.orderAfter(c, c.tenant(), c.id, e.ID)
	if err != nil {
		return answer{}, err
	}
	return replyCheckout(http.StatusOK, o, d.Status == "done")
}

func checkoutFields(urls *store.Checkout) members {
	return members{
		"success_url": func(in input) { in.text(&urls.SuccessURL) },
		"cancel_url":  func(in input) { in.text(&urls.CancelURL) },
	}
}

// ownFields names the fields of a checkout as the request of a checkout does:
// in a registration they stand inside one of that name.
func ownFields(err error) error {
	p, ok := store.AsProblem(err)
	if !ok || len(p.Fields) == 0 {
		return err
	}
	fields := make([]store.FieldProblem, len(p.Fields))
	for i, f := range p.Fields {
		f.Field = strings.TrimPrefix(f.Field, "checkout.")
		fields[i] = f
	}
	return invalid(fields)
}

// firstCheckout answers a registration that asks for a session: as status says
// with the URL, 202 without one yet.
func (h *Handler) firstCheckout(c call, o store.Order, status int) (answer, error) {
	known, err := h.store.FindOrder(c.ctx, o.Tenant, o.ID)
	if err != nil {
		return answer{}, err
	}
	effect := CheckoutEffect(known)
	if effect == "" {
		return replyCheckout(status, known.Order, true)
	}
	o, d, err := h.orderAfter(c, o.Tenant, o.ID, effect)
	if err != nil {
		return answer{}, err
	}
	return replyCheckout(status, o, d.Status == "done")
}

// CheckoutEffect is the effect by which an order that was registered with
// checkout has its URL or gets it; "" if the order tells all there is to know.
func CheckoutEffect(o store.OrderDetail) string {
	switch o.Status {
	case payment.StatusAwaitingPayment, payment.StatusPaymentFailed, payment.StatusExpired:
	default:
		return "" // there is nothing to pay
	}
	var e store.Effect // the newest one of its kind
	for _, effect := range o.Effects {
		if strings.HasPrefix(effect.Operation, store.OperationOpenCheckout+":") {
			e = effect
		}
	}
	if e.Status == "canceled" && o.CheckoutURL != "" {
		return "" // the session before it stands
	}
	return e.ID
}

// CheckoutOrder is an order whose checkout_url is there, if it is null.
type CheckoutOrder struct {
	store.Order
	CheckoutURL *string `json:"checkout_url"`
}

// NewCheckoutOrder is o with the URL that it has. Where a session is yet to be
// opened, it has none: that of a session before it is as good as closed.
func NewCheckoutOrder(o store.Order, opened bool) CheckoutOrder {
	c := CheckoutOrder{Order: o}
	if opened && o.CheckoutURL != "" {
		c.CheckoutURL = &o.CheckoutURL
	}
	return c
}

// replyCheckout answers with an order and where it is paid: 202 where that is
// yet to be opened.
func replyCheckout(status int, o store.Order, opened bool) (answer, error) {
	if !opened {
		status = http.StatusAccepted
	}
	return reply(status, NewCheckoutOrder(o, opened))
}

// cancelOrder is POST /v1/orders/{id}/cancel. It needs no body. 200 is closed,
// 202 not yet: Stripe is asked first.
func (h *Handler) cancelOrder(c call) (answer, error) {
	if err := noFields(c.body); err != nil {
		return answer{}, err
	}
	o, e, err := h.store.RequestCancel(c.ctx, c.tenant(), c.id)
	if err != nil || e == nil {
		return replyOrder(o, err)
	}
	o, d, err := h.orderAfter(c, c.tenant(), c.id, e.ID)
	if err != nil {
		return answer{}, err
	}
	if d.Status != "done" {
		return reply(http.StatusAccepted, o)
	}
	return reply(http.StatusOK, o)
}
