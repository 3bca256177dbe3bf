package handler

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"paidonce/store"
)

// Reconciliation is what the handler needs of the store for it.
type Reconciliation interface {
	RequestRun(ctx context.Context, since store.Time, reason string) (int64, error)
	Reports(ctx context.Context, limit int) ([]store.RunReport, error)
	Report(ctx context.Context, run int64) (store.RunReport, error)
	AwaitRun(ctx context.Context, run int64) (store.RunReport, error)
}

// requestRun is POST /v1/reconcile {"since"?}: a run, now. 200 has its report;
// 202 is not over yet, and GET /v1/reconcile/{id} tells how far it is.
func (h *Handler) requestRun(c call) (answer, error) {
	var since store.Time
	if len(c.body) > 0 {
		err := readObject(c.body, members{"since": func(in input) {
			var text string
			in.text(&text)
			t, err := time.Parse(time.RFC3339, text)
			if text != "" && (err != nil || t.UnixMilli() <= 0) {
				in.wrong("must be a time in RFC 3339, such as 2026-11-30T12:00:00Z")
				return
			}
			if text != "" {
				since = store.At(t)
			}
		}})
		if err != nil {
			return answer{}, err
		}
	}
	id, err := h.store.RequestRun(c.ctx, since, "api")
	if err != nil {
		return answer{}, err
	}
	ctx, cancel := context.WithTimeout(c.client, stripeWait)
	defer cancel()
	defer context.AfterFunc(h.serving, cancel)()
	report, err := h.store.AwaitRun(ctx, id)
	if err != nil {
		return answer{}, err
	}
	status := http.StatusAccepted
	if report.Over() {
		status = http.StatusOK
	}
	return reply(status, report)
}

// listRuns is GET /v1/reconcile: the newest reports.
func (h *Handler) listRuns(c call) (answer, error) {
	q := filters{params: c.params}
	limit := q.limit()
	if err := q.err(); err != nil {
		return answer{}, err
	}
	reports, err := h.store.Reports(c.ctx, limit)
	if err != nil {
		return answer{}, err
	}
	return reply(http.StatusOK, store.Page[store.RunReport]{Items: reports})
}

// showRun is GET /v1/reconcile/{id}.
func (h *Handler) showRun(c call) (answer, error) {
	id, err := strconv.ParseInt(c.id, 10, 64)
	if err != nil {
		return answer{}, notFound()
	}
	report, err := h.store.Report(c.ctx, id)
	if err != nil {
		return answer{}, err
	}
	return reply(http.StatusOK, report)
}
