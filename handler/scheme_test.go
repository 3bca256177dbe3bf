package handler

import (
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

func schemeOf(t testing.TB, s Source, secrets ...string) scheme {
	t.Helper()
	s.Name = "x"
	for _, text := range secrets {
		s.Secrets = append(s.Secrets, mustSecret(t, s.Provider, text))
	}
	c, err := s.configure()
	if err != nil {
		t.Fatal(err)
	}
	return c.scheme
}

// TestGitHubVectors has GitHub's own vector and what must not pass for it.
func TestGitHubVectors(t *testing.T) {
	const hello = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
	for _, tt := range []struct{ name, secret, header, body, want string }{
		{"the official vector", githubSecret, hello, "Hello, World!", "valid"},
		{"the last digit changed", githubSecret, hello[:len(hello)-1] + "8", "Hello, World!", "bad_signature"},
		{"another body", githubSecret, hello, "Hello, World?", "bad_signature"},
		{"another secret", "wrong secret", hello, "Hello, World!", "bad_signature"},
		{"no header", githubSecret, "", "Hello, World!", "missing_signature"},
		{"SHA-1 in the header for SHA-256", githubSecret, "sha1=01dc10d0c83e72ed246219cdd91669667fe2ca59", "Hello, World!", "bad_signature"},
		{"an odd number of digits", githubSecret, "sha256=abc", "Hello, World!", "bad_signature"},
		{"no hex", githubSecret, "sha256=gg" + hello[9:], "Hello, World!", "bad_signature"},
		{"no prefix", githubSecret, hello[7:], "Hello, World!", "bad_signature"},
		{"a prefix in capitals", githubSecret, "SHA256=" + hello[7:], "Hello, World!", "bad_signature"},
		{"an empty signature", githubSecret, "sha256=", "Hello, World!", "bad_signature"},
		{"an empty body", githubSecret, "sha256=66a0c074deaa0f489ead6537e0d32f9a344b90bbeda705b6ed45ecd3b413fb40", "", "valid"},
		{"letters beyond ASCII", githubSecret, "sha256=619712a0be2e9700ec217a88995c6f1ff03be16adda48cb3ca5a56f456650ee9", `{"zen":"Ünïcode"}`, "valid"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			header := http.Header{}
			if tt.header != "" {
				header.Set("X-Hub-Signature-256", tt.header)
			}
			header.Set("X-Hub-Signature", "sha1=01dc10d0c83e72ed246219cdd91669667fe2ca59") // right, and not enough
			_, err := schemeOf(t, Source{Provider: ProviderGitHub}, tt.secret).accept(header, []byte(tt.body), time.Now())
			if got := verdict(err); got != tt.want {
				t.Errorf("accept = %s; want %s", got, tt.want)
			}
		})
	}
}

// TestGitHubEventIsNamedByItsHeaders as far as they can be used.
func TestGitHubEventIsNamedByItsHeaders(t *testing.T) {
	body := []byte("Hello, World!")
	hash := "sha256:" + hexSum(body)
	for _, tt := range []struct{ name, id, event, wantID, wantType string }{
		{"both", "72d3162e-cc78-11e3-81ab-4c9367dc0958", "push", "72d3162e-cc78-11e3-81ab-4c9367dc0958", "push"},
		{"none", "", "", hash, ""},
		{"an id that is too long", strings.Repeat("a", 256), "push", hash, "push"},
		{"an id that is no UTF-8", "a\xff", "push", hash, "push"},
		{"a type that is too long", "d", strings.Repeat("a", 256), "d", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			header := http.Header{
				"X-Hub-Signature-256": {"sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"},
				"X-Github-Delivery":   {tt.id}, "X-Github-Event": {tt.event},
			}
			e, err := schemeOf(t, Source{Provider: ProviderGitHub}, githubSecret).accept(header, body, time.UnixMilli(42))
			if err != nil {
				t.Fatal(err)
			}
			if e.ID != tt.wantID || e.Type != tt.wantType || e.BodyHash != hexSum(body) || e.Scope != "github:x:-" || e.OccurredAt != 42 {
				t.Errorf("event %+v; want id %q, type %q", e, tt.wantID, tt.wantType)
			}
		})
	}
}

// The official vector of Standard Webhooks.
const (
	vectorID   = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	vectorTime = "1614265330"
	vectorBody = `{"test": 2432232314}`
	vectorSig  = "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	otherSig   = "Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc="
)

func TestStandardWebhooksVectors(t *testing.T) {
	at := time.Unix(1614265330, 0)
	for _, tt := range []struct {
		name                     string
		secret                   string
		id, timestamp, signature string
		body                     string
		now                      time.Time
		want                     string
	}{
		{"the official vector", standardSecret, vectorID, vectorTime, "v1," + vectorSig, vectorBody, at, "valid"},
		{"a secret without whsec_", standardSecret[6:], vectorID, vectorTime, "v1," + vectorSig, vectorBody, at, "valid"},
		{"a secret with a newline", standardSecret + "\n", vectorID, vectorTime, "v1," + vectorSig, vectorBody, at, "valid"},
		{"in a list", standardSecret, vectorID, vectorTime, "v1," + otherSig + " v2," + otherSig + " v1," + vectorSig + " v1," + otherSig, vectorBody, at, "valid"},
		{"beside a v1a", standardSecret, vectorID, vectorTime, "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg== v1," + vectorSig, vectorBody, at, "valid"},
		{"another signature", standardSecret, vectorID, vectorTime, "v1," + otherSig, vectorBody, at, "bad_signature"},
		{"an empty signature", standardSecret, vectorID, vectorTime, "v1,", vectorBody, at, "bad_signature"},
		{"no version", standardSecret, vectorID, vectorTime, vectorSig, vectorBody, at, "bad_signature"},
		{"called v1a", standardSecret, vectorID, vectorTime, "v1a," + vectorSig, vectorBody, at, "bad_signature"},
		{"called v2", standardSecret, vectorID, vectorTime, "v2," + vectorSig, vectorBody, at, "bad_signature"},
		{"in small letters", standardSecret, vectorID, vectorTime, "v1," + strings.ToLower(vectorSig), vectorBody, at, "bad_signature"},
		{"a list with commas", standardSecret, vectorID, vectorTime, "v1," + otherSig + ",v1," + vectorSig, vectorBody, at, "bad_signature"},
		{"something behind a comma", standardSecret, vectorID, vectorTime, "v1," + vectorSig + ",junk", vectorBody, at, "bad_signature"},
		{"another spelling of the same bytes", standardSecret, vectorID, vectorTime, "v1," + strings.Replace(vectorSig, "E=", "F=", 1), vectorBody, at, "bad_signature"},
		{"another body", standardSecret, vectorID, vectorTime, "v1," + vectorSig, `{"test":2432232314}`, at, "bad_signature"},
		{"another time", standardSecret, vectorID, "1614265331", "v1," + vectorSig, vectorBody, at, "bad_signature"},
		{"another id", standardSecret, vectorID + "x", vectorTime, "v1," + vectorSig, vectorBody, at, "bad_signature"},
		{"no id", standardSecret, "", vectorTime, "v1," + vectorSig, vectorBody, at, "missing_signature"},
		{"no timestamp", standardSecret, vectorID, "", "v1," + vectorSig, vectorBody, at, "missing_signature"},
		{"no signature", standardSecret, vectorID, vectorTime, "", vectorBody, at, "missing_signature"},
		{"a timestamp that is a word", standardSecret, vectorID, "hello", "v1," + vectorSig, vectorBody, at, "bad_signature"},
		{"a zero before the timestamp", standardSecret, vectorID, "0" + vectorTime, "v1," + vectorSig, vectorBody, at, "bad_signature"},
		{"a plus before the timestamp", standardSecret, vectorID, "+" + vectorTime, "v1," + vectorSig, vectorBody, at, "bad_signature"},
		{"a timestamp with a fraction", standardSecret, vectorID, vectorTime + ".0", "v1," + vectorSig, vectorBody, at, "bad_signature"},
		{"today", standardSecret, vectorID, vectorTime, "v1," + vectorSig, vectorBody, time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), "timestamp_out_of_tolerance"},
		{"six minutes ahead", standardSecret, vectorID, vectorTime, "v1," + vectorSig, vectorBody, at.Add(-6 * time.Minute), "timestamp_out_of_tolerance"},
		{"six minutes old", standardSecret, vectorID, vectorTime, "v1," + vectorSig, vectorBody, at.Add(6 * time.Minute), "timestamp_out_of_tolerance"},
		{"five minutes old", standardSecret, vectorID, vectorTime, "v1," + vectorSig, vectorBody, at.Add(5 * time.Minute), "valid"},
		{"old and forged: the signature is what is wrong", standardSecret, vectorID, "1600000000", "v1," + vectorSig, vectorBody, at, "bad_signature"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			header := http.Header{}
			for name, value := range map[string]string{"Webhook-Id": tt.id, "Webhook-Timestamp": tt.timestamp, "Webhook-Signature": tt.signature} {
				if value != "" {
					header.Set(name, value)
				}
			}
			e, err := schemeOf(t, Source{Provider: ProviderStandard}, tt.secret).accept(header, []byte(tt.body), tt.now)
			if got := verdict(err); got != tt.want {
				t.Fatalf("accept = %s; want %s", got, tt.want)
			}
			if err == nil && (e.ID != vectorID || e.BodyHash != "" || e.Scope != "standard:x:-" || e.OccurredAt.Std() != at.UTC()) {
				t.Errorf("event %+v", e)
			}
		})
	}
}

// signStandard signs as the specification says, apart from our own code.
func signStandard(secret, id, timestamp, body string) string {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		panic(err)
	}
	return "v1," + base64.StdEncoding.EncodeToString(sign(key, []byte(id+"."+timestamp+"."+body)))
}

// TestStandardIDsThatAreTooLongStayApart: the id is signed, so two of them are
// two events even with the same body.
func TestStandardIDsThatAreTooLongStayApart(t *testing.T) {
	s := schemeOf(t, Source{Provider: ProviderStandard}, standardSecret)
	ids := map[string]bool{}
	for _, id := range []string{strings.Repeat("a", 300), strings.Repeat("b", 300)} {
		header := http.Header{"Webhook-Id": {id}, "Webhook-Timestamp": {"1700000000"},
			"Webhook-Signature": {signStandard(standardSecret, id, "1700000000", `{"type":"invoice.sent"}`)}}
		e, err := s.accept(header, []byte(`{"type":"invoice.sent"}`), time.Unix(1700000000, 0))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(e.ID, "sha256:") || e.Type != "invoice.sent" {
			t.Errorf("event %+v", e)
		}
		ids[e.ID] = true
	}
	if len(ids) != 2 {
		t.Errorf("ids %v; want two", ids)
	}
}

func TestConfiguredHMAC(t *testing.T) {
	const now = 1700000000
	body := `{"type":"order.created"}`
	mac := func(text string) []byte { return sign([]byte(hmacSecret), []byte(text)) }
	plain := Source{Provider: ProviderHMAC, SignatureHeader: "x-signature", Prefix: "sha256=", IDHeader: "X-Id"}
	b64 := Source{Provider: ProviderHMAC, SignatureHeader: "X-Signature", Encoding: "base64"}
	timed := Source{Provider: ProviderHMAC, SignatureHeader: "X-Signature", TimestampHeader: "X-Time"}
	hexOf := func(text string) string { return hex.EncodeToString(mac(text)) }
	for _, tt := range []struct {
		name   string
		source Source
		header http.Header
		want   string
		id     string
	}{
		{"hex with a prefix and an id", plain, http.Header{"X-Signature": {"sha256=" + hexOf(body)}, "X-Id": {"m1"}}, "valid", "m1"},
		{"no id", plain, http.Header{"X-Signature": {"sha256=" + hexOf(body)}}, "valid", "sha256:" + hexSum([]byte(body))},
		{"an empty id", plain, http.Header{"X-Signature": {"sha256=" + hexOf(body)}, "X-Id": {""}}, "valid", "sha256:" + hexSum([]byte(body))},
		{"an id of 300 bytes", plain, http.Header{"X-Signature": {"sha256=" + hexOf(body)}, "X-Id": {strings.Repeat("a", 300)}}, "valid", "sha256:" + hexSum([]byte(body))},
		{"an id with an emoji", plain, http.Header{"X-Signature": {"sha256=" + hexOf(body)}, "X-Id": {"🎁"}}, "valid", "🎁"},
		{"no prefix", plain, http.Header{"X-Signature": {hexOf(body)}}, "bad_signature", ""},
		{"no header", plain, http.Header{}, "missing_signature", ""},
		{"no hex", plain, http.Header{"X-Signature": {"sha256=zz"}}, "bad_signature", ""},
		{"another text", plain, http.Header{"X-Signature": {"sha256=" + hexOf(body+"x")}}, "bad_signature", ""},
		{"base64", b64, http.Header{"X-Signature": {base64.StdEncoding.EncodeToString(mac(body))}}, "valid", "sha256:" + hexSum([]byte(body))},
		{"hex where base64 is said", b64, http.Header{"X-Signature": {hexOf(body)}}, "bad_signature", ""},
		{"with a time", timed, http.Header{"X-Time": {strconv.Itoa(now)}, "X-Signature": {hexOf(strconv.Itoa(now) + "." + body)}}, "valid", "sha256:" + hexSum([]byte(body))},
		{"the time is not signed", timed, http.Header{"X-Time": {strconv.Itoa(now)}, "X-Signature": {hexOf(body)}}, "bad_signature", ""},
		{"no time", timed, http.Header{"X-Signature": {hexOf(body)}}, "missing_signature", ""},
		{"a time that is a word", timed, http.Header{"X-Time": {"now"}, "X-Signature": {hexOf("now." + body)}}, "bad_signature", ""},
		{"too old", timed, http.Header{"X-Time": {"1699999699"}, "X-Signature": {hexOf("1699999699." + body)}}, "timestamp_out_of_tolerance", ""},
		{"too far ahead", timed, http.Header{"X-Time": {"1700000301"}, "X-Signature": {hexOf("1700000301." + body)}}, "timestamp_out_of_tolerance", ""},
		{"the largest time", timed, http.Header{"X-Time": {"9223372036854775807"}, "X-Signature": {hexOf("9223372036854775807." + body)}}, "timestamp_out_of_tolerance", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, err := schemeOf(t, tt.source, hmacSecret).accept(tt.header, []byte(body), time.Unix(now, 0))
			if got := verdict(err); got != tt.want {
				t.Fatalf("accept = %s; want %s", got, tt.want)
			}
			if err == nil && (e.ID != tt.id || e.BodyHash != hexSum([]byte(body)) || e.Type != "order.created" || e.OccurredAt != now*1000) {
				t.Errorf("event %+v; want id %q", e, tt.id)
			}
		})
	}
}

func TestSourceThatCannotWorkIsRefused(t *testing.T) {
	good := func(provider string) []Secret { return []Secret{mustSecret(t, provider, standardSecret)} }
	for _, tt := range []struct {
		name   string
		source Source
	}{
		{"no name", Source{Provider: ProviderStripe, Secrets: good(ProviderStripe)}},
		{"a name with a slash", Source{Name: "a/b", Provider: ProviderStripe, Secrets: good(ProviderStripe)}},
		{"no provider", Source{Name: "a", Secrets: good(ProviderStripe)}},
		{"an unknown provider", Source{Name: "a", Provider: "paypal", Secrets: good(ProviderStripe)}},
		{"no secret", Source{Name: "a", Provider: ProviderStripe}},
		{"the zero secret", Source{Name: "a", Provider: ProviderStripe, Secrets: []Secret{{}}}},
		{"a zero secret beside a good one", Source{Name: "a", Provider: ProviderHMAC, SignatureHeader: "X", Secrets: append(good(ProviderHMAC), Secret{})}},
		{"an account that is none", Source{Name: "a", Provider: ProviderStripe, Account: "shop", Secrets: good(ProviderStripe)}},
		{"a foreign that is none", Source{Name: "a", Provider: ProviderStripe, Foreign: "maybe", Secrets: good(ProviderStripe)}},
		{"hmac without a header", Source{Name: "a", Provider: ProviderHMAC, Secrets: good(ProviderHMAC)}},
		{"hmac with an unknown encoding", Source{Name: "a", Provider: ProviderHMAC, SignatureHeader: "X", Encoding: "rot13", Secrets: good(ProviderHMAC)}},
		{"a negative size", Source{Name: "a", Provider: ProviderStripe, MaxBody: -1, Secrets: good(ProviderStripe)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := tt.source.configure(); err == nil {
				t.Error("configure took it")
			} else if strings.Contains(err.Error(), standardSecret) {
				t.Errorf("the error holds the secret: %v", err)
			}
		})
	}
}

func TestScopes(t *testing.T) {
	for _, tt := range []struct {
		name    string
		source  Source
		account string
		live    bool
		want    string
	}{
		{"the own account in the sandbox", Source{Name: "stripe", Provider: ProviderStripe}, "", false, "stripe:self:test"},
		{"the own account, live", Source{Name: "stripe", Provider: ProviderStripe, Account: "self"}, "", true, "stripe:self:live"},
		{"a named account", Source{Name: "a", Provider: ProviderStripe, Account: "acct_1A"}, "", true, "stripe:acct_1A:live"},
		{"a connected account", Source{Name: "a", Provider: ProviderStripe, Account: "*"}, "acct_2B", false, "stripe:acct_2B:test"},
		{"the platform", Source{Name: "a", Provider: ProviderStripe, Account: "*"}, "", false, "stripe:self:test"},
		{"github", Source{Name: "repo", Provider: ProviderGitHub}, "", true, "github:repo:-"},
		{"standard", Source{Name: "svc", Provider: ProviderStandard}, "", false, "standard:svc:-"},
		{"hmac", Source{Name: "svc", Provider: ProviderHMAC}, "", false, "hmac:svc:-"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.source.Scope(tt.account, tt.live); got != tt.want {
				t.Errorf("Scope = %q; want %q", got, tt.want)
			}
		})
	}
}

func FuzzStandardSignature(f *testing.F) {
	f.Add(vectorID, vectorTime, "v1,"+vectorSig)
	f.Add(vectorID, vectorTime, "v1,"+otherSig+" v1,"+vectorSig)
	f.Add("", "", "")
	f.Add(vectorID, "0"+vectorTime, "v1a,"+vectorSig+" ")
	f.Add(vectorID, "9223372036854775807", "v1,")
	s := schemeOf(f, Source{Provider: ProviderStandard}, standardSecret)
	f.Fuzz(func(t *testing.T, id, timestamp, list string) {
		header := http.Header{"Webhook-Id": {id}, "Webhook-Timestamp": {timestamp}, "Webhook-Signature": {list}}
		e, err := s.accept(header, []byte(vectorBody), time.Unix(1614265330, 0))
		if err != nil {
			if v := verdict(err); v != "bad_signature" && v != "missing_signature" && v != "timestamp_out_of_tolerance" {
				t.Fatalf("%q %q %q: %s", id, timestamp, list, v)
			}
			return
		}
		if !strings.Contains(list, signStandard(standardSecret, id, timestamp, vectorBody)) {
			t.Fatalf("%q %q %q was taken", id, timestamp, list)
		}
		if e.ID == "" || len(e.ID) > 255 {
			t.Fatalf("id %q", e.ID)
		}
	})
}
