package compose

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"paidonce/store"
)

const orderBody = `{"tenant":"main","id":"A1","status":"paid","attention":[],"total_minor":1250,"currency":"eur","amount_policy":"exact",` +
	`"allow_discount":false,"received_minor":1250,"refunded_minor":300,"refund_pending_minor":0,"charged_back_minor":0,"suspense_minor":0,` +
	`"refs":["pi_1"],"items":[{"sku":"ebook","quantity":1,"unit_minor":0}],"customer":{"email":"ann@example.org","name":"Ann <&> Lee"},` +
	`"metadata":{"size":"XL"},"created_at":"2026-12-01T10:00:00.000Z","paid_at":"2026-12-01T10:00:00.000Z","updated_at":"2026-12-01T10:00:00.000Z"}`

// The bodies are a contract: receivers read them. A change here is one that
// they will notice.
func TestTheBodyIsTheEnvelopeOfThePackageComment(t *testing.T) {
	const happened = `"timestamp":"2026-12-01T10:00:00.000Z","version":1,"data":{`
	of := func(operation string) store.Occasion {
		return store.Occasion{Operation: operation, OccurredAt: at, At: at, Order: order()}
	}
	for _, tt := range []struct {
		name     string
		occasion store.Occasion
		want     string
	}{
		{"a payment, brought about by an event", paid(),
			`{"type":"order.paid",` + happened + `"order":` + orderBody + `,"operation":{"name":"order.paid","kind":"order.paid","occurred_at":"2026-12-01T10:00:00.000Z"},` +
				`"event":{"scope":"stripe:self:test","id":"evt_1","source":"stripe","type":"charge.succeeded","occurred_at":"2026-12-01T10:00:00.000Z"}}}`},
		{"a refund, without an event", of("refund.succeeded:re_1"),
			`{"type":"refund.succeeded:re_1",` + happened + `"order":` + orderBody + `,"operation":{"name":"refund.succeeded:re_1","kind":"refund.succeeded","object":"re_1","occurred_at":"2026-12-01T10:00:00.000Z"},"event":null}}`},
		{"a dispute with its verdict", of("dispute.closed:dp_1:won"),
			`{"type":"dispute.closed:dp_1:won",` + happened + `"order":` + orderBody + `,"operation":{"name":"dispute.closed:dp_1:won","kind":"dispute.closed","object":"dp_1","verdict":"won","occurred_at":"2026-12-01T10:00:00.000Z"},"event":null}}`},
		{"an alert", alert("firing", 1),
			`{"type":"alert.quarantined:7",` + happened + `"order":null,"operation":{"name":"alert.quarantined:7","kind":"alert.quarantined","object":"7","occurred_at":"2026-12-01T10:00:00.000Z"},"event":null,` +
				`"alert":{"name":"quarantined","state":"firing","since":"2026-12-01T10:00:00.000Z","count":1,"summary":"3 events are quarantined.","next":"They stay where they are.","command":"paidonce events list --status quarantined",` +
				`"items":[{"order":"A1","event":"evt_1","amount":"12.50 EUR","at":"2026-12-01T10:00:00.000Z","text":"amount_mismatch"}]}}}`},
		{"a raw event", raw("github", "push", `{"ref":1}`),
			`{"type":"github:push",` + happened + `"order":null,"operation":{"name":"github:push","kind":"github:push","occurred_at":"2026-12-01T10:00:00.000Z"},` +
				`"event":{"scope":"github:github:-","id":"e1","source":"github","type":"push","occurred_at":"2026-12-01T10:00:00.000Z"},"payload":{"ref":1}}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, do := range []string{store.KindHTTP, store.KindExec} {
				c := composed(t, Target{Name: "app", On: []string{"order.*", "refund.*", "dispute.*", "alert.*", "github:*"}, Do: do}, tt.occasion)
				if c.Target != "app" || c.Kind != do || c.Failed != "" {
					t.Errorf("target %q, kind %q, failed %q", c.Target, c.Kind, c.Failed)
				}
				if string(c.Body) != tt.want {
					t.Errorf("body\n%s\nwant\n%s", c.Body, tt.want)
				}
			}
		})
	}
}

func TestAPayloadIsTheBytesThatWereReceived(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		base64     bool
	}{
		{"white space, key order and doubled keys stay", "{ \"b\" : 1,\r\n\t\"a\": 2, \"b\": 3 }\n", false},
		{"a number beyond a float stays", `{"n":9007199254740993,"f":1.10e+2}`, false},
		{"what HTML would escape stays", `{"s":"<b>&amp;\u003c\/` + "\u2028" + `"}`, false},
		{"a lone surrogate stays", `{"s":"\ud800"}`, false},
		{"a value that is no object stays", ` "push" `, false},
		{"no JSON is base64", "payload=%7B%7D", true},
		{"JSON that is not UTF-8 is base64", "{\"s\":\"\xff\"}", true},
		{"JSON behind a byte order mark is base64", "\ufeff{}", true},
		{"two values are base64", `{}{}`, true},
		{"what would end the envelope is base64", `1}},"payload":{"a":{`, true},
		{"nothing is base64 of nothing", "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := composed(t, Target{Name: "app", On: []string{"github:push"}, Do: store.KindHTTP}, raw("github", "push", tt.body))
			var got struct {
				Data struct {
					Payload  json.RawMessage
					Encoding *string `json:"payload_encoding"`
				}
			}
			if err := json.Unmarshal(c.Body, &got); err != nil {
				t.Fatalf("%v in %s", err, c.Body)
			}
			if !tt.base64 {
				if got.Data.Encoding != nil || !bytes.Contains(c.Body, []byte(`,"payload":`+tt.body+`}}`)) {
					t.Errorf("body %s", c.Body)
				}
				return
			}
			var text string
			if err := json.Unmarshal(got.Data.Payload, &text); err != nil {
				t.Fatal(err)
			}
			back, err := base64.StdEncoding.DecodeString(text)
			if err != nil || string(back) != tt.body || got.Data.Encoding == nil || *got.Data.Encoding != "base64" {
				t.Errorf("payload %q, %v in %s", back, err, c.Body)
			}
		})
	}
}

func TestTheSameOccasionIsTheSameBytesForEachTargetAndTime(t *testing.T) {
	targets := []Target{
		{Name: "b", On: []string{"order.paid"}, Do: store.KindHTTP},
		mailTarget(),
		{Name: "a", On: []string{"order.*", "order.paid"}, Do: store.KindExec},
		{Name: "c", On: []string{"refund.*"}, Do: store.KindHTTP},
	}
	compose, err := New(targets)
	if err != nil {
		t.Fatal(err)
	}
	first := compose(paid())
	var names []string
	for _, c := range first {
		names = append(names, c.Target)
	}
	if got := strings.Join(names, " "); got != "b thanks a" {
		t.Fatalf("effects for %s; want one each, in the sequence of the targets", got)
	}
	first[0].Body[2] = '!' // one target's bytes are not another's
	if first[2].Body[2] == '!' {
		t.Error("two targets share a body")
	}
	late := paid()
	late.At += 1_000_000
	second, third := compose(paid()), compose(late)
	for i := range second {
		if !bytes.Equal(second[i].Body, third[i].Body) {
			t.Errorf("%s: the body depends on when it is written", second[i].Target)
		}
	}
}

func TestWithoutTargetsNothingIsComposed(t *testing.T) {
	c, err := New(nil)
	if err != nil || c == nil {
		t.Fatalf("New = %v", err)
	}
	if all := c(paid()); len(all) != 0 {
		t.Errorf("composed %v", all)
	}
}
