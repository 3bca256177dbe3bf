package send

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"paidonce/store"
)

// noon is the time of every attempt in the tests with an injected clock.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func atNoon() time.Time { return noon }

var testSecret = "whsec_" + base64.StdEncoding.EncodeToString([]byte("0123456789abcdef01234567"))

func testClaim() store.EffectClaim {
	return store.EffectClaim{
		Key: "po_main:ORD-1:order.paid:app", Operation: "order.paid", Kind: store.KindHTTP, Target: "app",
		Body: []byte(`{"type":"order.paid", "data" : {"note":"ü <>& \u2028"}}`), Attempt: 3, Order: "ORD-1",
		CreatedAt: store.At(noon.Add(-time.Hour)),
	}
}

func newHTTP(t *testing.T, cfg HTTPConfig) *HTTP {
	t.Helper()
	if cfg.Now == nil {
		cfg.Now = atNoon
	}
	h, err := NewHTTP(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// serve runs a receiver until the test ends.
func serve(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s
}

// TestHTTPRequest: what the receiver gets is the frozen body and the key of the
// effect, signed so that the library verifies it.
func TestHTTPRequest(t *testing.T) {
	for _, tt := range []struct{ name, secret string }{
		{"with a secret the call is signed", testSecret},
		{"without a secret it has its id and no signature", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got *http.Request
			var body []byte
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				got = r
				body, _ = io.ReadAll(r.Body)
			})
			h := newHTTP(t, HTTPConfig{URL: strings.Replace(s.URL, "http://", "http://us:pa%2Fss@", 1) + "/paid?t=1", Secret: tt.secret, UserAgent: "paidonce/1.2.3"})
			c := testClaim()
			if a := h.Send(t.Context(), c); a.Outcome != store.OutcomeDone {
				t.Fatalf("Send = %+v; want done", a)
			}
			if !bytes.Equal(body, c.Body) {
				t.Errorf("body = %q; want %q", body, c.Body)
			}
			if got.Method != http.MethodPost || got.RequestURI != "/paid?t=1" {
				t.Errorf("request = %s %s; want POST /paid?t=1", got.Method, got.RequestURI)
			}
			for name, want := range map[string]string{
				"Content-Type": "application/json", "User-Agent": "paidonce/1.2.3", "Idempotency-Key": c.Key,
				"Webhook-Id": c.Key, "Webhook-Timestamp": strconv.FormatInt(noon.Unix(), 10),
				"Accept-Encoding": "",
			} {
				if got.Header.Get(name) != want {
					t.Errorf("%s = %q; want %q", name, got.Header.Get(name), want)
				}
			}
			if got.ContentLength != int64(len(c.Body)) {
				t.Errorf("Content-Length = %d; want %d", got.ContentLength, len(c.Body))
			}
			if user, password, _ := got.BasicAuth(); user != "us" || password != "pa/ss" {
				t.Errorf("basic auth = %q, %q; want us, pa/ss", user, password)
			}
			if tt.secret == "" {
				if v, ok := got.Header["Webhook-Signature"]; ok {
					t.Errorf("signature = %q; want none", v)
				}
				return
			}
			verifier, err := standardwebhooks.NewWebhook(tt.secret)
			if err != nil {
				t.Fatal(err)
			}
			if err := verifier.VerifyIgnoringTimestamp(body, got.Header); err != nil {
				t.Errorf("the library refuses the signature: %v", err)
			}
		})
	}
}

// TestHTTPOutcome: each status has one meaning.
func TestHTTPOutcome(t *testing.T) {
	const done, again, refused = store.OutcomeDone, store.OutcomeAgain, store.OutcomeRefused
	for _, tt := range []struct {
		name       string
		status     int
		retryAfter string
		want       store.Outcome
		code       string
		wait       time.Duration
	}{
		{"200 is done", 200, "", done, "", 0},
		{"204 is done", 204, "60", done, "", 0},
		{"299 is done", 299, "", done, "", 0},
		{"a redirect for good is refused", 301, "", refused, "", 0},
		{"a redirect that keeps the method is refused", 307, "60", refused, "", 0},
		{"304 is refused", 304, "", refused, "", 0},
		{"400 is refused", 400, "", refused, "", 0},
		{"401 is refused", 401, "", refused, "", 0},
		{"404 is refused", 404, "60", refused, "", 0},
		{"408 may go again", 408, "", again, "", 0},
		{"409 may go again", 409, "", again, "", 0},
		{"410 is refused for good", 410, "", refused, "gone", 0},
		{"422 is refused", 422, "", refused, "", 0},
		{"425 may go again", 425, "", again, "", 0},
		{"429 with seconds says when", 429, "120", again, "", 2 * time.Minute},
		{"500 may go again", 500, "", again, "", 0},
		{"503 with a date says when", 503, "Sun, 01 Mar 2026 12:01:30 GMT", again, "", 90 * time.Second},
		{"599 may go again", 599, "", again, "", 0},
		{"a status of no class is refused", 700, "", refused, "", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var calls atomic.Int32
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				calls.Add(1)
				w.Header().Set("Location", "/elsewhere")
				if tt.retryAfter != "" {
					w.Header().Set("Retry-After", tt.retryAfter)
				}
				w.WriteHeader(tt.status)
			})
			a := newHTTP(t, HTTPConfig{URL: s.URL + "/cb?token=TOKMARK", Secret: testSecret}).Send(t.Context(), testClaim())
			if a.Outcome != tt.want || a.Status != tt.status || a.Code != tt.code || a.RetryAfter != tt.wait {
				t.Errorf("Send = %+v; want %s, code %q, after %s", a, tt.want, tt.code, tt.wait)
			}
			if (a.Error == "") != (tt.want == done) || len(a.Error) > 200 || strings.Contains(a.Error, "TOKMARK") || strings.Contains(a.Error, "/cb") {
				t.Errorf("Error = %q", a.Error)
			}
			if n := calls.Load(); n != 1 {
				t.Errorf("%d calls; want 1", n)
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	for _, tt := range []struct {
		name, value string
		want        time.Duration
	}{
		{"nothing is nothing", "", 0},
		{"seconds count", "120", 2 * time.Minute},
		{"blanks around are not part of it", " 7 ", 7 * time.Second},
		{"zero is at once", "0", 0},
		{"a date counts from now", "Sun, 01 Mar 2026 12:01:30 GMT", 90 * time.Second},
		{"a date that has passed is nothing", "Sun, 01 Mar 2026 11:00:00 GMT", 0},
		{"the year 9999 is a long time", "Fri, 31 Dec 9999 23:59:59 GMT", maxRetryAfter},
		{"seconds that overflow a duration are a long time", "9999999999999", maxRetryAfter},
		{"digits that overflow an integer are a long time", strings.Repeat("9", 400), maxRetryAfter},
		{"a negative number is nothing", "-5", 0},
		{"a sign is nothing", "+5", 0},
		{"a fraction is nothing", "1.5", 0},
		{"a word is nothing", "soon", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := retryAfter(tt.value, noon); got != tt.want {
				t.Errorf("retryAfter(%.30q) = %s; want %s", tt.value, got, tt.want)
			}
		})
	}
}

// TestHTTPWithoutAnswer: a call without an answer may go again, and what is
// said of it gives nothing away.
func TestHTTPWithoutAnswer(t *testing.T) {
	hang := make(chan struct{})
	silent := serve(t, func(http.ResponseWriter, *http.Request) { <-hang })
	t.Cleanup(func() { close(hang) }) // before the server is closed
	cut := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, _ := w.(http.Hijacker).Hijack()
		conn.Close()
	})
	junk := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, _ := w.(http.Hijacker).Hijack()
		_, _ = io.WriteString(conn, "SSH-2.0-ANSWERMARK\r\n\r\n")
		conn.Close()
	})
	long := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Long", strings.Repeat("x", 1<<20))
	})
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)

	for _, tt := range []struct {
		name, base, says string
		transport        http.RoundTripper
	}{
		{"nobody listens", "http://" + closedPort(t), "connection refused", nil},
		{"no answer comes in time", silent.URL, "no answer within", nil},
		{"the connection is cut", cut.URL, "closed before an answer", nil},
		{"what comes is not HTTP", junk.URL, "no answer that could be read", nil},
		{"the headers have no end", long.URL, "no answer that could be read", nil},
		{"the certificate is nobody's", secure.URL, "certificate", nil},
		{"there is no TLS on that port", strings.Replace(cut.URL, "http://", "https://", 1), "does not speak TLS", nil},
		{"the name is not known", "http://host.invalid", "host not found", failing{&net.DNSError{Err: "no such host URLMARK", Name: "host.invalid", IsNotFound: true}}},
		{"an error of an unknown kind", "http://host.invalid", "no answer that could be read", failing{errors.New("dial https://u:URLMARK@x/")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			target := strings.Replace(tt.base, "://", "://u:P%2FPASSMARK@", 1) + "/PATHMARK?token=TOKMARK"
			timeout := time.Minute
			if tt.base == silent.URL {
				timeout = 50 * time.Millisecond
			}
			h := newHTTP(t, HTTPConfig{URL: target, Secret: testSecret, Timeout: timeout, Transport: tt.transport})
			a := h.Send(t.Context(), testClaim())
			if a.Outcome != store.OutcomeAgain || a.Status != 0 {
				t.Errorf("Send = %+v; want again", a)
			}
			if !strings.Contains(a.Error, tt.says) {
				t.Errorf("Error = %q; want %q in it", a.Error, tt.says)
			}
			for _, mark := range []string{"MARK", "u:", "whsec"} {
				if strings.Contains(a.Error, mark) {
					t.Errorf("Error = %q holds %q", a.Error, mark)
				}
			}
		})
	}
}

func TestHTTPStopped(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then does the server see that the caller left
		stop()
		<-r.Context().Done()
	})
	a := newHTTP(t, HTTPConfig{URL: s.URL}).Send(ctx, testClaim())
	if a.Outcome != store.OutcomeAgain || !strings.Contains(a.Error, "stopping") {
		t.Errorf("Send = %+v; want again, because paidonce is stopping", a)
	}
}

// TestHTTPOneCall: a connection that breaks under a call is not tried again by
// the transport, although there is an Idempotency-Key.
func TestHTTPOneCall(t *testing.T) {
	var calls atomic.Int32
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) > 1 { // on the connection of the first call
			conn, _, _ := w.(http.Hijacker).Hijack()
			conn.Close()
		}
	})
	h := newHTTP(t, HTTPConfig{URL: s.URL})
	if a := h.Send(t.Context(), testClaim()); a.Outcome != store.OutcomeDone {
		t.Fatalf("first Send = %+v; want done", a)
	}
	if a := h.Send(t.Context(), testClaim()); a.Outcome != store.OutcomeAgain {
		t.Errorf("second Send = %+v; want again", a)
	}
	if n := calls.Load(); n != 2 {
		t.Errorf("%d calls; want 2", n)
	}
}

// TestHTTPAnswerBody: an answer is kept up to a bound, and one that breaks off
// does not take back its status.
func TestHTTPAnswerBody(t *testing.T) {
	for _, tt := range []struct {
		name string
		body io.Reader
		want string
	}{
		{"a short answer is kept whole", strings.NewReader("ok"), "ok"},
		{"a long one is cut", io.LimitReader(endless{}, 1<<30), strings.Repeat("x", store.MaxAnswerBody)},
		{"one that breaks off is kept as far as it came", io.MultiReader(strings.NewReader("half"), broken{}), "half"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			closed := false
			h := newHTTP(t, HTTPConfig{URL: "http://shop.example/", Transport: answering{tt.body, &closed}})
			a := h.Send(t.Context(), testClaim())
			if a.Outcome != store.OutcomeDone || a.Status != 200 || string(a.Body) != tt.want {
				t.Errorf("Send = %s %d with %d bytes; want done 200 with %d", a.Outcome, a.Status, len(a.Body), len(tt.want))
			}
			if !closed {
				t.Error("the body of the answer is still open")
			}
		})
	}
}

// TestHTTPTransport: no proxy is taken from the environment, whose answer for
// loopback would be none anyway.
func TestHTTPTransport(t *testing.T) {
	if newTransport().Proxy != nil {
		t.Error("the transport asks for a proxy")
	}
}

func TestHTTPKeyMustFitAHeader(t *testing.T) {
	for _, key := range []string{"", "a\r\nX-Evil: 1", "a\x00"} {
		c := testClaim()
		c.Key = key
		a := newHTTP(t, HTTPConfig{URL: "http://shop.example/", Transport: failing{errors.New("called")}}).Send(t.Context(), c)
		if a.Outcome != store.OutcomeRefused {
			t.Errorf("Send with key %q = %+v; want refused without a call", key, a)
		}
	}
}

func TestNewHTTPRefuses(t *testing.T) {
	b64 := func(n int) string { return base64.StdEncoding.EncodeToString(make([]byte, n)) }
	const good = "https://shop.example/paid"
	for _, tt := range []struct{ name, url, secret string }{
		{"an empty url", "", ""},
		{"another scheme", "ftp://shop.example/URLMARK", ""},
		{"a url without a scheme", "shop.example/URLMARK", ""},
		{"a url without a host", "http:///URLMARK", ""},
		{"a port without a host", "http://:80/URLMARK", ""},
		{"an opaque url", "http:URLMARK", ""},
		{"a fragment", good + "#URLMARK", ""},
		{"an empty fragment", good + "#", ""},
		{"a url that cannot be read", "http://u:URLMARK@%zz/", ""},
		{"a port out of range", "http://shop.example:70000/URLMARK", ""},
		{"a line break", good + "\nURLMARK", ""},
		{"blanks around the url", " " + good, ""},
		{"a secret that is only the prefix", good, "whsec_"},
		{"a secret of blanks", good, "   "},
		{"a secret without the prefix", good, b64(32)},
		{"a key of Stripe", good, "sk_test_KEYMARK"},
		{"a blank within the secret", good, "whsec_" + b64(16) + " " + b64(16)},
		{"a line break after the secret", good, testSecret + "\n"},
		{"broken base64", good, "whsec_WHMARK*" + b64(32)},
		{"base64 with bits left over", good, "whsec_" + strings.Repeat("A", 33) + "B=="},
		{"a secret of 23 bytes", good, "whsec_" + b64(23)},
		{"a secret of 65 bytes", good, "whsec_" + b64(65)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := NewHTTP(HTTPConfig{URL: tt.url, Secret: tt.secret, Now: atNoon})
			if err == nil {
				t.Fatal("NewHTTP accepts it")
			}
			if strings.Contains(err.Error(), "MARK") {
				t.Errorf("err = %q quotes the url or the secret", err)
			}
		})
	}
	for _, n := range []int{24, 64} {
		if _, err := NewHTTP(HTTPConfig{URL: good, Secret: "whsec_" + b64(n), Now: atNoon}); err != nil {
			t.Errorf("a secret of %d bytes: %v", n, err)
		}
	}
	if _, err := NewHTTP(HTTPConfig{URL: good}); err == nil {
		t.Error("NewHTTP accepts a missing clock")
	}
}

// closedPort is an address on loopback that nobody listens on.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// failing is a transport without an answer.
type failing struct{ err error }

func (f failing) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.err }

// answering is a transport that answers 200.
type answering struct {
	body   io.Reader
	closed *bool
}

func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Body: a}, nil
}
func (a answering) Read(p []byte) (int, error) { return a.body.Read(p) }
func (a answering) Close() error               { *a.closed = true; return nil }

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
