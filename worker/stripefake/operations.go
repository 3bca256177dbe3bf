package stripefake

import (
	"net/http"
	"slices"
	"strings"
	"sync"
)

// operation is one endpoint of the API.
type operation struct {
	method, path string // {id} stands for one segment
	params       []string
	// prepare reads the parameters; what is wrong with them it notes in the
	// form. Nothing has been executed by then, so a wrong request leaves its
	// idempotency key free.
	prepare func(c *call) work
	// platform operations are a platform's own: they need no Stripe-Account.
	platform bool
}

// work does what a call asks for, and returns what the API answers. It runs
// with the server's lock.
type work func(a *Account) (any, error)

func (o operation) name() string { return o.method + " " + o.path }

var pageParams = []string{"limit", "starting_after", "ending_before"}

var createdParams = []string{"created", "created[gt]", "created[gte]", "created[lt]", "created[lte]"}

// join is a list of parameters and more of them.
func join(lists ...[]string) []string { return slices.Concat(lists...) }

// operations are all endpoints that the fake has.
var operations = sync.OnceValue(func() []operation {
	expand := []string{"expand[#]"}
	objects := join(pageParams, createdParams, expand)
	return []operation{
		{method: "POST", path: "/v1/checkout/sessions", params: sessionParams, prepare: (*call).createSession},
		{method: "GET", path: "/v1/checkout/sessions", params: join(objects, []string{"payment_intent", "payment_link", "status"}), prepare: (*call).listSessions},
		{method: "GET", path: "/v1/checkout/sessions/{id}", params: expand, prepare: (*call).retrieveSession},
		{method: "GET", path: "/v1/checkout/sessions/{id}/line_items", params: pageParams, prepare: (*call).listLines},
		{method: "POST", path: "/v1/checkout/sessions/{id}/expire", params: expand, prepare: (*call).expireSession},

		{method: "GET", path: "/v1/payment_intents", params: objects, prepare: (*call).listIntents},
		{method: "GET", path: "/v1/payment_intents/{id}", params: expand, prepare: (*call).retrieveIntent},
		{method: "POST", path: "/v1/payment_intents/{id}/cancel", params: join(expand, []string{"cancellation_reason"}), prepare: (*call).cancelIntent},
		{method: "POST", path: "/v1/payment_intents/{id}/capture", params: join(expand, []string{"amount_to_capture"}), prepare: (*call).captureIntent},

		{method: "GET", path: "/v1/charges", params: join(objects, []string{"payment_intent"}), prepare: (*call).listCharges},
		{method: "GET", path: "/v1/charges/{id}", params: expand, prepare: (*call).retrieveCharge},

		{method: "POST", path: "/v1/refunds", params: join(expand, []string{"payment_intent", "charge", "amount", "reason", "metadata[*]"}), prepare: (*call).createRefund},
		{method: "GET", path: "/v1/refunds", params: join(objects, []string{"payment_intent", "charge"}), prepare: (*call).listRefunds},
		{method: "GET", path: "/v1/refunds/{id}", params: expand, prepare: (*call).retrieveRefund},

		{method: "GET", path: "/v1/disputes", params: join(objects, []string{"payment_intent", "charge"}), prepare: (*call).listDisputes},
		{method: "GET", path: "/v1/disputes/{id}", params: expand, prepare: (*call).retrieveDispute},

		{method: "GET", path: "/v1/events", params: join(pageParams, createdParams, []string{"type", "types[#]", "delivery_success"}), prepare: (*call).listEvents},
		{method: "GET", path: "/v1/events/{id}", prepare: (*call).retrieveEvent},

		{method: "POST", path: "/v1/webhook_endpoints", params: endpointParams, prepare: (*call).createEndpoint, platform: true},
		{method: "GET", path: "/v1/webhook_endpoints", params: pageParams, prepare: (*call).listEndpoints, platform: true},
		{method: "GET", path: "/v1/webhook_endpoints/{id}", prepare: (*call).retrieveEndpoint, platform: true},
		{method: "POST", path: "/v1/webhook_endpoints/{id}", params: endpointUpdateParams, prepare: (*call).updateEndpoint, platform: true},
		{method: "DELETE", path: "/v1/webhook_endpoints/{id}", prepare: (*call).deleteEndpoint, platform: true},

		{method: "GET", path: "/v1/account", prepare: (*call).retrieveAccount, platform: true},
		{method: "GET", path: "/v1/balance", prepare: (*call).retrieveBalance, platform: true},
	}
})

// match finds the operation of a request, and what stands for {id} in its path.
func match(method, path string) (operation, string, bool) {
	got := strings.Split(path, "/")
	for _, o := range operations() {
		id, fits := "", o.method == method
		want := strings.Split(o.path, "/")
		fits = fits && len(want) == len(got)
		for i := 0; fits && i < len(want); i++ {
			if want[i] == "{id}" && got[i] != "" {
				id = got[i]
			} else {
				fits = want[i] == got[i]
			}
		}
		if fits {
			return o, id, true
		}
	}
	return operation{}, "", false
}

// admit is everything that is decided about a call before it counts as one: the
// key, the path, the account.
func (s *Server) admit(c *call) (operation, *apiError) {
	if !c.authorized {
		return operation{}, &apiError{
			status: http.StatusUnauthorized, kind: kindInvalid, message: "Invalid API Key provided.",
			header: map[string]string{"WWW-Authenticate": `Bearer realm="Stripe"`},
		}
	}
	op, id, found := match(c.method, c.path)
	if !found {
		return operation{}, &apiError{
			status: http.StatusNotFound, kind: kindInvalid,
			message: "Unrecognized request URL (" + c.method + ": " + c.path + "). Please see https://stripe.com/docs or we can help at https://support.stripe.com/.",
		}
	}
	c.id = id
	if mine := s.account.cfg.Connected; c.account != mine && (c.account != "" || !op.platform) {
		return operation{}, &apiError{
			status: http.StatusForbidden, kind: kindInvalid, code: "account_invalid",
			message: "The provided key does not have access to account '" + c.account + "' (or that account does not exist). Application access may have been revoked.",
		}
	}
	if !c.plain {
		return operation{}, &apiError{
			status: http.StatusBadRequest, kind: kindInvalid,
			message: "Invalid request (check that your POST content type is application/x-www-form-urlencoded).",
		}
	}
	return op, nil
}
