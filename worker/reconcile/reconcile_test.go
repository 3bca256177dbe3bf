package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"paidonce/store"
	"paidonce/store/payment"
	"paidonce/store/storetest"
	"paidonce/worker"
	"paidonce/worker/reconcile"
	"paidonce/worker/stripeapi"
	"paidonce/worker/stripefake"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// shop is a store, a worker and a reconciler beside a fake Stripe that delivers
// nothing.
type shop struct {
	*store.Store
	clock  *storetest.Clock
	fake   *stripefake.Server
	stripe *tap
	cfg    reconcile.Config
	*reconcile.Reconciler
}

// tap counts the lists of events, and can end a context at one of them.
type tap struct {
	reconcile.Stripe
	lists  int
	cutAt  int // the list at which cut is called; 0 is never
	cut    context.CancelFunc
	before func(*store.ObjectCopy) // each fetch, before its answer is told
	hide   bool                    // events are not visible yet
}

func (t *tap) ListEvents(ctx context.Context, account string, types []string, span stripeapi.Span, after string) (stripeapi.Page, error) {
	if t.lists++; t.lists == t.cutAt {
		t.cut()
		return stripeapi.Page{}, context.Canceled
	}
	if t.hide {
		return stripeapi.Page{}, nil
	}
	return t.Stripe.ListEvents(ctx, account, types, span, after)
}

func (t *tap) Fetch(ctx context.Context, account string, kind payment.Kind, id string) (store.ObjectCopy, error) {
	o, err := t.Stripe.Fetch(ctx, account, kind, id)
	if t.before != nil {
		t.before(&o)
	}
	return o, err
}

func newShop(t *testing.T) *shop {
	t.Helper()
	x := newShopAt(t, stripefake.ServerConfig{Config: stripefake.Config{Seed: 3}}, storetest.NewClock())
	x.clock.Advance(time.Hour) // after the installation
	return x
}

// newShopAt is a shop that is installed at the time of its clock, beside a Stripe
// with an account of its own, if it has one.
func newShopAt(t *testing.T, stripe stripefake.ServerConfig, clock *storetest.Clock) *shop {
	t.Helper()
	o := storetest.Options(t.TempDir(), clock)
	o.StripeKey, o.StockReturn = "sk_test", true
	s, err := store.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !t.Failed() {
			storetest.Check(t, s)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	stripe.Key = "sk_test_fake"
	if stripe.Account == nil {
		stripe.Now = clock.Now
	}
	fake := stripefake.NewServer(stripe)
	server := httptest.NewServer(fake)
	t.Cleanup(func() {
		fake.Close()
		server.Close()
	})
	key, err := stripeapi.NewKey("sk_test_fake")
	if err != nil {
		t.Fatal(err)
	}
	api, err := stripeapi.New(stripeapi.Config{Key: key, Base: server.URL, Now: clock.Now, Rate: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	w := worker.New(worker.Config{Inbox: s, Log: quiet, Poll: 10 * time.Millisecond})
	stop, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(stop, context.Background()) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	x := &shop{Store: s, clock: clock, fake: fake, stripe: &tap{Stripe: api}}
	x.cfg = reconcile.Config{Store: s, Stripe: x.stripe, Wake: w.Wake, Now: clock.Now, Log: quiet,
		Sources: []reconcile.Source{{Name: "stripe", Account: "self", Scope: "stripe:self:test"}}}
	x.Reconciler = reconcile.New(x.cfg)
	return x
}

func (x *shop) do(t *testing.T, f func(a *stripefake.Account) error) {
	t.Helper()
	if err := x.fake.Do(f); err != nil {
		t.Fatal(err)
	}
}

// once is a run that has to come to its end.
func (x *shop) once(t *testing.T) store.RunReport {
	t.Helper()
	r, err := x.Once(t.Context(), store.RunRequest{Reason: store.RunScheduled})
	if err != nil || r.Error != "" {
		t.Fatalf("run: %v, %q", err, r.Error)
	}
	return r
}

func (x *shop) order(t *testing.T, id string) store.OrderDetail {
	t.Helper()
	o, err := x.FindOrder(t.Context(), "main", id)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func (x *shop) register(t *testing.T, id, intent string, total int64) {
	t.Helper()
	if _, _, err := x.RegisterOrder(t.Context(), store.NewOrder{ID: id, TotalMinor: &total, Currency: ptr("eur"), PaymentIntent: &intent}); err != nil {
		t.Fatal(err)
	}
}

func ptr[T any](v T) *T { return &v }

// makePayments makes n payments, each of which makes three or more events.
func (x *shop) makePayments(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		x.do(t, func(a *stripefake.Account) error {
			s, err := a.OpenSession(stripefake.SessionParams{Pricing: stripefake.Pricing{Subtotal: 1000 + int64(i)}, Currency: "eur"})
			if err != nil {
				return err
			}
			_, err = a.PaySession(s.ID, stripefake.Card)
			return err
		})
		x.clock.Advance(time.Minute)
	}
}

// TestEveryPageCanBeTheLast (cases.md B53): 350 events that nobody delivered,
// and a process that ends at each page in turn. The next one goes on where it
// was, and all are brought in, each once.
func TestEveryPageCanBeTheLast(t *testing.T) {
	x := newShop(t)
	x.makePayments(t, 180)
	total := len(x.wanted())
	if total < 350 {
		t.Fatalf("only %d events", total)
	}
	for page := 1; ; page++ {
		ctx, cancel := context.WithCancel(t.Context())
		x.stripe.lists, x.stripe.cutAt, x.stripe.cut = 0, 2, cancel // one page a process
		r, err := reconcile.New(x.cfg).Once(ctx, store.RunRequest{Reason: store.RunScheduled})
		cancel()
		if err == nil {
			if r.EventsNew != int64(total) || r.EventsSeen != int64(total) {
				t.Fatalf("after %d processes: %s; want %d", page, r.Summary, total)
			}
			if r.Pages != int64(page) {
				t.Errorf("%d pages for %d processes: some were read twice", r.Pages, page)
			}
			break
		}
		if !errors.Is(err, context.Canceled) || page > 50 {
			t.Fatalf("process %d: %v", page, err)
		}
	}
	x.stripe.cutAt = 0
	if r := x.once(t); !r.Agrees() || r.EventsNew != 0 {
		t.Errorf("the next run: %s; %+v", r.Summary, r.Differences)
	}
}

// wanted are the events that a run lists.
func (x *shop) wanted() []string {
	var ids []string
	types := strings.Join(payment.EventTypes(), " ") + " "
	for _, e := range x.fake.Events() {
		if strings.Contains(types, e.Type+" ") {
			ids = append(ids, e.ID)
		}
	}
	return ids
}

// TestCoverageMovesOnlyWhenAPassIsThrough (cases.md B53): Stripe fails at the
// third page for good. The run says so, and the next one goes on from there.
func TestCoverageMovesOnlyWhenAPassIsThrough(t *testing.T) {
	x := newShop(t)
	x.makePayments(t, 180)
	total := int64(len(x.wanted()))
	failure := stripefake.Fault{Kind: stripefake.TooManyRequests, RetryAfter: "3600"}
	x.fake.FaultNext("GET /v1/events", stripefake.Fault{}, stripefake.Fault{}, failure)
	r, err := x.Once(t.Context(), store.RunRequest{Reason: store.RunScheduled})
	if err != nil || r.State != "failed" || r.Error == "" || r.EventsNew != 200 {
		t.Fatalf("run: %v, %s: %s", err, r.State, r.Summary)
	}
	if st, err := x.Stats(t.Context()); err != nil || st.LastReconcile != nil {
		t.Errorf("last reconcile = %v, %v after a failure", st.LastReconcile, err)
	}
	x.clock.Advance(5 * time.Minute)
	r = x.once(t)
	if got := int64(200) + r.EventsNew; got != total {
		t.Errorf("%d of %d events came in; %s", got, total, r.Summary)
	}
	if overlap := int64(100); r.EventsSeen > total-200+overlap {
		t.Errorf("the second run listed %d events again", r.EventsSeen)
	}
	if r := x.once(t); r.EventsNew != 0 {
		t.Errorf("the third run: %s", r.Summary)
	}
}

// TestLateAndSameSecondEventsAreFound (cases.md B54): events that became visible
// after the pass which covered their time; and a webhook that is newer than all
// of them moves no coverage (B55).
func TestLateAndSameSecondEventsAreFound(t *testing.T) {
	x := newShop(t)
	x.makePayments(t, 2)
	x.stripe.hide = true
	first := x.once(t)
	x.stripe.hide = false
	x.clock.Advance(time.Minute)
	if _, err := x.AddEvent(t.Context(), store.NewEvent{Scope: "stripe:self:test", ID: "evt_new", Source: "stripe", Tenant: "main", Via: "webhook",
		Type: "charge.succeeded", OccurredAt: store.At(x.clock.Now()), Body: []byte(`{}`)}); err != nil {
		t.Fatal(err)
	}
	x.clock.Advance(4 * time.Minute)
	second := x.once(t)
	if want := int64(len(x.wanted())); first.EventsNew != 0 || second.EventsNew != want {
		t.Errorf("first run %s; second run %s; want %d", first.Summary, second.Summary, want)
	}
}

// TestFetchesWhatStripeNeverTold (cases.md B58): an order whose payment intent
// moved without any event.
func TestFetchesWhatStripeNeverTold(t *testing.T) {
	x := newShop(t)
	var paid, slow string
	x.do(t, func(a *stripefake.Account) error {
		for _, id := range []*string{&paid, &slow} {
			pi, err := a.CreateIntent(stripefake.IntentParams{Amount: 1250, Currency: "eur", Method: stripefake.Debit})
			if err != nil {
				return err
			}
			*id = pi.ID
		}
		if err := errors.Join(a.Process(paid), a.Process(slow)); err != nil {
			return err
		}
		return a.Succeed(paid)
	})
	x.clock.Advance(20 * 24 * time.Hour)
	x.register(t, "A", paid, 1250)
	x.register(t, "B", slow, 1250)
	x.register(t, "C", "pi_unknown", 1250)
	// A run of its own does not look at what was registered a moment ago, and
	// its events are long covered.
	cover(t, x)
	x.clock.Advance(2 * time.Hour)
	r := x.once(t)
	if got := x.order(t, "A"); got.Status != payment.StatusPaid {
		t.Errorf("A is %s after %s; %+v", got.Status, r.Summary, r.Differences)
	}
	if got := x.order(t, "B"); got.Status != payment.StatusProcessing {
		t.Errorf("B is %s", got.Status)
	}
	if got := x.order(t, "C"); got.Status != payment.StatusAwaitingPayment {
		t.Errorf("C is %s: only an answer closes an order", got.Status)
	}
	gone := 0
	for _, d := range r.Differences {
		if d.What == store.DifferenceGone && d.Object == "pi_unknown" && d.Order == "C" {
			gone++
		}
	}
	if gone != 1 {
		t.Errorf("differences %+v", r.Differences)
	}
}

// cover says that all events until now are known, as a run of long ago would.
func cover(t *testing.T, x *shop) {
	t.Helper()
	cfg := x.cfg
	cfg.Stripe = nothing{x.stripe}
	if r, err := reconcile.New(cfg).Once(t.Context(), store.RunRequest{Reason: store.RunScheduled}); err != nil || r.Error != "" {
		t.Fatalf("cover: %v, %q", err, r.Error)
	}
}

// nothing lists nothing.
type nothing struct{ reconcile.Stripe }

func (nothing) ListEvents(context.Context, string, []string, stripeapi.Span, string) (stripeapi.Page, error) {
	return stripeapi.Page{}, nil
}

func (nothing) ListObjects(context.Context, string, payment.Kind, stripeapi.Span, string) (stripeapi.Page, error) {
	return stripeapi.Page{}, nil
}

// TestACopyYieldsToWhatCameMeanwhile: the fact changes between the GET and its
// answer, whose date is later than the change. The copy is not written: it would
// take the refund back to where it was.
func TestACopyYieldsToWhatCameMeanwhile(t *testing.T) {
	x := newShop(t)
	var refund string
	x.do(t, func(a *stripefake.Account) error {
		c, err := a.ChargeDirectly(900, "eur", nil)
		if err != nil {
			return err
		}
		r, err := a.Refund(c.ID, 900, true)
		refund = r.ID
		return err
	})
	x.once(t) // pending is known
	x.clock.Advance(24 * time.Hour)
	raced := false
	x.stripe.before = func(o *store.ObjectCopy) {
		if raced || o.ID != refund {
			return
		}
		raced = true
		o.Date += 5000
		x.do(t, func(a *stripefake.Account) error { return a.RefundSucceeds(refund) })
		for _, e := range x.fake.Events() { // its webhook comes while the copy is on its way
			if _, err := x.AddEvent(t.Context(), store.NewEvent{Scope: "stripe:self:test", ID: e.ID, Source: "stripe", Tenant: "main", Via: "webhook",
				Type: e.Type, OccurredAt: store.Time(e.Created * 1000), Body: e.Body(0)}); err != nil {
				t.Error(err)
			}
		}
		for n := int64(1); n > 0; {
			var err error
			if n, err = x.Brought(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	cover(t, x)
	page, err := x.ListEvents(t.Context(), store.EventFilter{Type: "fetched.refund"})
	if !raced || err != nil || len(page.Items) != 0 {
		t.Errorf("raced %t; %d copies were written, %v", raced, len(page.Items), err)
	}
}

// TestUnlinkedMoneyFindsItsOrder: the payment names no order, its session does,
// and the session's event never came.
func TestUnlinkedMoneyFindsItsOrder(t *testing.T) {
	x := newShop(t)
	id, total := "S-1", int64(700)
	if _, _, err := x.RegisterOrder(t.Context(), store.NewOrder{ID: id, TotalMinor: &total, Currency: ptr("eur")}); err != nil {
		t.Fatal(err)
	}
	x.do(t, func(a *stripefake.Account) error {
		s, err := a.OpenSession(stripefake.SessionParams{Pricing: stripefake.Pricing{Subtotal: 700}, Currency: "eur", Reference: id})
		if err != nil {
			return err
		}
		_, err = a.PaySession(s.ID, stripefake.Card)
		return err
	})
	for _, e := range x.fake.Events() {
		if e.Type != "payment_intent.succeeded" {
			continue
		}
		if _, err := x.AddEvent(t.Context(), store.NewEvent{Scope: "stripe:self:test", ID: e.ID, Source: "stripe", Tenant: "main", Via: "webhook",
			Type: e.Type, OccurredAt: store.Time(e.Created * 1000), Body: e.Body(0)}); err != nil {
			t.Fatal(err)
		}
	}
	for {
		st, err := x.Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if st.Unlinked == 1 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	cover(t, x)
	if got := x.order(t, id); got.Status != payment.StatusPaid {
		t.Errorf("the order is %s", got.Status)
	}
}

// TestRehearsalWritesNothing: it tells what a run would find.
func TestRehearsalWritesNothing(t *testing.T) {
	x := newShop(t)
	x.makePayments(t, 3)
	cfg := x.cfg
	told := 0
	cfg.Store = store.Rehearse(x.Store, func(store.RunReport) { told++ })
	r, err := reconcile.New(cfg).Once(t.Context(), store.RunRequest{Since: store.At(x.clock.Now().Add(-30 * time.Minute)), Reason: "cli"})
	if err != nil || r.Error != "" {
		t.Fatalf("rehearsal: %v, %q", err, r.Error)
	}
	if want := int64(len(x.wanted())); r.EventsNew != want || r.Agrees() || !r.DryRun || told == 0 || r.PaymentsSeen != 3 {
		t.Errorf("rehearsal: %+v; want %d new", r, want)
	}
	for _, d := range r.Differences {
		if d.Resolved {
			t.Errorf("%+v is said to be brought in", d)
		}
	}
	page, err := x.ListEvents(t.Context(), store.EventFilter{})
	reports, rerr := x.Reports(t.Context(), 0)
	if err != nil || rerr != nil || len(page.Items)+len(reports) != 0 {
		t.Errorf("it wrote %d events and %d reports (%v, %v)", len(page.Items), len(reports), err, rerr)
	}
	if r := x.once(t); r.EventsNew != int64(len(x.wanted())) {
		t.Errorf("the real run: %s", r.Summary)
	}
}

// TestWhatIsTooOldIsAGap: a shop that was away for longer than Stripe keeps
// events.
func TestWhatIsTooOldIsAGap(t *testing.T) {
	x := newShop(t)
	x.once(t)
	x.clock.Advance(45 * 24 * time.Hour)
	r := x.once(t)
	if len(r.Gaps) != 1 || r.Gaps[0].To-r.Gaps[0].From < store.Time((14*24*time.Hour).Milliseconds()) || r.Agrees() || !strings.Contains(r.Summary, "lists no events from") {
		t.Errorf("gaps %+v; %s", r.Gaps, r.Summary)
	}
	if r := x.once(t); len(r.Gaps) != 0 || !r.Agrees() {
		t.Errorf("the next run: %+v; %s", r.Gaps, r.Summary)
	}
}

// TestAskedForRunsComeFirst: a request is taken by the next run, and its id is
// the report's.
func TestAskedForRunsComeFirst(t *testing.T) {
	x := newShop(t)
	id, err := x.RequestRun(t.Context(), store.At(x.clock.Now().Add(-48*time.Hour)), "api")
	if err != nil {
		t.Fatal(err)
	}
	r := x.once(t)
	if r.ID != id || r.Reason != "api" || r.Since > store.At(x.clock.Now().Add(-48*time.Hour)) || !r.Over() {
		t.Errorf("report %+v; want run %d", r, id)
	}
	if again := x.once(t); again.ID == id || again.Reason != store.RunScheduled {
		t.Errorf("the next run is %d by %s", again.ID, again.Reason)
	}
}

// TestAnOpenCheckoutIsNoDifference: a person asks while a buyer has a checkout
// open. Nothing was missed, and nothing is told.
func TestAnOpenCheckoutIsNoDifference(t *testing.T) {
	x := newShop(t)
	var session, intent string
	x.do(t, func(a *stripefake.Account) error {
		s, err := a.OpenSession(stripefake.SessionParams{Pricing: stripefake.Pricing{Subtotal: 700}, Currency: "eur"})
		if err != nil {
			return err
		}
		pi, err := a.CreateIntent(stripefake.IntentParams{Amount: 700, Currency: "eur", Method: stripefake.Debit})
		session, intent = s.ID, pi.ID
		return err
	})
	x.register(t, "A", intent, 700)
	storetest.Register(t, x.Store, "B", 700, "eur", func(n *store.NewOrder) { n.Refs = []string{session} })
	if _, err := x.RequestRun(t.Context(), 0, "cli"); err != nil {
		t.Fatal(err)
	}
	if r := x.once(t); !r.Agrees() || r.ObjectsChecked != 2 {
		t.Errorf("%s; %d objects checked; %+v", r.Summary, r.ObjectsChecked, r.Differences)
	}
	if got := x.order(t, "B"); got.Status != payment.StatusAwaitingPayment {
		t.Errorf("B is %s", got.Status)
	}
}

// TestARunOfLongAgoIsFollowedAtOnce: what a restored backup was in the middle of
// ends first, and the time since is read without waiting.
func TestARunOfLongAgoIsFollowedAtOnce(t *testing.T) {
	x := newShop(t)
	ctx, cancel := context.WithCancel(t.Context())
	x.stripe.cutAt, x.stripe.cut = 1, cancel
	if _, err := x.Once(ctx, store.RunRequest{Reason: store.RunScheduled}); err == nil {
		t.Fatal("it was not cut off")
	}
	x.clock.Advance(10 * time.Hour)
	x.makePayments(t, 1)
	cfg := x.cfg
	cfg.Poll = 5 * time.Millisecond
	stop, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- reconcile.New(cfg).Run(stop, context.Background()) }()
	for {
		reports, err := x.Reports(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		if len(reports) == 1 && reports[0].ID == 2 && reports[0].State == "done" {
			if reports[0].EventsNew == 0 {
				t.Error("the second run found nothing")
			}
			break
		}
	}
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestLoopTakesRequestsAndEnds: the loop runs at start, takes a request, and
// ends with stop.
func TestLoopTakesRequestsAndEnds(t *testing.T) {
	x := newShop(t)
	cfg := x.cfg
	cfg.Poll = 5 * time.Millisecond
	stop, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- reconcile.New(cfg).Run(stop, context.Background()) }()
	id, err := x.RequestRun(t.Context(), 0, "cli")
	if err != nil {
		t.Fatal(err)
	}
	ctx, done := context.WithTimeout(t.Context(), 30*time.Second)
	defer done()
	r, err := x.AwaitRun(ctx, id)
	if err != nil || r.State != "done" {
		t.Errorf("run %d: %+v, %v", id, r, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestAnyLifeIsFoundWhole: random lives of orders at Stripe, of whose events half
// get lost. After one reconciliation each order is what it is in a shop that lost
// nothing, and so are the books; a second one finds nothing.
func TestAnyLifeIsFoundWhole(t *testing.T) {
	lives := 30
	if testing.Short() {
		lives = 3
	}
	for seed := range uint64(lives) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			draw := func() stripefake.Life {
				return stripefake.DrawLife(rand.New(rand.NewPCG(seed, 0x11fe)), stripefake.LifeOptions{Seed: seed})
			}
			whole, lossy := liveLife(t, draw(), 0, seed), liveLife(t, draw(), 0.5, seed)
			if whole != lossy {
				t.Errorf("with loss\n%s\nwithout\n%s", lossy, whole)
			}
		})
	}
}

// liveLife delivers a life's events but for those that get lost, reconciles, and
// tells what became of the orders and the books.
func liveLife(t *testing.T, life stripefake.Life, loss float64, seed uint64) string {
	t.Helper()
	clock := storetest.NewClock()
	clock.Advance(time.Unix(life.World.Start-3600, 0).Sub(clock.Now()))
	x := newShopAt(t, stripefake.ServerConfig{Account: life.Account}, clock)
	for _, o := range life.Orders {
		if o.Unregistered {
			continue
		}
		storetest.Register(t, x.Store, o.ID, o.Total, o.Currency, func(n *store.NewOrder) {
			n.AmountPolicy, n.AllowDiscount, n.Refs = &o.Policy, &o.AllowDiscount, o.Refs
			if o.PaymentIntent != "" {
				n.PaymentIntent = &o.PaymentIntent
			}
		})
	}
	clock.Advance(time.Unix(life.Account.Now()+60, 0).Sub(clock.Now()))
	x.do(t, func(a *stripefake.Account) error { // what would expire at the first call
		a.ExpireDue()
		return nil
	})
	dice := rand.New(rand.NewPCG(seed, 7))
	for _, e := range x.fake.Events() {
		if dice.Float64() >= loss {
			if _, err := x.AddEvent(t.Context(), storetest.NewEvent(string(e.Body(1)))); err != nil {
				t.Fatal(err)
			}
		}
	}
	x.cfg.Wake()
	x.once(t)
	if again := x.once(t); !again.Agrees() {
		t.Errorf("loss %g: the second run: %s; %+v", loss, again.Summary, again.Differences)
	}
	var told strings.Builder
	for _, o := range life.Orders {
		if o.Unregistered {
			continue
		}
		d := x.order(t, o.ID)
		fmt.Fprintln(&told, d.ID, d.Status, d.ReceivedMinor, d.RefundedMinor, d.RefundPendingMinor, d.ChargedBackMinor, d.SuspenseMinor, d.Attention)
	}
	books, err := x.Books(t.Context(), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&told, "%+v", books.Closing)
	return told.String()
}
