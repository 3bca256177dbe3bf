package payment

import (
	"strings"
	"testing"
)

func TestParseEnvelope(t *testing.T) {
	const whole = `{"id":"evt_1","object":"event","type":"charge.succeeded","account":"acct_1","api_version":"2025-08-27.basil",` +
		`"livemode":true,"created":1750000000,"data":{"object":{}}}`
	all := Envelope{
		ID: "evt_1", Object: "event", Type: "charge.succeeded", Account: "acct_1", APIVersion: "2025-08-27.basil",
		Livemode: true, HasLivemode: true, Created: 1750000000000,
	}
	but := func(change func(e *Envelope)) Envelope {
		e := all
		change(&e)
		return e
	}
	with := func(old, new string) string {
		if !strings.Contains(whole, old) {
			t.Fatalf("%q is not in the body", old)
		}
		return strings.Replace(whole, old, new, 1)
	}
	for _, tt := range []struct {
		name string
		body string
		want Envelope
	}{
		{"a whole envelope is read", whole, all},
		{"blanks and line ends around it are fine", " \r\n" + whole + "\r\n", all},
		{"an escaped key is the key it spells", with(`"id"`, `"\u0069d"`), all},
		{"an escaped value is the text it spells", with(`"evt_1"`, `"\u0065vt_1"`), all},
		{"a null account is the source's own", with(`"acct_1"`, `null`), but(func(e *Envelope) { e.Account = "" })},
		{"an api_version of null is none", with(`"2025-08-27.basil"`, `null`), but(func(e *Envelope) { e.APIVersion = "" })},
		{"an api_version of another type is none", with(`"2025-08-27.basil"`, `7`), but(func(e *Envelope) { e.APIVersion = "" })},
		{"a body of 2012 has no object", with(`"object":"event",`, ``), but(func(e *Envelope) { e.Object = "" })},
		{"a body without created has no time", with(`"created":1750000000,`, ``), but(func(e *Envelope) { e.Created = 0 })},
		{"a request that is a string is never read", with(`"data"`, `"request":"req_1","data"`), all},
		{"unknown keys are passed over, even twice", with(`"data"`, `"x":{"a":1,"a":2},"x":[],"data"`), all},
		{"lone surrogates and NUL in what we do not use are fine", with(`"data"`, `"note":"\ud83d","s":"a\u0000b","data"`), all},
		{"a key in another case is another key", with(`"data"`, `"Id":"evt_2","TYPE":"x","Livemode":false,"data"`), all},
		{"a key with a long s is another key", with(`"type"`, `"type":"charge.succeeded","\u017ftatus":1,"t"`), all},
		{"a v2 event has its time as text", `{"id":"evt_1","object":"v2.core.event","type":"v2.core.event_ping","livemode":false,"created":"2025-06-15T15:06:40Z"}`,
			Envelope{ID: "evt_1", Object: "v2.core.event", Type: "v2.core.event_ping", HasLivemode: true, Created: 1750000000000}},
		{"a v2 event of before 1970", `{"id":"evt_1","object":"v2.core.event","type":"v2.core.event_ping","livemode":false,"created":"0000-01-01T00:00:00Z"}`,
			Envelope{ID: "evt_1", Object: "v2.core.event", Type: "v2.core.event_ping", HasLivemode: true, Malformed: "created is not a time"}},

		{"an id stands there twice", with(`"data"`, `"id":"evt_2","data"`),
			but(func(e *Envelope) { e.ID, e.Malformed = "", "the key id stands there twice" })},
		{"the same id stands there twice", with(`"data"`, `"id":"evt_1","data"`),
			but(func(e *Envelope) { e.ID, e.Malformed = "", "the key id stands there twice" })},
		{"an id stands there twice, once escaped", with(`"data"`, `"i\u0064":"evt_2","data"`),
			but(func(e *Envelope) { e.ID, e.Malformed = "", "the key id stands there twice" })},
		{"an id stands there twice, after another key did", with(`"data"`, `"type":"x","id":"evt_2","data"`),
			but(func(e *Envelope) { e.ID, e.Malformed = "", "the key id stands there twice" })},
		{"a type stands there twice", with(`"data"`, `"type":"x","data"`),
			but(func(e *Envelope) { e.Malformed = "the key type stands there twice" })},
		{"a livemode stands there twice", with(`"data"`, `"livemode":false,"data"`),
			but(func(e *Envelope) { e.Malformed = "the key livemode stands there twice" })},
		{"data stands there twice", with(`"data"`, `"data":{},"data"`),
			but(func(e *Envelope) { e.Malformed = "the key data stands there twice" })},
		{"there is no id", with(`"id":"evt_1",`, ``),
			but(func(e *Envelope) { e.ID, e.Malformed = "", "there is no usable id" })},
		{"the id is null", with(`"evt_1"`, `null`),
			but(func(e *Envelope) { e.ID, e.Malformed = "", "there is no usable id" })},
		{"the id is empty", with(`"evt_1"`, `""`),
			but(func(e *Envelope) { e.ID, e.Malformed = "", "there is no usable id" })},
		{"the id is a number", with(`"evt_1"`, `17`),
			but(func(e *Envelope) { e.ID, e.Malformed = "", "there is no usable id" })},
		{"the id has 256 bytes", with(`"evt_1"`, `"`+strings.Repeat("x", 256)+`"`),
			but(func(e *Envelope) { e.ID, e.Malformed = "", "there is no usable id" })},
		{"the id has 255 bytes", with(`"evt_1"`, `"`+strings.Repeat("x", 255)+`"`),
			but(func(e *Envelope) { e.ID = strings.Repeat("x", 255) })},
		{"the id holds a NUL", with(`"evt_1"`, `"evt\u0000_1"`),
			but(func(e *Envelope) { e.ID, e.Malformed = "", "there is no usable id" })},
		{"the id holds a lone surrogate", with(`"evt_1"`, `"evt_\ud83d"`),
			but(func(e *Envelope) { e.ID, e.Malformed = "", "there is no usable id" })},
		{"the type is absent", with(`"type":"charge.succeeded",`, ``),
			but(func(e *Envelope) { e.Type, e.Malformed = "", "there is no usable type" })},
		{"the type is a list", with(`"charge.succeeded"`, `[]`),
			but(func(e *Envelope) { e.Type, e.Malformed = "", "there is no usable type" })},
		{"the object is something else than an event", with(`"event"`, `"payment_intent"`),
			but(func(e *Envelope) { e.Object, e.Malformed = "payment_intent", "the body is not an event" })},
		{"the object is a number", with(`"event"`, `1`),
			but(func(e *Envelope) { e.Object, e.Malformed = "", "the body is not an event" })},
		{"the account is a number", with(`"acct_1"`, `1`),
			but(func(e *Envelope) { e.Account, e.Malformed = "", "account is not a usable string" })},
		{"livemode is absent", with(`"livemode":true,`, ``),
			but(func(e *Envelope) {
				e.Livemode, e.HasLivemode, e.Malformed = false, false, "there is no usable livemode"
			})},
		{"livemode is null", with(`true`, `null`),
			but(func(e *Envelope) {
				e.Livemode, e.HasLivemode, e.Malformed = false, false, "there is no usable livemode"
			})},
		{"livemode is a string", with(`true`, `"true"`),
			but(func(e *Envelope) {
				e.Livemode, e.HasLivemode, e.Malformed = false, false, "there is no usable livemode"
			})},
		{"created is a string", with(`1750000000`, `"1750000000"`),
			but(func(e *Envelope) { e.Created, e.Malformed = 0, "created is not a time" })},
		{"created is a fraction", with(`1750000000`, `1.5e9`),
			but(func(e *Envelope) { e.Created, e.Malformed = 0, "created is not a time" })},
		{"created is null", with(`1750000000`, `null`),
			but(func(e *Envelope) { e.Created, e.Malformed = 0, "created is not a time" })},
		{"created is before 1970", with(`1750000000`, `-1`),
			but(func(e *Envelope) { e.Created, e.Malformed = 0, "created is not a time" })},
		{"created overflows in milliseconds", with(`1750000000`, `9223372036854775807`),
			but(func(e *Envelope) { e.Created, e.Malformed = 0, "created is not a time" })},
		{"a v1 event has its time as text", with(`1750000000`, `"2025-06-15T15:06:40Z"`),
			but(func(e *Envelope) { e.Created, e.Malformed = 0, "created is not a time" })},
		{"a byte outside UTF-8 stands in a string", with(`"data"`, `"note":"`+"\xff\xfe"+`","data"`),
			but(func(e *Envelope) { e.Malformed = "the body is not valid UTF-8" })},

		{"the body is empty", ``, Envelope{Malformed: "the body is not one JSON object"}},
		{"the body is null", `null`, Envelope{Malformed: "the body is not one JSON object"}},
		{"the body is a list", `[` + whole + `]`, Envelope{Malformed: "the body is not one JSON object"}},
		{"the body is a string", `"evt_1"`, Envelope{Malformed: "the body is not one JSON object"}},
		{"the body is an empty object", `{}`, Envelope{Malformed: "there is no usable id"}},
		{"the body is cut off", whole[:len(whole)-1], Envelope{Malformed: "the body is not one JSON object"}},
		{"the body is cut off in a string", whole[:20], Envelope{Malformed: "the body is not one JSON object"}},
		{"something follows", whole + `{}`, Envelope{Malformed: "the body is not one JSON object"}},
		{"a NUL follows", whole + "\x00", Envelope{Malformed: "the body is not one JSON object"}},
		{"a raw NUL stands in a string", with(`"data"`, `"note":"a`+"\x00"+`","data"`), Envelope{Malformed: "the body is not one JSON object"}},
		{"a comma is left over", with(`"data"`, `,"data"`), Envelope{Malformed: "the body is not one JSON object"}},
		{"a value that is passed over is broken", with(`{"object":{}}`, `{"object":{"a":tru}}`), Envelope{Malformed: "the body is not one JSON object"}},
		{"a byte order mark stands before", "\ufeff" + whole, Envelope{Malformed: "the body is not one JSON object"}},
		{"it is nested too deep", with(`{"object":{}}`, strings.Repeat("[", 20000)+strings.Repeat("]", 20000)), Envelope{Malformed: "the body is not one JSON object"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := ParseEnvelope([]byte(tt.body)); got != tt.want {
				t.Errorf("ParseEnvelope =\n%+v; want\n%+v", got, tt.want)
			}
		})
	}
}

// The words of Malformed go to logs and answers: none of them may come from the
// body.
func TestMalformedHoldsNothingOfTheBody(t *testing.T) {
	for _, body := range []string{
		`{"id":"SECRET`,
		`{"id":["SECRET"],"SECRET":1,"SECRET":2}`,
		`{"id":"evt_1","type":"t","livemode":"SECRET"}`,
		`{"id":"evt_1","type":"t","livemode":false,"created":"SECRET"}`,
		`{"id":"evt_1","type":"t","livemode":false,"account":{"SECRET":1}}`,
		`{"id":"evt_1","type":"t","livemode":false,"object":"SECRET"}`,
		`{"id":"evt_1","type":"t","livemode":false,"data":{"object":{"object":"SECRET KIND"}}}`,
		`{"id":"evt_1","type":"t","livemode":false,"data":{"object":{"object":"refund","id":"re_1","amount":"SECRET"}}}`,
		`{"id":"evt_1","type":"t","livemode":false,"data":{"object":{"object":"refund","id":"re_1","amount":1,"currency":"SECRET"}}}`,
	} {
		ev := Decode([]byte(body))
		if ev.Verdict == "" {
			t.Errorf("Decode(%s) gave a fact", body)
		}
		if strings.Contains(ev.Malformed+ev.Reason, "SECRET") {
			t.Errorf("Decode(%s) says %q, %q", body, ev.Malformed, ev.Reason)
		}
	}
}
