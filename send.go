package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/stripe/stripe-go/v82/webhook"

	"paidonce/handler"
	"paidonce/store"
	"paidonce/store/payment"
)

// sendFlags are the flags of send.
type sendFlags struct {
	url, source, secret string
	order, tenant       string
	sets                []string
	times               int
	concurrent          bool
	badSignature        bool
	late, age           time.Duration
}

const (
	maxTimes    = 100_000
	atOnce      = 256 // connections, however many events --concurrent sends
	sendTimeout = 30 * time.Second
	maxAnswer   = 64 << 10
)

func (a *app) sendCommand() *cobra.Command {
	var f sendFlags
	cmd := &cobra.Command{
		Use:   "send TYPE|FILE",
		Short: "Sign and post a test event",
		Long: `Signs an event as Stripe does and posts it to a webhook address.

TYPE is one of the built-in events below. FILE is a body of your own ("-" is
stdin), sent byte for byte unless --order, --set or --late change it.

With --order the event speaks of that order: it names it, and takes its total
and currency from the database. Its payment intent, charge and session keep the
same ids from one call to the next, so that a refund sent later belongs to the
payment sent before; the event itself is a new one each time. Without --order
all ids are new, and no order claims the event.

The secret is the first one of the source (STRIPE_WEBHOOK_SECRET, unless the
TOML file says otherwise); --secret env:NAME or file:/path names another.

It fails unless every answer is 2xx; with --bad-signature, unless every answer
is 401.

Built-in events:
  ` + strings.Join(templateTypes(), "\n  "),
		Example: `  paidonce send payment_intent.succeeded --order A1
  paidonce send payment_intent.succeeded --order A1 --set data.object.amount_received=500
  paidonce send checkout.session.completed --order A1 --times 50 --concurrent
  paidonce send charge.refunded --order A1 --late 7h
  paidonce send payment_intent.succeeded --order A1 --age 10m
  paidonce send event.json --bad-signature`,
		Args: takes("TYPE or FILE"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return templateTypes(), cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.send(cmd, args[0], f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.url, "url", "", "post to this `URL` (default http://PAIDONCE_LISTEN/webhooks/SOURCE)")
	flags.StringVar(&f.source, "source", "stripe", "the `source` whose secret and address are used")
	flags.StringVar(&f.secret, "secret", "", "sign with the secret at this `place`: env:NAME or file:/path")
	flags.StringVar(&f.order, "order", "", "name this `order`, with its total and currency")
	flags.StringVar(&f.tenant, "tenant", "main", "the `tenant` of the order; a connected account's events carry it")
	flags.StringArrayVar(&f.sets, "set", nil, "set a field, as `PATH=VALUE` from the event's root; VALUE is JSON or text; may be repeated")
	flags.IntVar(&f.times, "times", 1, "send the same event so many times")
	flags.BoolVar(&f.concurrent, "concurrent", false, "send all of them at once")
	flags.BoolVar(&f.badSignature, "bad-signature", false, "sign with a wrong secret, and expect 401")
	flags.DurationVar(&f.late, "late", 0, "let the event have occurred so long ago, such as 7h")
	flags.DurationVar(&f.age, "age", 0, "let the signature be so old, as in a replay; over 5m is refused")
	return cmd
}

// send makes the event, posts it and tells the answers.
func (a *app) send(cmd *cobra.Command, what string, f sendFlags) error {
	if f.times < 1 || f.times > maxTimes {
		return usagef(cmd, "--times must be from 1 to %d", maxTimes)
	}
	for _, s := range f.sets {
		if path, _, ok := strings.Cut(s, "="); !ok || path == "" || strings.Contains("."+path+".", "..") {
			return usagef(cmd, "--set must be PATH=VALUE, such as data.object.amount_received=500")
		}
	}
	c, err := a.config(overrides{})
	if err != nil {
		return err
	}
	event := testEvent{live: c.live, age: f.late, aged: cmd.Flags().Changed("late"), sets: f.sets}
	if event.body, event.template, err = a.eventBody(cmd, what); err != nil {
		return err
	}
	p := post{app: a, badSignature: f.badSignature, signatureAge: f.age}
	if p.url, err = sendURL(cmd, c, f); err != nil {
		return err
	}
	if p.secret, err = c.signingSecret(cmd, f); err != nil {
		return err
	}
	if f.order != "" {
		if event.order, err = a.findOrder(cmd.Context(), c, f.tenant, f.order); err != nil {
			return err
		}
		if f.tenant != "main" {
			event.sets = append([]string{"account=" + f.tenant}, event.sets...)
		}
	}
	if p.body, err = event.bytes(a.now()); err != nil {
		return err
	}
	if c.live {
		a.hint("INTEGRATION_ENV is live: whoever takes this event counts it as real money")
	}
	envelope := payment.ParseEnvelope(p.body)
	answers := p.all(cmd.Context(), f.times, f.concurrent)
	err = a.print(answers, func(w *bytes.Buffer) {
		fmt.Fprintf(w, "%s %s to %s\n", clean(or(envelope.Type, "an event without a type")), clean(or(envelope.ID, "without an id")), place(p.url))
		for _, ans := range answers {
			fmt.Fprintf(w, "%s\n", ans)
		}
	})
	return errors.Join(err, p.judge(cmd.Context(), answers))
}

func or(s, instead string) string {
	if s == "" {
		return instead
	}
	return s
}

// eventBody finds what the argument names: a built-in event before a file.
func (a *app) eventBody(cmd *cobra.Command, what string) (body []byte, template bool, err error) {
	if body, err := templates.ReadFile("testdata/events/" + what + ".json"); err == nil {
		return body, true, nil
	}
	if what == "-" {
		body, err = io.ReadAll(a.stdin)
		return body, false, err
	}
	body, err = os.ReadFile(what)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false, usagef(cmd, "%q is no file, and none of the built-in events that --help lists", what)
	case err != nil:
		return nil, false, fmt.Errorf("cannot read %s: %s", what, plain(err))
	}
	return body, false, nil
}

// sendURL is where the event goes.
func sendURL(cmd *cobra.Command, c *config, f sendFlags) (*url.URL, error) {
	if f.url == "" {
		host, port, err := net.SplitHostPort(c.listen)
		if err != nil {
			return nil, err
		}
		if port == "0" {
			return nil, usagef(cmd, "PAIDONCE_LISTEN has port 0: name the address with --url")
		}
		switch host {
		case "", "0.0.0.0":
			host = "127.0.0.1"
		case "::":
			host = "::1"
		}
		return &url.URL{Scheme: "http", Host: net.JoinHostPort(host, port), Path: "/webhooks/" + f.source}, nil
	}
	u, err := url.Parse(f.url)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, usagef(cmd, "--url must be such as http://%s/webhooks/stripe", defaultListen)
	}
	return u, nil
}

// place is u without what may be secret in it.
func place(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// signingSecret is what the event is signed with.
func (c *config) signingSecret(cmd *cobra.Command, f sendFlags) (string, error) {
	var ref secretRef
	if f.secret != "" {
		var err error
		if ref, err = parseSecretRef("--secret", f.secret); err != nil {
			return "", usagef(cmd, "--secret: %s", err)
		}
	} else {
		s, ok := c.source(f.source)
		switch {
		case !ok && f.source == "stripe":
			return "", &configError{[]string{"there is no secret to sign with: set " + stripeSecretVariable + ", or name one with --secret"}}
		case !ok:
			return "", usagef(cmd, "there is no source of this name: name its secret with --secret")
		case s.provider != "stripe":
			return "", usagef(cmd, "send signs as Stripe does, and source %s is a %s source", s.name, s.provider)
		}
		ref = s.secrets[0]
	}
	secrets, err := c.readSecrets("stripe", ref)
	if err == nil {
		if _, err = handler.NewSecret("stripe", secrets[0]); err != nil {
			err = ref.wrap(err)
		}
	}
	if err != nil {
		return "", &configError{[]string{err.Error()}}
	}
	return secrets[0], nil
}

func (a *app) findOrder(ctx context.Context, c *config, tenant, id string) (*store.OrderDetail, error) {
	s, err := a.openStore(ctx, c)
	if err != nil {
		return nil, err
	}
	o, err := s.FindOrder(ctx, tenant, id)
	return &o, errors.Join(err, s.Close())
}

// post is one body on its way to one address.
type post struct {
	app          *app
	url          *url.URL
	secret       string
	body         []byte
	badSignature bool
	signatureAge time.Duration
}

// answer is what came back from one delivery.
type answer struct {
	Status int             `json:"status"` // 0: there was none
	Body   json.RawMessage `json:"body"`
	MS     int64           `json:"ms"`
	Error  string          `json:"error,omitempty"`
}

func (a answer) String() string {
	if a.Error != "" {
		return "no answer: " + clean(a.Error)
	}
	return fmt.Sprintf("%d %s (%d ms)", a.Status, clean(string(a.Body)), a.MS)
}

// all sends the body n times and returns the answers in sequence.
func (p *post) all(ctx context.Context, n int, concurrent bool) []answer {
	transport := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		MaxIdleConnsPerHost: atOnce,
		MaxConnsPerHost:     atOnce,
	}
	defer transport.CloseIdleConnections()
	client := &http.Client{
		Transport: transport,
		Timeout:   sendTimeout,
		// A webhook sender follows no redirect; to Stripe a 3xx is a failure.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	answers := make([]answer, n)
	var wg sync.WaitGroup
	for i := range n {
		if concurrent {
			wg.Go(func() { answers[i] = p.one(ctx, client) })
		} else {
			answers[i] = p.one(ctx, client)
		}
	}
	wg.Wait()
	return answers
}

// one delivers the body once, under a signature of its own.
func (p *post) one(ctx context.Context, client *http.Client) answer {
	start := p.app.now()
	status, body, err := p.deliver(ctx, client)
	ans := answer{Status: status, MS: p.app.now().Sub(start).Milliseconds(), Body: json.RawMessage("null")}
	if err != nil {
		// The URL in the error may hold a token; the caller knows it anyway.
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err
		}
		ans.Error = cut(err.Error())
		return ans
	}
	var compact bytes.Buffer
	if json.Compact(&compact, body) == nil {
		ans.Body = compact.Bytes()
	} else if ans.Body, err = json.Marshal(cut(string(body))); err != nil {
		ans.Error = err.Error()
	}
	return ans
}

func (p *post) deliver(ctx context.Context, client *http.Client) (int, []byte, error) {
	secret := p.secret
	if p.badSignature {
		secret = "whsec_" + rand.Text()
	}
	signed := webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{
		Payload:   p.body,
		Secret:    secret,
		Timestamp: p.app.now().Add(-p.signatureAge),
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url.String(), bytes.NewReader(p.body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	req.Header.Set("Stripe-Signature", signed.Header)
	req.Header.Set("User-Agent", "paidonce-send/"+thisBuild().Version)
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	return resp.StatusCode, body, err
}

// judge says whether the answers are those that were meant to come.
func (p *post) judge(ctx context.Context, answers []answer) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	unlike, unreached := 0, 0
	for _, ans := range answers {
		switch {
		case ans.Error != "":
			unreached++
		case p.badSignature && ans.Status != http.StatusUnauthorized, !p.badSignature && (ans.Status < 200 || ans.Status > 299):
			unlike++
		}
	}
	switch of := strconv.Itoa(len(answers)); {
	case unreached > 0:
		return fmt.Errorf("%d of %s got no answer from %s: is `paidonce serve` running there?", unreached, of, p.url.Host)
	case unlike > 0 && p.badSignature:
		return fmt.Errorf("%d of %s were not refused with 401, although the signature is wrong", unlike, of)
	case unlike > 0:
		return fmt.Errorf("%d of %s were not answered with 2xx", unlike, of)
	}
	return nil
}
