package handler

import (
	"net/http"

	"paidonce/store"
)

var (
	effectStatuses = []string{"pending", "sending", "done", "failed", "unknown", "canceled", "held"}
	effectKinds    = []string{store.KindHTTP, store.KindEmail, store.KindExec, store.KindStripe}
)

// listEffects is GET /v1/effects.
func (h *Handler) listEffects(c call) (answer, error) {
	q := filters{params: c.params}
	f := store.EffectFilter{
		Status: q.word("status", effectStatuses), Kind: q.word("kind", effectKinds), Target: c.params.Get("target"),
		Order: c.params.Get("order"), Tenant: c.tenant(), Limit: q.limit(), Cursor: c.params.Get("cursor"),
	}
	if err := q.err(); err != nil {
		return answer{}, err
	}
	page, err := h.store.ListEffects(c.ctx, f)
	if err != nil {
		return answer{}, err
	}
	return reply(http.StatusOK, page)
}

// showEffect is GET /v1/effects/{id}.
func (h *Handler) showEffect(c call) (answer, error) {
	return replyEffect(h.store.FindEffect(c.ctx, c.id))
}

// retryEffect is POST /v1/effects/{id}/retry. It needs no body, and does not
// wait for what comes of it.
func (h *Handler) retryEffect(c call) (answer, error) {
	if err := noFields(c.body); err != nil {
		return answer{}, err
	}
	return replyEffect(h.store.RetryEffect(c.ctx, c.id))
}

// resolveEffect is POST /v1/effects/{id}/resolve {"outcome","note"}. The note
// may be left out.
func (h *Handler) resolveEffect(c call) (answer, error) {
	var outcome, note string
	err := readObject(c.body, members{
		"outcome": func(in input) { in.text(&outcome) },
		"note":    func(in input) { in.text(&note) },
	})
	if err != nil {
		return answer{}, err
	}
	return replyEffect(h.store.ResolveEffect(c.ctx, c.id, outcome, note))
}

// replyEffect answers with an effect as it stands.
func replyEffect(d store.EffectDetail, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	return reply(http.StatusOK, d)
}

// refundOrder is POST /v1/orders/{id}/refund {"amount_minor","payment","reason",
// "request_id"}. 202 has the effect; the same request id again has it as it
// stands then.
func (h *Handler) refundOrder(c call) (answer, error) {
	var r store.RefundRequest
	err := readObject(c.body, members{
		"amount_minor": set(&r.AmountMinor, input.integer),
		"payment":      func(in input) { in.text(&r.Payment) },
		"reason":       func(in input) { in.text(&r.Reason) },
		"request_id":   func(in input) { in.text(&r.RequestID) },
	})
	if err != nil {
		return answer{}, err
	}
	if r.RequestID == "" {
		return answer{}, invalid([]store.FieldProblem{{Field: "request_id",
			Problem: "is required: an id of yours for this refund, so that the same request again is the same refund"}})
	}
	e, err := h.store.RequestRefund(c.ctx, c.tenant(), c.id, r)
	if err != nil {
		return answer{}, err
	}
	return reply(http.StatusAccepted, e)
}
