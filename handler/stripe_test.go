package handler

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// verdict is the code of a scheme's refusal; "valid" is none.
func verdict(err error) string {
	var f *failure
	switch {
	case err == nil:
		return "valid"
	case errors.As(err, &f):
		return f.code
	}
	return "not a failure: " + err.Error()
}

func stripeScheme(t testing.TB, secrets ...string) *stripe {
	t.Helper()
	s := Source{Name: "stripe", Provider: ProviderStripe}
	for _, text := range secrets {
		s.Secrets = append(s.Secrets, mustSecret(t, ProviderStripe, text))
	}
	c, err := s.configure()
	if err != nil {
		t.Fatal(err)
	}
	return c.scheme.(*stripe)
}

// TestStripeOfficialVector is stripe-dotnet's, with its cases and ours.
func TestStripeOfficialVector(t *testing.T) {
	body, err := os.ReadFile("../../shared/fixtures/stripe-dotnet__customer.created__1.json")
	if err != nil {
		t.Skip("the collected fixtures are not here: ", err)
	}
	const (
		signed = 1533204620
		v1Part = "v1=2220f87ef101a04665f11cdf770523143f875572008577fa0f20882ddb9cc3c7"
		v0Part = "v0=63f3a72374a733066c4be69ed7f8e5ac85c22c9f0a6a612ab9a025a9e4ee7eef"
		header = "t=1533204620," + v1Part + "," + v0Part
	)
	for _, tt := range []struct {
		name   string
		header string
		body   string
		now    int64
		want   string
	}{
		{"as it is", header, string(body), signed + 100, "valid"},
		{"with a v1 that is no hex beside it", header + ",v1=invalid", string(body), signed + 100, "valid"},
		{"with another v1 beside it", header + ",v1=" + strings.Repeat("deadbeef", 8), string(body), signed + 100, "valid"},
		{"300 seconds old", header, string(body), signed + 300, "valid"},
		{"301 seconds old", header, string(body), signed + 301, "timestamp_out_of_tolerance"},
		{"300 seconds ahead", header, string(body), signed - 300, "valid"},
		{"301 seconds ahead", header, string(body), signed - 301, "timestamp_out_of_tolerance"},
		{"a body with a byte more", header, string(body) + "x", signed + 100, "bad_signature"},
		{"an empty t", "t=," + v1Part, string(body), signed + 100, "bad_signature"},
		{"a bare t, empty signatures", "t,v1=,v0=", string(body), signed + 100, "bad_signature"},
		{"a bare t, an empty part at the end", "t,v1=,", string(body), signed + 100, "bad_signature"},
		{"a bare t and commas", "t,,", string(body), signed + 100, "bad_signature"},
		{"commas alone", ",,", string(body), signed + 100, "bad_signature"},
		{"a bare t alone", "t", string(body), signed + 100, "bad_signature"},
		{"v0 alone", "t=1533204620," + v0Part, string(body), signed + 100, "bad_signature"},
		{"v0's signature called v1", "t=1533204620,v1=" + v0Part[3:], string(body), signed + 100, "bad_signature"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := stripeScheme(t, "webhook_secret")
			err := s.verify(http.Header{"Stripe-Signature": {tt.header}}, []byte(tt.body), time.Unix(tt.now, 0))
			if got := verdict(err); got != tt.want {
				t.Errorf("verify = %s (%v); want %s", got, err, tt.want)
			}
		})
	}
}

func TestStripeComputedVectors(t *testing.T) {
	s := stripeScheme(t, "whsec_test_secret")
	for _, tt := range []struct{ name, body, v1 string }{
		{"an empty object", `{}`, "ceb8863f7208fa249a6cd8f951e993c7563412aca65866f6272283debe143ab3"},
		{"an empty body", ``, "316b9ab98c15bfa039d243f3196acee619cf29749a91a634e6a8154e2f7b6727"},
		{"a small event", `{"id":"evt_vector","object":"event"}`, "3e682990b029a0917b5531611fe029b0881af7e820623fa162673dbc07e6dd87"},
		{"the same with a newline", "{\"id\":\"evt_vector\",\"object\":\"event\"}\n", "549ea1ef36ed11b1f2a8ab74aa3a043314e45bc5494623ce832238be5f8945ea"},
		{"letters beyond ASCII", `{"id":"evt_ü","object":"event","note":"日本 €"}`, "a775f968aa11d8e7c883b75c2631a1b0d088eef28d7d1975fb6eef4bbb98234d"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			header := http.Header{"Stripe-Signature": {"t=1700000000,v1=" + tt.v1}}
			if err := s.verify(header, []byte(tt.body), time.Unix(1700000000, 0)); err != nil {
				t.Errorf("verify = %v; want it valid", err)
			}
			if err := s.verify(header, []byte(tt.body+" "), time.Unix(1700000000, 0)); verdict(err) != "bad_signature" {
				t.Errorf("verify with a blank more = %v; want bad_signature", err)
			}
		})
	}
}

// TestStripeHeaderTable has every row that was measured of stripe-go's parser,
// with our own rules where it is too kind.
func TestStripeHeaderTable(t *testing.T) {
	const now = 1700000000
	body := []byte(`{"id":"evt_vector","object":"event"}`)
	const secret = "whsec_test_secret"
	good := v1(now, body, secret)
	at := func(t int64) string { return fmt.Sprintf("t=%d,v1=%s", t, v1(t, body, secret)) }
	const yearOne = -62135596800 // what stripe-go verifies against when there is no t
	for _, tt := range []struct{ name, header, want string }{
		{"good", "t=1700000000,v1=" + good, "valid"},
		{"empty", "", "missing_signature"},
		{"a word", "abc", "bad_signature"},
		{"a comma at the end", "t=1700000000,v1=" + good + ",", "bad_signature"},
		{"an equals sign too many", "t=1700000000,v1=" + good + "=", "bad_signature"},
		{"an empty t", "t=,v1=" + good, "bad_signature"},
		{"a t that is a word", "t=abc,v1=" + good, "bad_signature"},
		{"a t above int64", "t=9223372036854775808,v1=" + good, "bad_signature"},
		{"a blank after the comma", "t=1700000000, v1=" + good, "bad_signature"},
		{"a blank before t", " t=1700000000,v1=" + good, "bad_signature"},
		{"no t", "v1=" + good, "bad_signature"},
		{"no t, signed for the year 1", "v1=" + v1(yearOne, body, secret), "bad_signature"},
		{"a t of the year 1, and signed for it", at(yearOne), "timestamp_out_of_tolerance"},
		{"t alone", "t=1700000000", "bad_signature"},
		{"v0 alone", "t=1700000000,v0=" + good, "bad_signature"},
		{"an empty v1", "t=1700000000,v1=", "bad_signature"},
		{"half a signature", "t=1700000000,v1=" + good[:32], "bad_signature"},
		{"63 digits", "t=1700000000,v1=" + good[:63], "bad_signature"},
		{"65 digits", "t=1700000000,v1=" + good + "0", "bad_signature"},
		{"two v1, one of them right", "t=1700000000,v1=" + strings.Repeat("ab", 32) + ",v1=" + good, "valid"},
		{"no hex and a right one", "t=1700000000,v1=zz,v1=" + good, "valid"},
		{"two t, the last one counts", "t=1,v1=" + good + ",t=1700000000", "valid"},
		{"two t, the first one was signed for", "t=1700000000,v1=" + good + ",t=1", "bad_signature"},
		{"two t, the last one is a word", "t=1700000000,v1=" + good + ",t=x", "bad_signature"},
		{"capital digits", "t=1700000000,v1=" + strings.ToUpper(good), "valid"},
		{"a t with a plus", "t=+1700000000,v1=" + good, "valid"},
		{"a t with a zero in front", "t=01700000000,v1=" + good, "valid"},
		{"a t of zero, and signed for it", at(0), "timestamp_out_of_tolerance"},
		{"ten years ahead", at(now + 10*365*86400), "timestamp_out_of_tolerance"},
		{"the largest t", at(9223372036854775807), "timestamp_out_of_tolerance"},
		{"the smallest t", at(-9223372036854775808), "timestamp_out_of_tolerance"},
		{"299 seconds old", at(now - 299), "valid"},
		{"300 seconds old", at(now - 300), "valid"},
		{"301 seconds old", at(now - 301), "timestamp_out_of_tolerance"},
		{"300 seconds ahead", at(now + 300), "valid"},
		{"301 seconds ahead", at(now + 301), "timestamp_out_of_tolerance"},
		{"old and forged: the signature is what is wrong", "t=1600000000,v1=" + strings.Repeat("ab", 32), "bad_signature"},
		{"signed with the empty key", "t=1700000000,v1=" + v1(now, body, ""), "bad_signature"},
		{"signed with a newline after the secret", "t=1700000000,v1=" + v1(now, body, secret+"\n"), "bad_signature"},
		{"signed with a blank before the secret", "t=1700000000,v1=" + v1(now, body, " "+secret), "bad_signature"},
		{"signed without whsec_", "t=1700000000,v1=" + v1(now, body, "test_secret"), "bad_signature"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := stripeScheme(t, secret)
			header := http.Header{"Stripe-Signature": {tt.header}}
			if got := verdict(s.verify(header, body, time.Unix(now, 0))); got != tt.want {
				t.Errorf("verify = %s; want %s", got, tt.want)
			}
		})
	}
	t.Run("half a second more than 300 seconds", func(t *testing.T) {
		s := stripeScheme(t, secret)
		header := http.Header{"Stripe-Signature": {"t=1700000000,v1=" + good}}
		if got := verdict(s.verify(header, body, time.UnixMilli(now*1000+300_500))); got != "timestamp_out_of_tolerance" {
			t.Errorf("verify = %s; want timestamp_out_of_tolerance", got)
		}
	})
}

// TestEverySecretAndSignatureIsTried is the roll of a secret (cases.md B13).
func TestEverySecretAndSignatureIsTried(t *testing.T) {
	const now = 1700000000
	body := []byte(`{}`)
	before, after := v1(now, body, "whsec_old"), v1(now, body, "whsec_new")
	rolling := []string{"whsec_new", "whsec_old"}
	bogus := strings.Repeat("v1="+strings.Repeat("0", 64)+",", 5000)
	for _, tt := range []struct {
		name    string
		secrets []string
		header  []string
		want    string
	}{
		{"both signatures", rolling, []string{"t=1700000000,v1=" + before + ",v1=" + after}, "valid"},
		{"the old one alone", rolling, []string{"t=1700000000,v1=" + before}, "valid"},
		{"the new one alone", rolling, []string{"t=1700000000,v1=" + after}, "valid"},
		{"no downgrade to v0", rolling, []string{"t=1700000000,v0=" + after}, "bad_signature"},
		{"a blank after the comma is always refused", rolling, []string{"t=1700000000, v1=" + after}, "bad_signature"},
		{"of two header lines the first counts", rolling, []string{"t=1700000000,v1=00", "t=1700000000,v1=" + after}, "bad_signature"},
		{"of two header lines the first is enough", rolling, []string{"t=1700000000,v1=" + after, "t=1700000000,v1=00"}, "valid"},
		{"five thousand others before it", rolling, []string{"t=1700000000," + bogus + "v1=" + after}, "valid"},
		{"the old one after the roll", []string{"whsec_new"}, []string{"t=1700000000,v1=" + before}, "bad_signature"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := stripeScheme(t, tt.secrets...)
			if got := verdict(s.verify(http.Header{"Stripe-Signature": tt.header}, body, time.Unix(now, 0))); got != tt.want {
				t.Errorf("verify = %s; want %s", got, tt.want)
			}
		})
	}
}

// TestWhoseEventItIs is the envelope's part, by source and account.
func TestWhoseEventItIs(t *testing.T) {
	for _, tt := range []struct {
		name          string
		account, own  string // the source's
		foreign       string
		live          bool
		body          string
		code          string // of the refusal; "valid" is none
		scope, tenant string
		ignored       bool
	}{
		{name: "no account under self", body: `{"id":"e","type":"t","livemode":false}`, code: "valid", scope: "stripe:self:test", tenant: "main"},
		{name: "a null account under self", body: `{"id":"e","type":"t","livemode":false,"account":null}`, code: "valid", scope: "stripe:self:test", tenant: "main"},
		{name: "live where it is live", live: true, body: `{"id":"e","type":"t","livemode":true}`, code: "valid", scope: "stripe:self:live", tenant: "main"},
		{name: "an account under self", body: `{"id":"e","type":"t","livemode":false,"account":"acct_B"}`, code: "wrong_account"},
		{name: "no account under its own", account: "acct_1A", body: `{"id":"e","type":"t","livemode":false}`, code: "valid", scope: "stripe:acct_1A:test", tenant: "main"},
		{name: "its own account", account: "acct_1A", body: `{"id":"e","type":"t","livemode":false,"account":"acct_1A"}`, code: "valid", scope: "stripe:acct_1A:test", tenant: "main"},
		{name: "another account", account: "acct_1A", body: `{"id":"e","type":"t","livemode":false,"account":"acct_1a"}`, code: "wrong_account"},
		{name: "any account under *", account: "*", body: `{"id":"e","type":"t","livemode":false,"account":"acct_B"}`, code: "valid", scope: "stripe:acct_B:test", tenant: "acct_B"},
		{name: "no account under *", account: "*", body: `{"id":"e","type":"t","livemode":false}`, code: "valid", scope: "stripe:self:test", tenant: "main"},
		{name: "a tenant's name as account under *", account: "*", body: `{"id":"e","type":"t","livemode":false,"account":"main"}`, code: "valid", scope: "stripe:main:test", tenant: "foreign:main", ignored: true},
		{name: "live in the sandbox", body: `{"id":"e","type":"t","livemode":true}`, code: "wrong_mode"},
		{name: "test money in a live shop", live: true, body: `{"id":"e","type":"t","livemode":false}`, code: "wrong_mode"},
		{name: "live in the sandbox under * is recorded", account: "*", body: `{"id":"e","type":"t","livemode":true}`, code: "valid", scope: "stripe:self:live", tenant: "foreign:live", ignored: true},
		{name: "under * and reject", account: "*", foreign: ForeignReject, body: `{"id":"e","type":"t","livemode":true}`, code: "wrong_mode"},
		{name: "another account under ignore", foreign: ForeignIgnore, body: `{"id":"e","type":"t","livemode":false,"account":"acct_B"}`, code: "valid", scope: "stripe:acct_B:test", tenant: "foreign:acct_B", ignored: true},
		{name: "test money in a live shop under ignore", live: true, foreign: ForeignIgnore, body: `{"id":"e","type":"t","livemode":false}`, code: "valid", scope: "stripe:self:test", tenant: "foreign:test", ignored: true},
		{name: "no livemode is for the worker to judge", body: `{"id":"e","type":"t"}`, code: "valid", scope: "stripe:self:test", tenant: "main"},
		{name: "an account that is no string too", body: `{"id":"e","type":"t","livemode":false,"account":7}`, code: "valid", scope: "stripe:self:test", tenant: "main"},
		{name: "the account is judged before the mode", body: `{"id":"e","type":"t","livemode":true,"account":"acct_B"}`, code: "wrong_account"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			src := Source{Name: "s", Provider: ProviderStripe, Account: tt.account, Foreign: tt.foreign, Live: tt.live,
				Secrets: []Secret{mustSecret(t, ProviderStripe, stripeSecret)}}
			c, err := src.configure()
			if err != nil {
				t.Fatal(err)
			}
			e, err := c.scheme.(*stripe).event([]byte(tt.body))
			if got := verdict(err); got != tt.code {
				t.Fatalf("event = %s; want %s", got, tt.code)
			}
			if e.Scope != tt.scope || e.Tenant != tt.tenant || (e.Ignored != "") != tt.ignored {
				t.Errorf("scope %q, tenant %q, ignored %q; want %q, %q, %v", e.Scope, e.Tenant, e.Ignored, tt.scope, tt.tenant, tt.ignored)
			}
		})
	}
}

// TestABodyWithoutAnIDIsKeptUnderItsHash in the scope of the source's own
// account and mode, whatever else it says.
func TestABodyWithoutAnIDIsKeptUnderItsHash(t *testing.T) {
	for _, body := range []string{
		``, `x`, `null`, `[]`, `{}`, `{"id":""}`, `{"id":7}`, `{"id":"a","id":"b"}`, `{"ID":"evt_1"}`,
		`{"id":"` + strings.Repeat("a", 256) + `"}`, "{\"id\":\"evt_1\"\xff}", `{"account":"acct_B"}`, `{"type":"t"} {}`,
	} {
		src := Source{Name: "s", Provider: ProviderStripe, Account: "*", Secrets: []Secret{mustSecret(t, ProviderStripe, stripeSecret)}}
		c, err := src.configure()
		if err != nil {
			t.Fatal(err)
		}
		e, err := c.scheme.(*stripe).event([]byte(body))
		if err != nil {
			t.Errorf("%.40q: %v", body, err)
			continue
		}
		if want := hashID([]byte(body)); e.ID != want || e.Scope != "stripe:self:test" {
			t.Errorf("%.40q: id %q in %q; want %q in stripe:self:test", body, e.ID, e.Scope, want)
		}
	}
}

func FuzzStripeHeader(f *testing.F) {
	const now = 1700000000
	body := []byte(`{"id":"evt_vector","object":"event"}`)
	good := v1(now, body, "whsec_new")
	for _, seed := range []string{
		"", "t", ",,", "t=1700000000,v1=" + good, "v1=" + good + ",t=1700000000", "t=1,t=1700000000,v1=00,v1=" + good,
		"t=1700000000, v1=" + good, "t=-9223372036854775808,v1=00", "t=1700000000,v0=" + good,
	} {
		f.Add(seed)
	}
	s := stripeScheme(f, "whsec_old", "whsec_new")
	f.Fuzz(func(t *testing.T, line string) {
		err := s.verify(http.Header{"Stripe-Signature": {line}}, body, time.Unix(now, 0))
		if err != nil {
			if v := verdict(err); v != "bad_signature" && v != "missing_signature" && v != "timestamp_out_of_tolerance" {
				t.Fatalf("%q: %s", line, v)
			}
			return
		}
		// Nobody can make up a signature: a header that is taken holds ours,
		// for the very second that we read from it.
		seconds, ok := stripeTimestamp(line)
		if !ok || !strings.Contains(strings.ToLower(line), "v1="+v1(seconds, body, "whsec_new")) &&
			!strings.Contains(strings.ToLower(line), "v1="+v1(seconds, body, "whsec_old")) {
			t.Fatalf("%q was taken", line)
		}
	})
}
