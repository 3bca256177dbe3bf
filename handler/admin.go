package handler

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

const (
	// maxRequest bounds the body of an admin request.
	maxRequest = 1 << 20
	// readyWait is how slow a write may be before we say that we are not
	// ready: those who ask do so every few seconds.
	readyWait = 2 * time.Second
)

const codeUnauthorized = "unauthorized"

// call is one request to the admin API, on its way through a route.
type call struct {
	ctx    context.Context // of what the store is asked: it outlives a client that leaves
	client context.Context // done when the client has left
	id     string          // the {id} of the path, unescaped
	body   []byte          // as it came
	params url.Values
}

// route is one method of one path. takes are the query parameters it knows:
// a misspelt filter must not list everything.
type route struct {
	method string
	path   []string // segments; "{id}" is any one
	takes  []string
	run    func(call) (answer, error)
}

func (h *Handler) adminRoutes() []route {
	tenant, scope := []string{"tenant"}, []string{"scope"}
	var routes []route
	add := func(method, path string, takes []string, run func(call) (answer, error)) {
		routes = append(routes, route{method, strings.Split(path, "/")[1:], takes, run})
	}
	add("POST", "/v1/orders", tenant, h.registerOrder)
	add("GET", "/v1/orders", []string{"tenant", "status", "attention", "q", "limit", "cursor"}, h.listOrders)
	add("GET", "/v1/orders/{id}", tenant, h.showOrder)
	add("PATCH", "/v1/orders/{id}", tenant, h.editOrder)
	add("POST", "/v1/orders/{id}/link", tenant, h.linkOrder)
	add("POST", "/v1/orders/{id}/accept", tenant, h.acceptPayment)
	add("POST", "/v1/orders/{id}/ack", tenant, h.ackAttention)
	add("POST", "/v1/orders/{id}/fulfil", tenant, h.fulfilOrder)
	add("POST", "/v1/orders/{id}/forget", tenant, h.forgetOrder)
	add("POST", "/v1/orders/{id}/refund", tenant, h.refundOrder)
	add("POST", "/v1/orders/{id}/checkout", tenant, h.checkoutOrder)
	add("POST", "/v1/orders/{id}/cancel", tenant, h.cancelOrder)
	add("GET", "/v1/effects", []string{"tenant", "status", "kind", "target", "order", "limit", "cursor"}, h.listEffects)
	add("GET", "/v1/effects/{id}", nil, h.showEffect)
	add("POST", "/v1/effects/{id}/retry", nil, h.retryEffect)
	add("POST", "/v1/effects/{id}/resolve", nil, h.resolveEffect)
	add("GET", "/v1/events", []string{"tenant", "status", "verdict", "type", "order", "source", "limit", "cursor"}, h.listEvents)
	add("GET", "/v1/events/{id}", scope, h.showEvent)
	add("POST", "/v1/events/{id}/requeue", scope, h.requeueEvent)
	add("POST", "/v1/events/{id}/dismiss", scope, h.dismissEvent)
	add("POST", "/v1/reconcile", nil, h.requestRun)
	add("GET", "/v1/reconcile", []string{"limit"}, h.listRuns)
	add("GET", "/v1/reconcile/{id}", nil, h.showRun)
	add("GET", "/v1/stats", nil, h.stats)
	return routes
}

// Admin answers the listener of the shop and its operator. All of it but
// /healthz and /readyz is behind the token, unknown paths too: without it
// nothing can be learned.
func (h *Handler) Admin() http.Handler {
	return h.serve("admin", func(w http.ResponseWriter, r *http.Request) (answer, error) {
		at := r.URL.EscapedPath()
		switch at {
		case "/healthz":
			return h.health(r)
		case "/readyz":
			return h.readiness(r)
		}
		if !h.authorized(r) {
			h.quiet.say(slog.LevelWarn, "admin request without the token", "", "", "status", http.StatusUnauthorized)
			return answer{}, &failure{status: http.StatusUnauthorized, code: codeUnauthorized,
				message: "send the admin token as Authorization: Bearer TOKEN"}
		}
		rt, id, err := h.find(r.Method, at)
		if err != nil {
			return answer{}, err
		}
		params, err := readParams(r.URL.RawQuery, rt.takes)
		if err != nil {
			return answer{}, err
		}
		body, err := h.bodies.readBody(w, r, maxRequest)
		if err != nil {
			return answer{}, err
		}
		defer body.release()
		// A client that leaves does not undo half of what it asked for.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), commitWait)
		defer cancel()
		return rt.run(call{ctx: ctx, client: r.Context(), id: id, body: body.bytes, params: params})
	})
}

// authorized reports whether r carries the admin token. Hashes are compared, in
// constant time, so that neither the token's text nor its length leaks.
func (h *Handler) authorized(r *http.Request) bool {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	sum := sha256.Sum256([]byte(strings.TrimSpace(token)))
	return subtle.ConstantTimeCompare(sum[:], h.token[:]) == 1 && strings.EqualFold(scheme, "Bearer")
}

// find returns the route for a path as it was sent: segments are split before
// they are unescaped, so that an id may hold a slash.
func (h *Handler) find(method, at string) (route, string, error) {
	segments := strings.Split(at, "/")[1:]
	for i, s := range segments {
		var err error
		if segments[i], err = url.PathUnescape(s); err != nil || segments[i] == "" {
			return route{}, "", notFound()
		}
	}
	if method == http.MethodHead {
		method = http.MethodGet // net/http leaves the body out
	}
	var allow []string
	for _, rt := range h.routes {
		id, ok := rt.match(segments)
		if !ok {
			continue
		}
		if rt.method == method {
			return rt, id, nil
		}
		allow = append(allow, rt.method)
		if rt.method == http.MethodGet {
			allow = append(allow, http.MethodHead)
		}
	}
	if allow == nil {
		return route{}, "", notFound()
	}
	slices.Sort(allow)
	return route{}, "", methodNotAllowed(strings.Join(allow, ", "))
}

func (rt route) match(segments []string) (id string, ok bool) {
	if len(segments) != len(rt.path) {
		return "", false
	}
	for i, want := range rt.path {
		switch want {
		case "{id}":
			id = segments[i]
		case segments[i]:
		default:
			return "", false
		}
	}
	return id, true
}

// health says that the process answers.
func (h *Handler) health(r *http.Request) (answer, error) {
	if err := onlyGet(r); err != nil {
		return answer{}, err
	}
	return reply(http.StatusOK, map[string]string{"status": "ok"})
}

// readiness says whether a webhook would be stored now.
func (h *Handler) readiness(r *http.Request) (answer, error) {
	if err := onlyGet(r); err != nil {
		return answer{}, err
	}
	if h.draining() {
		return answer{}, unavailable("the service is shutting down", "shutting down", nil)
	}
	ctx, cancel := context.WithTimeout(r.Context(), readyWait)
	defer cancel()
	if err := h.store.Ready(ctx); err != nil {
		return answer{}, unavailable("the database takes no writes now", "not ready", err)
	}
	return reply(http.StatusOK, map[string]string{"status": "ready"})
}

func onlyGet(r *http.Request) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return methodNotAllowed("GET, HEAD")
	}
	return nil
}
