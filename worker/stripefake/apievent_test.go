package stripefake_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v82"

	"paidonce/worker/stripefake"
)

// ids are the ids of a list's answer, and its has_more.
func ids(t *testing.T, a answer) (list []string, more bool) {
	t.Helper()
	var page struct {
		Object, URL string
		HasMore     bool `json:"has_more"`
		Data        []struct{ ID string }
	}
	if err := json.Unmarshal([]byte(a.body), &page); err != nil || page.Object != "list" || !strings.HasPrefix(page.URL, "/v1/") || page.Data == nil {
		t.Fatalf("%v: %s", err, a.body)
	}
	for _, o := range page.Data {
		list = append(list, o.ID)
	}
	return list, page.HasMore
}

func TestEventsAreListedNewestFirst(t *testing.T) {
	w := newWorld(t)
	for i := range 3 { // four events each, a minute apart
		w.paid(t, fmt.Sprint("A", i))
		w.clock.advance(time.Minute)
	}
	var all []string
	for _, e := range slices.Backward(w.Events()) {
		all = append(all, e.ID)
	}
	if len(all) != 12 {
		t.Fatalf("%d events", len(all))
	}
	start := w.Events()[0].Created
	for _, tt := range []struct {
		name, params string
		want         []string
		more         bool
	}{
		{"ten unless told otherwise", "", all[:10], true},
		{"as many as there are", "limit=100", all, false},
		{"exactly as many as there are", "limit=12", all, false},
		{"a page behind an event", "limit=5&starting_after=" + all[4], all[5:10], true},
		{"the last page", "limit=5&starting_after=" + all[9], all[10:], false},
		{"behind the last", "starting_after=" + all[11], nil, false},
		{"a page ahead of an event, the one that touches it", "limit=5&ending_before=" + all[7], all[2:7], true},
		{"ahead of an event, to the newest", "limit=5&ending_before=" + all[5], all[:5], false},
		{"ahead of the newest", "ending_before=" + all[0], nil, false},
		{"since", fmt.Sprintf("created[gte]=%d", start+60), all[:8], false},
		{"after", fmt.Sprintf("created[gt]=%d", start+60), all[:4], false},
		{"until", fmt.Sprintf("created[lte]=%d", start+60), all[4:], false},
		{"before", fmt.Sprintf("created[lt]=%d", start+60), all[8:], false},
		{"at", fmt.Sprintf("created=%d", start+60), all[4:8], false},
		{"between", fmt.Sprintf("created[gt]=%d&created[lt]=%d", start, start+120), all[4:8], false},
		{"since, from a cursor on", fmt.Sprintf("created[gte]=%d&starting_after=%s", start+60, all[5]), all[6:8], false},
		{"behind an event that the filter leaves out", "type=payment_intent.succeeded&starting_after=" + all[0], []string{all[1], all[5], all[9]}, false},
		{"of one type", "type=checkout.session.completed", []string{all[0], all[4], all[8]}, false},
		{"of several types", "limit=3&types[]=checkout.session.completed&types[]=payment_intent.succeeded", []string{all[0], all[1], all[4]}, true},
		{"of a type that never was", "types[0]=charge.expired", nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, more := ids(t, w.call(t, "GET", "/v1/events", tt.params))
			if !slices.Equal(got, tt.want) || more != tt.more {
				t.Errorf("%d events, more %t: %v\nwant %d, more %t: %v", len(got), more, got, len(tt.want), tt.more, tt.want)
			}
		})
	}
	t.Run("with stripe-go, page by page", func(t *testing.T) {
		var walked []string
		for e, err := range w.client.V1Events.List(t.Context(), &stripe.EventListParams{ListParams: stripe.ListParams{Limit: stripe.Int64(5)}}) {
			allow(t, err)
			walked = append(walked, e.ID)
		}
		if !slices.Equal(walked, all) {
			t.Errorf("walked %v", walked)
		}
	})
	t.Run("with stripe-go, from an event to now", func(t *testing.T) {
		var walked []string
		for e, err := range w.client.V1Events.List(t.Context(), &stripe.EventListParams{ListParams: stripe.ListParams{Limit: stripe.Int64(5), EndingBefore: stripe.String(all[11])}}) {
			allow(t, err)
			walked = append(walked, e.ID)
		}
		slices.Reverse(walked)
		if !slices.Equal(walked, all[:11]) {
			t.Errorf("walked %v", walked)
		}
	})
}

func TestEventsLeaveTheListAfterThirtyDays(t *testing.T) {
	w := newWorld(t)
	w.paid(t, "A1")
	old := w.Events()[0].ID
	w.clock.advance(30 * 24 * time.Hour)
	if list, _ := ids(t, w.call(t, "GET", "/v1/events", "")); len(list) != 4 {
		t.Errorf("%d events after 30 days", len(list))
	}
	if got := w.call(t, "GET", "/v1/events/"+old, ""); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
	w.clock.advance(time.Second)
	if list, _ := ids(t, w.call(t, "GET", "/v1/events", "")); len(list) != 0 {
		t.Errorf("%d events a second later", len(list))
	}
	if got := w.call(t, "GET", "/v1/events/"+old, ""); got.status != 404 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := w.call(t, "GET", "/v1/events", "ending_before="+old); got.status != 400 {
		t.Errorf("a cursor that is gone: %d %s", got.status, got.body)
	}
}

func TestAnEventIsTheBodyThatWasSent(t *testing.T) {
	w := newWorld(t)
	w.paid(t, "A1")
	for _, e := range w.Events() {
		got := w.call(t, "GET", "/v1/events/"+e.ID, "")
		if got.body != string(e.Body(0)) {
			t.Errorf("%s\nwant %s", got.body, e.Body(0))
		}
	}
}

func TestOtherListsAreFiltered(t *testing.T) {
	w := newWorld(t)
	firstSession, firstIntent := w.paid(t, "A1")
	start := w.clock.Now().Unix()
	w.clock.advance(time.Hour)
	secondSession, secondIntent := w.paid(t, "A2")
	openSession := w.open(t, "A3").ID
	var charges, refunds, disputes []string
	for _, pi := range []string{firstIntent, secondIntent} {
		r := must[*stripe.Refund](t)(w.client.V1Refunds.Create(t.Context(), &stripe.RefundCreateParams{PaymentIntent: stripe.String(pi), Amount: stripe.Int64(10)}))
		refunds, charges = append(refunds, r.ID), append(charges, r.Charge.ID)
		allow(t, w.Do(func(a *stripefake.Account) error {
			d, err := a.Inquire(r.Charge.ID, 20)
			disputes = append(disputes, d.ID)
			return err
		}))
		w.clock.advance(time.Hour)
	}
	for _, tt := range []struct {
		name, path, params string
		want               []string
	}{
		{"sessions", "/v1/checkout/sessions", "", []string{openSession, secondSession, firstSession}},
		{"the session of an intent", "/v1/checkout/sessions", "payment_intent=" + firstIntent, []string{firstSession}},
		{"sessions that are open", "/v1/checkout/sessions", "status=open", []string{openSession}},
		{"sessions since", "/v1/checkout/sessions", fmt.Sprintf("limit=1&created[gte]=%d", start+1), []string{openSession}},
		{"sessions of a link", "/v1/checkout/sessions", "payment_link=plink_1", nil},
		{"intents", "/v1/payment_intents", "", []string{secondIntent, firstIntent}},
		{"intents until", "/v1/payment_intents", fmt.Sprintf("created[lte]=%d", start), []string{firstIntent}},
		{"charges", "/v1/charges", "", []string{charges[1], charges[0]}},
		{"charges of an intent", "/v1/charges", "payment_intent=" + secondIntent, []string{charges[1]}},
		{"refunds", "/v1/refunds", "", []string{refunds[1], refunds[0]}},
		{"refunds of an intent", "/v1/refunds", "payment_intent=" + firstIntent, []string{refunds[0]}},
		{"refunds of a charge", "/v1/refunds", "charge=" + charges[1], []string{refunds[1]}},
		{"refunds before", "/v1/refunds", fmt.Sprintf("created[lt]=%d", start+2*3600), []string{refunds[0]}},
		{"refunds behind one", "/v1/refunds", "starting_after=" + refunds[1], []string{refunds[0]}},
		{"disputes", "/v1/disputes", "", []string{disputes[1], disputes[0]}},
		{"disputes of an intent", "/v1/disputes", "payment_intent=" + firstIntent, []string{disputes[0]}},
		{"disputes of a charge", "/v1/disputes", "charge=" + charges[1], []string{disputes[1]}},
		{"disputes of nothing", "/v1/disputes", "charge=ch_no", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, _ := ids(t, w.call(t, "GET", tt.path, tt.params))
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestWebhookEndpointsByTheAPI(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	made := must[*stripe.WebhookEndpoint](t)(w.client.V1WebhookEndpoints.Create(ctx, &stripe.WebhookEndpointCreateParams{
		URL: stripe.String("https://shop.example/webhooks/stripe"), EnabledEvents: stripe.StringSlice([]string{"charge.refunded", "refund.created"}),
		APIVersion: stripe.String("2025-08-27.basil"), Description: stripe.String("paidonce"), Metadata: map[string]string{"a": "b"},
	}))
	if !strings.HasPrefix(made.Secret, "whsec_") || made.Status != "enabled" || made.APIVersion != "2025-08-27.basil" || len(made.EnabledEvents) != 2 {
		t.Errorf("made %+v", made)
	}
	got := must[*stripe.WebhookEndpoint](t)(w.client.V1WebhookEndpoints.Retrieve(ctx, made.ID, nil))
	if got.Secret != "" || got.URL != made.URL || got.Metadata["a"] != "b" {
		t.Errorf("retrieved %+v, the secret is shown once", got)
	}
	changed := must[*stripe.WebhookEndpoint](t)(w.client.V1WebhookEndpoints.Update(ctx, made.ID, &stripe.WebhookEndpointUpdateParams{
		Disabled: stripe.Bool(true), EnabledEvents: stripe.StringSlice([]string{"*"}), URL: stripe.String("https://shop.example/other"), Metadata: map[string]string{"c": "d", "a": ""},
	}))
	if changed.Status != "disabled" || changed.URL != "https://shop.example/other" || len(changed.EnabledEvents) != 1 || fmt.Sprint(changed.Metadata) != "map[c:d]" || changed.Description != "paidonce" {
		t.Errorf("changed %+v", changed)
	}
	for range 15 {
		must[*stripe.WebhookEndpoint](t)(w.client.V1WebhookEndpoints.Create(ctx, &stripe.WebhookEndpointCreateParams{
			URL: stripe.String("https://shop.example"), EnabledEvents: stripe.StringSlice([]string{"*"}),
		}))
	}
	if _, err := w.client.V1WebhookEndpoints.Create(ctx, &stripe.WebhookEndpointCreateParams{
		URL: stripe.String("https://shop.example"), EnabledEvents: stripe.StringSlice([]string{"*"}),
	}); err == nil || stripeError(t, err).HTTPStatusCode != http.StatusBadRequest {
		t.Errorf("a 17th endpoint: %v", err)
	}
	must[*stripe.WebhookEndpoint](t)(w.client.V1WebhookEndpoints.Delete(ctx, made.ID, nil))
	n := 0
	for e, err := range w.client.V1WebhookEndpoints.List(ctx, &stripe.WebhookEndpointListParams{}) {
		if allow(t, err); e.ID == made.ID {
			t.Error("a deleted endpoint is listed")
		}
		n++
	}
	if n != 15 {
		t.Errorf("%d endpoints", n)
	}
	live := newWorld(t, func(c *stripefake.ServerConfig) { c.Config.Livemode = true })
	if got := live.call(t, "POST", "/v1/webhook_endpoints", "url=http%3A%2F%2Fshop.example&enabled_events[]=*"); got.status != 400 {
		t.Errorf("http in live mode: %d %s", got.status, got.body)
	}
}
