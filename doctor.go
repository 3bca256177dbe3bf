package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"paidonce/store"
	"paidonce/store/payment"
	"paidonce/worker/reconcile"
	"paidonce/worker/stripeapi"
)

// finding is one line of the doctor.
type finding struct {
	Check  string `json:"check"`
	State  string `json:"state"` // ok, warn, fail
	Detail string `json:"detail"`
	Next   string `json:"next,omitempty"` // what to do about it
}

const (
	stateOK   = "ok"
	stateWarn = "warn"
	stateFail = "fail"
)

// doctor gathers findings.
type doctor struct{ findings []finding }

func (d *doctor) add(state, check, next, format string, args ...any) {
	d.findings = append(d.findings, finding{check, state, clean(fmt.Sprintf(format, args...)), next})
}

func (a *app) doctorCommand() *cobra.Command {
	var deep bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what is wrong, and say what to do",
		Long: `Looks at the configuration, the database, the running service and, with a key, at
Stripe: what the key may read, the clock, the webhook endpoint. One line for
each, with the next step where something is wrong. It changes nothing.

With --deep it reads the whole database and checks every promise in it, which
takes a while for a large one. It exits with 1 if a line says fail.`,
		Example: "  paidonce doctor\n  paidonce doctor --deep\n  paidonce doctor --json",
		Args:    takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			d := &doctor{}
			a.examine(cmd.Context(), d, deep)
			if err := a.print(d.findings, func(w *bytes.Buffer) { findingLines(w, d.findings) }); err != nil {
				return err
			}
			if n := len(slices.DeleteFunc(slices.Clone(d.findings), func(f finding) bool { return f.State != stateFail })); n > 0 {
				return fmt.Errorf("doctor: %s wrong, see above", are(n))
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&deep, "deep", false, "read the whole database and check every promise in it")
	return cmd
}

func are(n int) string {
	if n == 1 {
		return "1 thing is"
	}
	return fmt.Sprintf("%d things are", n)
}

func findingLines(w *bytes.Buffer, all []finding) {
	for _, f := range all {
		fmt.Fprintf(w, "%-4s  %-12s  %s\n", f.State, f.Check, f.Detail)
		if f.Next != "" {
			fmt.Fprintf(w, "                    → %s\n", f.Next)
		}
	}
}

// examine looks at everything, as far as what it needs is right.
func (a *app) examine(ctx context.Context, d *doctor, deep bool) {
	c, err := a.config(overrides{})
	if err != nil {
		for line := range strings.Lines(err.Error()) {
			d.add(stateFail, "config", "mend it: serve refuses to start with it", "%s", strings.TrimSpace(line))
		}
		return
	}
	sec, err := c.forServe()
	if err != nil {
		for line := range strings.Lines(err.Error()) {
			d.add(stateFail, "config", "mend it: serve refuses to start with it", "%s", strings.TrimSpace(line))
		}
	} else {
		d.add(stateOK, "config", "", "%s, %s, %d sources, %d effects", c.env(), or(c.file, "no file"), len(sec.sources), len(sec.effects))
		for _, text := range append(c.warnings, sec.warnings...) {
			d.add(stateWarn, "config", "", "%s", text)
		}
	}
	a.examineStore(ctx, d, c, deep)
	a.examineServe(ctx, d, c)
	if err == nil {
		a.examineStripe(ctx, d, c, sec)
	}
}

func (a *app) examineStore(ctx context.Context, d *doctor, c *config, deep bool) {
	s, err := a.openStore(ctx, c)
	if err != nil {
		d.add(stateFail, "database", "", "%s", err)
		return
	}
	defer s.Close()
	g, err := s.Diagnose(ctx)
	if err != nil {
		d.add(stateFail, "database", "see whether another program locks it", "%s", err)
		return
	}
	state, next := stateOK, ""
	if g.WALBytes > store.WALLimit {
		state, next = stateWarn, "another program holds a snapshot: fuser -v "+c.db
	}
	d.add(state, "database", next, "%s, %s, -wal %s, schema %d", c.db, size(g.Bytes), size(g.WALBytes), g.Schema)
	same := true
	for _, other := range g.Connections[1:] {
		same = same && maps.Equal(other, g.Connections[0])
	}
	var said []string
	for _, name := range slices.Sorted(maps.Keys(g.Connections[0])) {
		said = append(said, name+" "+g.Connections[0][name])
	}
	if same && g.Connections[0]["txlock"] == "immediate" {
		d.add(stateOK, "connections", "", "%d alike: %s", len(g.Connections), strings.Join(said, ", "))
	} else {
		d.add(stateFail, "connections", "report it: this should not be possible", "not alike or not immediate: %v", g.Connections)
	}
	if g.HeldSince != 0 {
		d.add(stateWarn, "effects", "paidonce restore --release", "held since the restore of %s: nothing goes out", clock(g.HeldSince))
	}
	for _, f := range g.Alerts {
		d.add(stateWarn, "alert", alertHelp[f.Name], "%s (%d) since %s", f.Name, f.Count, clock(f.Since))
	}
	for _, cov := range g.Coverage {
		state, next := stateOK, ""
		if a.now().Sub(cov.Until.Std()) > time.Hour {
			state, next = stateWarn, "start serve with STRIPE_API_KEY, or look at its log"
		}
		d.add(state, "coverage", next, "events of %s are known up to %s", cov.Scope, clock(cov.Until))
	}
	if !deep {
		return
	}
	a.hint("reading the whole database")
	broken, err := s.CheckInvariants(ctx)
	switch {
	case err != nil:
		d.add(stateFail, "promises", "", "%s", err)
	case len(broken) == 0:
		d.add(stateOK, "promises", "", "all that can be checked are kept")
	}
	for _, line := range broken {
		d.add(stateFail, "promises", "restore a backup, or report it", "%s", line)
	}
}

// alertHelp is where to look for an alert that is firing.
var alertHelp = map[string]string{
	store.AlertQuarantined: "paidonce events list --status quarantined", store.AlertUnlinked: "paidonce events list --verdict unlinked",
	store.AlertEffectFailed: "paidonce effects list --status failed", store.AlertEffectStuck: "paidonce effects list",
	store.AlertPending: "paidonce events list --status pending", store.AlertOversold: "paidonce orders list --attention oversold",
	store.AlertDispute: "paidonce orders list --attention dispute_needs_response", store.AlertRejects: "check the secret of the source against the endpoint's",
	store.AlertUndelivered: "look at the endpoint in Stripe's dashboard", store.AlertSilence: "look at the endpoint in Stripe's dashboard",
	store.AlertBackup: "paidonce backup FILE", store.AlertDiskFull: "free some space",
}

// examineServe asks the running service itself.
func (a *app) examineServe(ctx context.Context, d *doctor, c *config) {
	if !store.Serving(c.db) {
		d.add(stateWarn, "serve", "paidonce serve", "is not running on %s: no webhook is taken", c.db)
		return
	}
	for _, at := range []struct{ name, url string }{{"public", "http://" + c.listen + "/healthz"}, {"admin", "http://" + c.adminListen + "/readyz"}} {
		status, err := a.probe(ctx, at.url)
		switch {
		case err != nil:
			d.add(stateWarn, "serve", "it may listen elsewhere: see its start line", "the %s address %s does not answer", at.name, at.url)
		case status != http.StatusOK:
			d.add(stateFail, "serve", "see its log, and whether the disk is full", "%s answers %d", at.url, status)
		default:
			d.add(stateOK, "serve", "", "%s answers", at.url)
		}
	}
}

func (a *app) probe(ctx context.Context, url string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	resp, err := (&http.Client{}).Do(req)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode, errors.Join(err, resp.Body.Close())
}

// examineStripe finds out what the key may read, how far the clocks are apart,
// and how the endpoint is configured.
func (a *app) examineStripe(ctx context.Context, d *doctor, c *config, sec secrets) {
	sources := c.reconcileSources(sec.sources)
	switch {
	case len(sources) == 0:
		return
	case sec.keyKind == "":
		d.add(stateWarn, "stripe", "set STRIPE_API_KEY: a restricted key that may read Events, Charges, Refunds, Disputes and Webhook Endpoints is enough for it",
			"no key: an event that never arrives is never known of, and there are no checkouts and refunds")
		return
	}
	api, err := stripeapi.New(stripeapi.Config{Key: sec.stripeKey, Base: c.apiBase, Now: a.now, Log: a.log(), Rate: reconcile.Rate})
	if err != nil {
		d.add(stateFail, "stripe", "", "%s", err)
		return
	}
	now := store.At(a.now())
	span := stripeapi.Span{Since: now - 60_000, Until: now}
	page, err := api.ListEvents(ctx, "", payment.EventTypes()[:1], span, "")
	d.read("events", err)
	for _, kind := range []payment.Kind{payment.KindCharge, payment.KindRefund, payment.KindDispute, payment.KindSession, payment.KindPaymentIntent} {
		_, err := api.ListObjects(ctx, "", kind, span, "")
		d.read(strings.ReplaceAll(string(kind), "_", " ")+"s", err)
	}
	if page.Date != 0 {
		if found := reconcile.ClockFindings(a.now(), page.Date); len(found) > 0 {
			d.add(stateFail, "clock", "timedatectl set-ntp true", "%s", found[0].Text)
		} else {
			d.add(stateOK, "clock", "", "agrees with Stripe's")
		}
	}
	endpoints, _, err := api.WebhookEndpoints(ctx)
	if err != nil {
		d.add(stateWarn, "endpoint", "give the key read access to Webhook Endpoints", "not looked at: %s", err)
		return
	}
	for _, src := range sources {
		found := reconcile.EndpointFindings(src, endpoints)
		for _, f := range found {
			d.add(stateFail, "endpoint", "mend it in Stripe's dashboard, Developers, Webhooks", "%s: %s", f.Thing, f.Text)
		}
		if len(found) == 0 {
			d.add(stateOK, "endpoint", "", "nothing is wrong with what leads to /webhooks/%s", src.Name)
		}
	}
}

// read notes whether the key may read something.
func (d *doctor) read(what string, err error) {
	if err == nil {
		d.add(stateOK, "stripe", "", "the key may read %s", what)
		return
	}
	next := "see whether Stripe can be reached from here"
	var e *stripeapi.Error
	if errors.As(err, &e) && (e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden) {
		next = "give the key read access to " + what
	}
	d.add(stateFail, "stripe", next, "%s: %s", what, err)
}
