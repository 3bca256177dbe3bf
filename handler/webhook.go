package handler

import (
	"context"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"time"
)

// commitWait is how long a request waits for its COMMIT. With what stands
// around it, a sender has its answer within 8 seconds (design.md §3).
const commitWait = 7500 * time.Millisecond

var background = context.Background()

// accepted is the answer to a webhook that is on disk.
type accepted struct {
	Status  string `json:"status"` // accepted | duplicate
	EventID string `json:"event_id"`
}

// Public answers the listener that senders reach: POST /webhooks/{source} and
// GET /healthz, and nothing else. It never redirects: a sender would follow
// with a GET, or not at all.
func (h *Handler) Public() http.Handler {
	return h.serve("public", func(w http.ResponseWriter, r *http.Request) (answer, error) {
		// The path as it was sent: there is one spelling of a URL, and no
		// cleaning makes another one out of it.
		at := r.URL.EscapedPath()
		if at == "/healthz" {
			return h.health(r)
		}
		name, ok := strings.CutPrefix(at, "/webhooks/")
		source := h.sources[name]
		switch {
		case ok && source != nil && r.Method == http.MethodPost:
			return h.webhook(w, r, source)
		case ok && source != nil:
			return answer{}, h.refuse(source.name, 0, methodNotAllowed(http.MethodPost))
		case under("/webhooks", at):
			return answer{}, h.refuse("", max(r.ContentLength, 0), &failure{status: http.StatusNotFound,
				code: "unknown_source", message: "there is no such source", reason: "unknown source"})
		}
		return answer{}, notFound()
	})
}

// under reports whether at is root or below it once its slashes are tidied up:
// a near miss of a webhook's URL is worth a line in the log.
func under(root, at string) bool {
	clean := path.Clean("/" + at)
	return clean == root || strings.HasPrefix(clean, root+"/")
}

// webhook takes one delivery for s.
func (h *Handler) webhook(w http.ResponseWriter, r *http.Request, s *configured) (answer, error) {
	if h.draining() {
		return answer{}, h.refuse(s.name, max(r.ContentLength, 0), shuttingDown())
	}
	body, err := h.bodies.readBody(w, r, s.maxBody)
	if err != nil {
		return answer{}, h.refuse(s.name, max(r.ContentLength, 0), err)
	}
	defer body.release()
	began := h.now()
	e, err := s.accept(r.Header, body.bytes, began)
	if err != nil {
		return answer{}, h.refuse(s.name, int64(len(body.bytes)), err)
	}
	e.Source, e.Via, e.Body = s.name, via(r), body.bytes
	// A client that leaves cancels nothing: its neighbours share the commit.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), commitWait)
	defer cancel()
	added, err := h.store.AddEvent(ctx, e)
	if err != nil {
		return answer{}, h.refuse(s.name, int64(len(body.bytes)), notStored(err))
	}
	if e.Via == "webhook" { // a test event of our own proves nothing of the sender
		h.rejects.accepted(s.name, began)
	}
	a := accepted{Status: "accepted", EventID: added.ID}
	switch {
	case added.Duplicate:
		a.Status = "duplicate"
	case e.Ignored == "":
		h.wake()
	}
	h.store.ObserveAck(h.now().Sub(began))
	h.log.LogAttrs(ctx, slog.LevelDebug, "handler: webhook "+a.Status,
		slog.String("event", added.ID), slog.String("source", s.name), slog.Int("status", http.StatusOK))
	return reply(http.StatusOK, a)
}

// via says how an event came. A test event of our own CLI is marked, so that
// it does not count as a sign of life from the sender.
func via(r *http.Request) string {
	if strings.HasPrefix(r.UserAgent(), "paidonce-send/") {
		return "send"
	}
	return "webhook"
}

// notStored is the answer when it is not known that the event is on disk. All
// errors of the store are 503 here, also those that would be its own fault:
// the sender comes again, and nothing is lost.
func notStored(cause error) error {
	return unavailable("the event may not be stored; send it again", "event not stored", cause)
}

func shuttingDown() error {
	return unavailable("the service is shutting down; send it again", "shutting down", nil)
}

// refuse notes which source err is about. A webhook that is turned away is
// counted and logged; what is our own fault (503) is logged by logFailure.
func (h *Handler) refuse(source string, size int64, err error) error {
	f := asFailure(err)
	f.source = source
	if f.status >= http.StatusInternalServerError {
		return f
	}
	reason := f.reason
	if reason == "" {
		reason = strings.ReplaceAll(f.code, "_", " ")
	}
	h.rejects.add(Reject{At: h.now().UTC(), Source: source, Code: f.code, Reason: reason, Size: size})
	h.quiet.say(slog.LevelWarn, "webhook refused", reason, source, "status", f.status, "reason", f.code)
	return f
}
