package reconcile

import (
	"context"
	"strings"
	"testing"
	"time"

	"paidonce/store"
	"paidonce/store/payment"
	"paidonce/worker/stripeapi"
)

func TestWhatIsWrongWithAnEndpoint(t *testing.T) {
	good := stripeapi.Endpoint{ID: "we_1", URL: "https://shop.example/webhooks/stripe", Status: "enabled", APIVersion: "2025-08-27.basil", EnabledEvents: []string{"*"}}
	with := func(change func(e *stripeapi.Endpoint)) []stripeapi.Endpoint {
		e := good
		change(&e)
		return []stripeapi.Endpoint{e}
	}
	for _, tt := range []struct {
		name      string
		live      bool
		endpoints []stripeapi.Endpoint
		want      string // part of the text; "" is nothing wrong
	}{
		{"all is well", false, []stripeapi.Endpoint{good}, ""},
		{"the types that are recommended", false, with(func(e *stripeapi.Endpoint) { e.EnabledEvents = payment.EventTypes() }), ""},
		{"no version of its own", false, with(func(e *stripeapi.Endpoint) { e.APIVersion = "" }), ""},
		{"disabled", false, with(func(e *stripeapi.Endpoint) { e.Status = "disabled" }), "disabled"},
		{"of the other mode", true, []stripeapi.Endpoint{good}, "other mode"},
		{"old", false, with(func(e *stripeapi.Endpoint) { e.APIVersion = "2019-02-11" }), "API version"},
		{"too few types", false, with(func(e *stripeapi.Endpoint) { e.EnabledEvents = []string{"payment_intent.succeeded"} }), "does not send checkout.session.completed"},
		{"another program's", false, with(func(e *stripeapi.Endpoint) { e.URL, e.Status = "https://other.example/hook", "disabled" }), ""},
		{"none, live", true, nil, "no endpoint at Stripe ends with /webhooks/stripe"},
		{"none, in a sandbox", false, nil, ""},
	} {
		var texts []string
		for _, f := range EndpointFindings(Source{Name: "stripe", Live: tt.live}, tt.endpoints) {
			texts = append(texts, f.Text)
		}
		got := strings.Join(texts, "; ")
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q; want %q", tt.name, got, tt.want)
		}
	}
}

func TestWhenAClockIsOff(t *testing.T) {
	stripe := time.Date(2026, 12, 4, 9, 0, 0, 0, time.UTC)
	for off, want := range map[time.Duration]string{
		0: "", 59 * time.Second: "", -59 * time.Second: "",
		90 * time.Second: "more than 1m ahead of", -90 * time.Second: "more than 1m behind",
		-7 * time.Minute: "more than 5m behind", 30 * time.Hour: "more than 24h ahead of",
	} {
		found := ClockFindings(stripe.Add(off), store.At(stripe))
		got := ""
		if len(found) > 0 {
			got = found[0].Text
		}
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q; want %q", off, got, want)
		}
	}
	if found := ClockFindings(stripe, 0); found != nil {
		t.Errorf("without a date: %v", found)
	}
}

func TestTypeListsAreAsFewAsTheyCanBe(t *testing.T) {
	if got := typeLists(payment.EventTypes()); len(got) != 2 || len(got[0]) != store.MaxEventTypes {
		t.Errorf("%v", got)
	}
	got := typeLists([]string{"a.b", "a.c", "a.*", "b.c", "a.b.*", "b.c"})
	if len(got) != 2 || strings.Join(got[0], " ") != "a.*" || strings.Join(got[1], " ") != "b.c" {
		t.Errorf("%v", got)
	}
	if got := typeLists([]string{"a.b", "*"}); len(got) != 1 || got[0][0] != "*" {
		t.Errorf("%v", got)
	}
}

// accounts is a Store that knows connected accounts, and a Stripe that knows
// whose the key is.
type accounts struct {
	Store
	Stripe
	connected []string
	own       string
}

func (a accounts) ConnectedAccounts(context.Context, string) ([]string, error) {
	return a.connected, nil
}
func (a accounts) AccountID(context.Context) (string, error) { return a.own, nil }

// TestWhichAccountsAreRead: one source is the key's own account; "*" brings the
// connected accounts that were heard of, each in its own tenant and scope; of
// several accounts the key's own is read without Stripe-Account.
func TestWhichAccountsAreRead(t *testing.T) {
	for _, tt := range []struct {
		name      string
		sources   []Source
		connected []string
		want      string
	}{
		{"one", []Source{{Name: "stripe", Account: "acct_1", Scope: "stripe:acct_1:test"}}, nil, "stripe  stripe:acct_1:test main"},
		{"connect", []Source{{Name: "stripe", Account: "*", Scope: "stripe:self:test"}}, []string{"acct_2", "acct_3"},
			"stripe  stripe:self:test main, stripe acct_2 stripe:acct_2:test acct_2, stripe acct_3 stripe:acct_3:test acct_3"},
		{"several", []Source{{Name: "a", Account: "acct_1", Scope: "stripe:acct_1:test"}, {Name: "b", Account: "acct_2", Scope: "stripe:acct_2:test"}}, nil,
			"a acct_1 stripe:acct_1:test main, b  stripe:acct_2:test main"},
	} {
		a := accounts{connected: tt.connected, own: "acct_2"}
		got, err := New(Config{Store: a, Stripe: a, Sources: tt.sources}).sources(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		for _, s := range got {
			said = append(said, s.Name+" "+s.Account+" "+s.Scope+" "+s.Tenant)
		}
		if text := strings.Join(said, ", "); text != tt.want {
			t.Errorf("%s:\n  %s\nwant\n  %s", tt.name, text, tt.want)
		}
	}
}
