package handler

import (
	"net/http"
	"net/url"

	"paidonce/store"
	"paidonce/store/payment"
)

var orderStatuses = []string{
	string(payment.StatusAwaitingPayment), string(payment.StatusProcessing), string(payment.StatusAuthorized),
	string(payment.StatusPaymentFailed), string(payment.StatusExpired), string(payment.StatusCanceled),
	string(payment.StatusPaid), string(payment.StatusPartiallyRefunded), string(payment.StatusRefundPending),
	string(payment.StatusRefunded), string(payment.StatusDisputed), string(payment.StatusChargedBack),
}

// attentionWords are what ?attention= takes: "any", and the words of design.md §7.
var attentionWords = []string{
	"any", payment.AttentionAmountMismatch, payment.AttentionCurrencyMismatch, payment.AttentionOrderConflict,
	payment.AttentionContradiction, payment.AttentionDoublePayment, payment.AttentionPaidAfterClose,
	payment.AttentionRefundFailed, payment.AttentionDisputeInquiry, payment.AttentionDisputeNeedsResponse,
	payment.AttentionUnderpaid, payment.AttentionOverpaid, "oversold", "effect_failed",
}

// registerOrder is POST /v1/orders. The same order again is 200. With checkout,
// the answer waits for the URL: without one yet it is 202, and the same POST
// again gives it.
func (h *Handler) registerOrder(c call) (answer, error) {
	var n store.NewOrder
	fields := orderFields(&n)
	fields["id"] = func(in input) { in.text(&n.ID) }
	fields["tenant"] = func(in input) { in.text(&n.Tenant) }
	fields["payment_intent"] = set(&n.PaymentIntent, input.text)
	fields["refs"] = func(in input) {
		in.list(func(in input) {
			var ref string
			in.text(&ref)
			n.Refs = append(n.Refs, ref)
		})
	}
	fields["checkout"] = set(&n.Checkout, func(in input, urls *store.Checkout) { in.object(checkoutFields(urls)) })
	if err := readObject(c.body, fields); err != nil {
		return answer{}, err
	}
	switch asked := c.params.Get("tenant"); {
	case n.Tenant == "":
		n.Tenant = c.tenant()
	case asked != "" && asked != n.Tenant:
		return answer{}, invalid([]store.FieldProblem{{Field: "tenant", Problem: "is another one than in the URL"}})
	}
	o, created, err := h.store.RegisterOrder(c.ctx, n)
	if err != nil {
		return answer{}, err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	var a answer
	if n.Checkout == nil {
		a, err = reply(status, o)
	} else {
		a, err = h.firstCheckout(c, o, status)
	}
	if err == nil && created {
		location := "/v1/orders/" + url.PathEscape(o.ID)
		if o.Tenant != mainTenant {
			location += "?" + url.Values{"tenant": {o.Tenant}}.Encode()
		}
		a.set("Location", location)
	}
	return a, err
}

// orderFields reads into n what both a registration and an edit may hold.
func orderFields(n *store.NewOrder) members {
	return members{
		"total_minor":    set(&n.TotalMinor, input.integer),
		"currency":       set(&n.Currency, input.text),
		"amount_policy":  set(&n.AmountPolicy, input.text),
		"allow_discount": set(&n.AllowDiscount, input.boolean),
		"items": func(in input) {
			n.Items = []store.Item{} // given, if empty
			in.list(func(in input) {
				var it store.Item
				in.object(members{
					"sku":        func(in input) { in.text(&it.SKU) },
					"name":       func(in input) { in.text(&it.Name) },
					"quantity":   func(in input) { in.integer(&it.Quantity) },
					"unit_minor": func(in input) { in.integer(&it.UnitMinor) },
				})
				n.Items = append(n.Items, it)
			})
		},
		"customer": set(&n.Customer, func(in input, c *store.Customer) {
			in.object(members{
				"email": func(in input) { in.text(&c.Email) },
				"name":  func(in input) { in.text(&c.Name) },
			})
		}),
		"metadata": func(in input) { n.Metadata = in.strings() },
	}
}

// editOrder is PATCH /v1/orders/{id}.
func (h *Handler) editOrder(c call) (answer, error) {
	var n store.NewOrder
	fields := orderFields(&n)
	for _, name := range []string{"id", "tenant", "payment_intent", "refs", "checkout"} {
		fields[name] = func(in input) { in.wrong("cannot be changed") }
	}
	if err := readObject(c.body, fields); err != nil {
		return answer{}, err
	}
	o, err := h.store.EditOrder(c.ctx, c.tenant(), c.id, n)
	if err != nil {
		return answer{}, err
	}
	return reply(http.StatusOK, o)
}

// linkOrder is POST /v1/orders/{id}/link {"object"}.
func (h *Handler) linkOrder(c call) (answer, error) {
	object, err := oneText(c.body, "object")
	if err != nil {
		return answer{}, err
	}
	o, err := h.store.LinkOrder(c.ctx, c.tenant(), c.id, object)
	if err != nil {
		return answer{}, err
	}
	return reply(http.StatusOK, o)
}

// acceptPayment is POST /v1/orders/{id}/accept {"payment"}.
func (h *Handler) acceptPayment(c call) (answer, error) {
	object, err := oneText(c.body, "payment")
	if err != nil {
		return answer{}, err
	}
	o, err := h.store.AcceptPayment(c.ctx, c.tenant(), c.id, object)
	if err != nil {
		return answer{}, err
	}
	return reply(http.StatusOK, o)
}

// ackAttention is POST /v1/orders/{id}/ack {"attention","note"}. The note may
// be left out.
func (h *Handler) ackAttention(c call) (answer, error) {
	var word, note string
	err := readObject(c.body, members{
		"attention": func(in input) { in.text(&word) },
		"note":      func(in input) { in.text(&note) },
	})
	if err != nil {
		return answer{}, err
	}
	if word == "" {
		return answer{}, invalid([]store.FieldProblem{{Field: "attention", Problem: "is required: a word that the order shows, such as double_payment"}})
	}
	return replyOrder(h.store.AckAttention(c.ctx, c.tenant(), c.id, word, note))
}

// fulfilOrder is POST /v1/orders/{id}/fulfil. It needs no body.
func (h *Handler) fulfilOrder(c call) (answer, error) {
	if err := noFields(c.body); err != nil {
		return answer{}, err
	}
	return replyOrder(h.store.FulfilOrder(c.ctx, c.tenant(), c.id))
}

// forgetOrder is POST /v1/orders/{id}/forget. It needs no body.
func (h *Handler) forgetOrder(c call) (answer, error) {
	if err := noFields(c.body); err != nil {
		return answer{}, err
	}
	return replyOrder(h.store.ForgetOrder(c.ctx, c.tenant(), c.id))
}

// replyOrder answers with an order as it stands after an act.
func replyOrder(o store.Order, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	return reply(http.StatusOK, o)
}

// oneText reads a body that holds one required string.
func oneText(body []byte, name string) (string, error) {
	var text string
	if err := readObject(body, members{name: func(in input) { in.text(&text) }}); err != nil {
		return "", err
	}
	if text == "" {
		return "", invalid([]store.FieldProblem{{Field: name, Problem: "is required: a Stripe id such as pi_…"}})
	}
	return text, nil
}

// showOrder is GET /v1/orders/{id}.
func (h *Handler) showOrder(c call) (answer, error) {
	o, err := h.store.FindOrder(c.ctx, c.tenant(), c.id)
	if err != nil {
		return answer{}, err
	}
	return reply(http.StatusOK, o)
}

// listOrders is GET /v1/orders.
func (h *Handler) listOrders(c call) (answer, error) {
	q := filters{params: c.params}
	f := store.OrderFilter{
		Tenant: c.tenant(), Status: q.word("status", orderStatuses), Attention: q.word("attention", attentionWords),
		Query: c.params.Get("q"), Limit: q.limit(), Cursor: c.params.Get("cursor"),
	}
	if err := q.err(); err != nil {
		return answer{}, err
	}
	page, err := h.store.ListOrders(c.ctx, f)
	if err != nil {
		return answer{}, err
	}
	return reply(http.StatusOK, page)
}
