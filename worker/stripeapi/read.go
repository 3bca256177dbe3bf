package stripeapi

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/stripe/stripe-go/v82"

	"paidonce/store"
	"paidonce/store/payment"
)

// What is read for reconciliation is taken byte for byte: an event is stored as
// Stripe has it, and the library's structs do not hold every body that exists
// (stripe.md §1.1).

// ErrGone says that Stripe has no object of that id, for this key and account.
var ErrGone = &Error{Outcome: store.OutcomeRefused, Status: http.StatusNotFound, Code: "resource_missing", text: "stripe: there is no such object"}

// Is makes errors.Is know every answer that an object is not there.
func (e *Error) Is(target error) bool {
	return target == error(ErrGone) && e.Status == http.StatusNotFound
}

// Span is a span of `created`, both ends inclusive, in whole seconds.
type Span struct{ Since, Until store.Time }

func (s Span) add(query url.Values) {
	query.Set("created[gte]", strconv.FormatInt(int64(s.Since)/1000, 10))
	query.Set("created[lte]", strconv.FormatInt(int64(s.Until)/1000, 10))
}

// Page is a page of a list, newest first.
type Page struct {
	Items []json.RawMessage
	IDs   []string // of the items
	More  bool
	Date  store.Time // of the answer, by Stripe's clock; 0 is unknown
}

// ListEvents reads a page of an account's events behind the event of the id
// after; "" is the first page. types are at most twenty names, or one that ends
// with "*"; none is all. The error is an *Error; CursorGone tells the one that
// means that the event of after is too old to be listed.
func (c *Client) ListEvents(ctx context.Context, account string, types []string, span Span, after string) (Page, error) {
	query := url.Values{}
	switch {
	case len(types) == 1 && types[0] == "*":
	case len(types) == 1:
		query.Set("type", types[0])
	default:
		for _, t := range types {
			query.Add("types[]", t)
		}
	}
	span.add(query)
	return c.listRaw(ctx, "list events", account, "/v1/events", query, after)
}

// CursorGone reports whether err says that a list cannot go on where it was.
func CursorGone(err error) bool {
	e, ok := err.(*Error)
	return ok && e.Outcome == store.OutcomeRefused && e.Param == "starting_after"
}

// paths are where objects of a kind are.
var paths = map[payment.Kind]string{
	payment.KindSession:       "/v1/checkout/sessions",
	payment.KindPaymentIntent: "/v1/payment_intents",
	payment.KindCharge:        "/v1/charges",
	payment.KindRefund:        "/v1/refunds",
	payment.KindDispute:       "/v1/disputes",
}

// objects are what the API calls a kind.
var objects = map[payment.Kind]string{
	payment.KindSession:       sessionObject,
	payment.KindPaymentIntent: intentObject,
	payment.KindCharge:        "charge",
	payment.KindRefund:        "refund",
	payment.KindDispute:       "dispute",
}

// ListObjects is ListEvents for the objects of a kind that were created in a
// span.
func (c *Client) ListObjects(ctx context.Context, account string, kind payment.Kind, span Span, after string) (Page, error) {
	query := url.Values{}
	span.add(query)
	return c.listRaw(ctx, "list objects of the kind "+string(kind), account, paths[kind], query, after)
}

// SessionsOf reads the newest Checkout Sessions of a payment intent.
func (c *Client) SessionsOf(ctx context.Context, account, intent string) ([]store.ObjectCopy, error) {
	if !usableID.MatchString(intent) {
		return nil, refused(codeInvalidBody, "stripe: list sessions: the id cannot be one of Stripe's")
	}
	p, err := c.listRaw(ctx, "list sessions", account, paths[payment.KindSession], url.Values{"payment_intent": {intent}}, "")
	if err != nil {
		return nil, err
	}
	var copies []store.ObjectCopy
	for i, raw := range p.Items {
		copies = append(copies, CopyOf(payment.KindSession, p.IDs[i], raw, p.Date))
	}
	return copies, nil
}

// Fetch reads an object as it is now. The error is an *Error; one that Stripe
// does not have is ErrGone.
func (c *Client) Fetch(ctx context.Context, account string, kind payment.Kind, id string) (store.ObjectCopy, error) {
	h, e := c.call(ctx, request{name: "retrieve " + string(kind), object: objects[kind], id: id, about: true}, func(ctx context.Context) error {
		return c.get(ctx, paths[kind]+"/"+id, account, nil)
	})
	if e != nil {
		return store.ObjectCopy{}, e
	}
	return CopyOf(kind, id, h.body, h.at()), nil
}

// AccountID is the id of the account that the key belongs to.
func (c *Client) AccountID(ctx context.Context) (string, error) {
	h, e := c.call(ctx, request{name: "retrieve the account", object: "account"}, func(ctx context.Context) error {
		return c.get(ctx, "/v1/account", "", nil)
	})
	if e != nil {
		return "", e
	}
	return h.ID, nil
}

// Endpoint is a webhook endpoint as it is configured at Stripe.
type Endpoint struct {
	ID            string   `json:"id"`
	URL           string   `json:"url"`
	Status        string   `json:"status"` // enabled, disabled
	APIVersion    string   `json:"api_version"`
	Livemode      bool     `json:"livemode"`
	EnabledEvents []string `json:"enabled_events"` // names, or "*"
}

// WebhookEndpoints reads the account's endpoints, at most a hundred: Stripe
// allows sixteen.
func (c *Client) WebhookEndpoints(ctx context.Context) ([]Endpoint, store.Time, error) {
	p, err := c.listRaw(ctx, "list webhook endpoints", "", "/v1/webhook_endpoints", url.Values{}, "")
	if err != nil {
		return nil, 0, err
	}
	endpoints := make([]Endpoint, len(p.Items))
	for i, raw := range p.Items {
		if err := json.Unmarshal(raw, &endpoints[i]); err != nil {
			return nil, 0, &Error{Outcome: store.OutcomeAgain, text: "stripe: list webhook endpoints: the answer cannot be read"}
		}
	}
	return endpoints, p.Date, nil
}

func (c *Client) listRaw(ctx context.Context, name, account, path string, query url.Values, after string) (Page, error) {
	query.Set("limit", strconv.Itoa(pageSize))
	if after != "" {
		query.Set("starting_after", after)
	}
	h, e := c.call(ctx, request{name: name, object: "list"}, func(ctx context.Context) error {
		return c.get(ctx, path, account, query)
	})
	if e != nil {
		return Page{}, e
	}
	var list struct {
		Data []json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(h.body, &list); err != nil || len(list.Data) != len(h.Data) {
		return Page{}, &Error{Outcome: store.OutcomeAgain, text: "stripe: " + name + ": the answer cannot be read"}
	}
	p := Page{Items: list.Data, More: h.HasMore, Date: h.at()}
	for _, d := range h.Data {
		p.IDs = append(p.IDs, d.ID)
	}
	return p, nil
}

// get reads path without taking the answer apart: call has its bytes.
func (c *Client) get(ctx context.Context, path, account string, query url.Values) error {
	p := readParams(account)
	p.Context = ctx
	return c.raw.CallRaw(http.MethodGet, path, c.key.reveal(), []byte(query.Encode()), &p, &stripe.APIResource{})
}

// at is when the answer was given, by Stripe's clock; 0 is unknown.
func (h head) at() store.Time {
	at, err := http.ParseTime(strings.TrimSpace(h.date))
	if err != nil {
		return 0
	}
	return store.At(at)
}

// CopyOf is an object of a list as it would be fetched.
func CopyOf(kind payment.Kind, id string, raw []byte, date store.Time) store.ObjectCopy {
	var mode struct {
		Livemode *bool `json:"livemode"` // refunds have none
	}
	_ = json.Unmarshal(raw, &mode)
	c := store.ObjectCopy{ID: id, Word: objects[kind], Raw: raw, Date: date}
	if mode.Livemode != nil {
		c.Mode = "test"
		if *mode.Livemode {
			c.Mode = "live"
		}
	}
	return c
}
