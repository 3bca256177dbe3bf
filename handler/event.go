package handler

import (
	"net/http"

	"paidonce/store"
)

var (
	eventStatuses = []string{"pending", "done", "quarantined"}
	eventVerdicts = []string{
		"new", "retrying", "applied", "duplicate", "stale", "unlinked", "ignored", "routed", "amount_mismatch",
		"currency_mismatch", "order_conflict", "contradiction", "malformed", "too_many_attempts",
	}
)

// listEvents is GET /v1/events.
func (h *Handler) listEvents(c call) (answer, error) {
	q := filters{params: c.params}
	f := store.EventFilter{
		Status: q.word("status", eventStatuses), Verdict: q.word("verdict", eventVerdicts),
		Type: c.params.Get("type"), Order: c.params.Get("order"), Tenant: c.tenant(), Source: c.params.Get("source"),
		Limit: q.limit(), Cursor: c.params.Get("cursor"),
	}
	if err := q.err(); err != nil {
		return answer{}, err
	}
	page, err := h.store.ListEvents(c.ctx, f)
	if err != nil {
		return answer{}, err
	}
	return reply(http.StatusOK, page)
}

// showEvent is GET /v1/events/{event_id}.
func (h *Handler) showEvent(c call) (answer, error) {
	e, err := h.store.FindEvent(c.ctx, c.params.Get("scope"), c.id)
	if err != nil {
		return answer{}, err
	}
	return reply(http.StatusOK, e)
}

// requeueEvent is POST /v1/events/{event_id}/requeue. It needs no body.
func (h *Handler) requeueEvent(c call) (answer, error) {
	if err := noFields(c.body); err != nil {
		return answer{}, err
	}
	e, err := h.store.RequeueEvent(c.ctx, c.params.Get("scope"), c.id)
	if err != nil {
		return answer{}, err
	}
	h.wake()
	return reply(http.StatusOK, e)
}

// dismissEvent is POST /v1/events/{event_id}/dismiss {"note"}. The note may be
// left out, and so may the body.
func (h *Handler) dismissEvent(c call) (answer, error) {
	var note string
	if len(c.body) > 0 {
		if err := readObject(c.body, members{"note": func(in input) { in.text(&note) }}); err != nil {
			return answer{}, err
		}
	}
	e, err := h.store.DismissEvent(c.ctx, c.params.Get("scope"), c.id, note)
	if err != nil {
		return answer{}, err
	}
	return reply(http.StatusOK, e)
}

// stats is GET /v1/stats.
func (h *Handler) stats(c call) (answer, error) {
	s, err := h.store.Stats(c.ctx)
	if err != nil {
		return answer{}, err
	}
	return reply(http.StatusOK, s)
}

var _ Store = (*store.Store)(nil)
