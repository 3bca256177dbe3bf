package reconcile

import (
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
		for _, f := range endpointFindings(Source{Name: "stripe", Live: tt.live}, tt.endpoints) {
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
		found := clockFindings(stripe.Add(off), store.At(stripe))
		got := ""
		if len(found) > 0 {
			got = found[0].Text
		}
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q; want %q", off, got, want)
		}
	}
	if found := clockFindings(stripe, 0); found != nil {
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
