package store_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"paidonce/store"
	"paidonce/store/payment"
	"paidonce/store/storetest"
)

// opened is when a test's store is made, in Stripe's seconds.
const opened = 1796115600

// pays is a succeeded payment intent of 1250 EUR cents for ORD-1, seconds after
// the store was made.
func pays(event, id string, seconds int64) string {
	return intent(event, id, "succeeded", opened+seconds, 1250, "")
}

func fan(targets ...string) func(*store.Options) {
	return func(o *store.Options) { o.Compose, o.Targets = storetest.Fan(targets...), targets }
}

var (
	ctx     = context.Background()
	done    = store.Answer{Outcome: store.OutcomeDone, Status: 204}
	again   = store.Answer{Outcome: store.OutcomeAgain, Status: 503, Error: "answered 503"}
	refused = store.Answer{Outcome: store.OutcomeRefused, Status: 404, Code: "404", Error: "answered 404"}
	unknown = store.Answer{Outcome: store.OutcomeUnknown, Error: "no answer"}
	absent  = store.Answer{Outcome: store.OutcomeAbsent}
)

// standing tells the effects of ORD-1: "operation target status", in sequence.
func standing(t *testing.T, s *store.Store) []string {
	t.Helper()
	var all []string
	for _, e := range storetest.Effects(t, s, "ORD-1") {
		all = append(all, e.Operation+" "+e.Target+" "+e.Status)
	}
	return all
}

func wantStanding(t *testing.T, s *store.Store, when string, want ...string) {
	t.Helper()
	if got := standing(t, s); !slices.Equal(got, want) {
		t.Errorf("%s:\n  %s\nwant\n  %s", when, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func TestAnOperationFansOutOnce(t *testing.T) {
	s, clock := storetest.Open(t, fan("app", "mail"))
	storetest.Register(t, s, "ORD-1", 1250, "eur")
	storetest.Deliver(t, s, pays("evt_1", "pi_1", 1))
	wantStanding(t, s, "paid", "order.paid app pending", "order.paid mail pending")
	// The same again in every way there is: nothing new.
	storetest.Deliver(t, s, pays("evt_1", "pi_1", 1), pays("evt_2", "pi_1", 2),
		of("evt_3", "charge", "ch_1", opened+1, `,"amount":1250,"amount_captured":1250,"captured":true,"paid":true,"status":"succeeded","payment_intent":"pi_1"`))
	if _, err := s.RequeueEvent(ctx, "", "evt_1"); err != nil {
		t.Fatal(err)
	}
	storetest.Work(t, s)
	wantStanding(t, s, "paid again", "order.paid app pending", "order.paid mail pending")

	app, mail := storetest.ClaimOne(t, s, "app"), storetest.ClaimOne(t, s, "mail")
	if app.Key == mail.Key || app.Attempt != 1 || string(app.Body) != `{"type":"order.paid"}` || app.Order != "ORD-1" {
		t.Errorf("%+v and %+v", app, mail)
	}
	if more := storetest.Claim(t, s, "app"); len(more) != 0 {
		t.Errorf("claimed twice: %+v", more)
	}
	storetest.Finish(t, s, app, done)
	storetest.Finish(t, s, mail, again)
	wantStanding(t, s, "one done", "order.paid app done", "order.paid mail pending")
	if more := storetest.Claim(t, s, "mail"); len(more) != 0 {
		t.Error("tried again before its time")
	}
	clock.Advance(time.Second)
	second := storetest.ClaimOne(t, s, "mail")
	if second.Key != mail.Key || string(second.Body) != string(mail.Body) || second.Attempt != 2 {
		t.Errorf("the second attempt is %+v; the first was %+v", second, mail)
	}
	storetest.Finish(t, s, second, done)
	st, err := s.Stats(ctx)
	if err != nil || st.Effects["done"] != 2 || st.Effects["pending"] != 0 {
		t.Errorf("stats %v, %v", st.Effects, err)
	}
}

// TestWhatGoesOutShowsTheOrderAsItIsThen: with the ids that it has learned.
func TestWhatGoesOutShowsTheOrderAsItIsThen(t *testing.T) {
	var seen *store.Order
	s, _ := storetest.Open(t, func(o *store.Options) {
		o.Compose = func(oc store.Occasion) []store.Composed {
			if oc.Operation == "order.paid" {
				seen = oc.Order
			}
			return nil
		}
	})
	storetest.Register(t, s, "ORD-1", 1250, "eur")
	storetest.Deliver(t, s, pays("evt_1", "pi_1", 1))
	now := storetest.Order(t, s, "ORD-1").Order
	if seen == nil || !reflect.DeepEqual(*seen, now) || !slices.Equal(seen.Refs, []string{"pi_1"}) {
		t.Errorf("composed of %+v; the order is %+v", seen, now)
	}
}

func TestALostLeaseSettlesNothing(t *testing.T) {
	s, clock := storetest.Open(t, fan("app"))
	storetest.Register(t, s, "ORD-1", 1250, "eur")
	storetest.Deliver(t, s, pays("evt_1", "pi_1", 1))
	first := storetest.ClaimOne(t, s, "app")
	clock.Advance(29 * time.Second)
	if n, err := s.ReleaseExpired(ctx); n != 0 || err != nil {
		t.Fatalf("released %d, %v: the lease is three times ten seconds", n, err)
	}
	clock.Advance(2 * time.Second)
	if n, err := s.ReleaseExpired(ctx); n != 1 || err != nil {
		t.Fatalf("released %d, %v; want the one whose lease ran out", n, err)
	}
	wantStanding(t, s, "after its lease", "order.paid app unknown")
	if err := s.FinishEffect(ctx, first, done); !errors.Is(err, store.ErrLeaseLost) {
		t.Errorf("the late worker's settle: %v; want ErrLeaseLost", err)
	}
	second := storetest.ClaimOne(t, s, "app")
	if second.Key != first.Key {
		t.Errorf("key %s, was %s", second.Key, first.Key)
	}
	if err := s.FinishEffect(ctx, first, refused); !errors.Is(err, store.ErrLeaseLost) {
		t.Errorf("the late worker's settle beside its successor: %v; want ErrLeaseLost", err)
	}
	storetest.Finish(t, s, second, done)
	if err := s.FinishEffect(ctx, second, refused); !errors.Is(err, store.ErrLeaseLost) {
		t.Errorf("a second settle: %v; want ErrLeaseLost", err)
	}
	wantStanding(t, s, "in the end", "order.paid app done")
}

func TestALaneKeepsItsSequence(t *testing.T) {
	s, clock := storetest.Open(t, fan("app", "crm"))
	storetest.Register(t, s, "ORD-1", 1250, "eur")
	storetest.Register(t, s, "ORD-2", 1250, "eur")
	storetest.Deliver(t, s, pays("evt_1", "pi_1", 1), strings.Replace(pays("evt_2", "pi_2", 2), "ORD-1", "ORD-2", 1))
	heads := storetest.Claim(t, s, "app")
	storetest.Deliver(t, s, of("evt_3", "refund", "re_1", opened+3, `,"amount":50,"status":"succeeded","payment_intent":"pi_1"`))
	if more := storetest.Claim(t, s, "app"); len(more) != 0 {
		t.Errorf("%+v beside one that is under way", more)
	}
	if len(heads) != 2 || heads[0].Order != "ORD-1" || heads[0].Operation != "order.paid" || heads[1].Order != "ORD-2" {
		t.Fatalf("claimed %+v; want the heads of two lanes", heads)
	}
	storetest.Finish(t, s, heads[0], again)
	storetest.Finish(t, s, heads[1], done)
	if more := storetest.Claim(t, s, "app"); len(more) != 0 {
		t.Errorf("%+v overtook what waits for its retry", more)
	}
	if other := storetest.Claim(t, s, "crm"); len(other) != 2 || other[0].Operation != "order.paid" && other[0].Operation != "refund.succeeded:re_1" {
		t.Errorf("%+v for the other target; want two, it has lanes of its own", other)
	}
	clock.Advance(time.Second)
	head := storetest.ClaimOne(t, s, "app")
	if more := storetest.Claim(t, s, "app"); len(more) != 0 {
		t.Errorf("%+v beside one that is under way", more)
	}
	storetest.Finish(t, s, head, refused) // failed frees the lane too
	next := storetest.ClaimOne(t, s, "app")
	if next.Operation != "refund.succeeded:re_1" {
		t.Errorf("next is %s", next.Operation)
	}
	// The failed one is sent again by hand: it waits for what is under way.
	if _, err := s.RetryEffect(ctx, fmt.Sprint(head.Row)); err != nil {
		t.Fatal(err)
	}
	if more := storetest.Claim(t, s, "app"); len(more) != 0 {
		t.Errorf("%+v beside one that is under way", more)
	}
	storetest.Finish(t, s, next, done)
	if got := storetest.ClaimOne(t, s, "app"); got.Operation != "order.paid" {
		t.Errorf("then %s; want what was sent again, it is the oldest", got.Operation)
	}
}

func TestNothingIsSentForWhatIsLongPast(t *testing.T) {
	for _, tt := range []struct {
		name    string
		seconds int64 // the payment's, from the store's making
		learned time.Duration
		want    string
	}{
		{"a day before the installation", -86400, 0, "order.paid app canceled"},
		{"six minutes before it", -360, 0, "order.paid app canceled"},
		{"a little before it, by a clock that is behind ours", -200, 0, "order.paid app pending"},
		{"learned 71 hours late", 0, 71 * time.Hour, "order.paid app pending"},
		{"learned 73 hours late", 0, 73 * time.Hour, "order.paid app held"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, clock := storetest.Open(t, fan("app"))
			clock.Advance(tt.learned)
			storetest.Register(t, s, "ORD-1", 1250, "eur")
			storetest.Deliver(t, s, pays("evt_1", "pi_1", tt.seconds))
			wantStanding(t, s, tt.name, tt.want)
			if o := storetest.Order(t, s, "ORD-1"); o.Status != "paid" {
				t.Errorf("the order is %s: only the effects are held back", o.Status)
			}
		})
	}
}

func TestOrderPaidGoesAndComesWithItsTruth(t *testing.T) {
	dispute := func(event, status string, seconds int64, tx string) string {
		return of(event, "dispute", "dp_1", opened+seconds, fmt.Sprintf(`,"amount":1250,"status":%q,"charge":null,"payment_intent":"pi_1","balance_transactions":[%s]`, status, tx))
	}
	taken := `{"id":"txn_1","amount":-1250,"currency":"eur"}`
	s, _ := storetest.Open(t, fan("app"))
	storetest.Register(t, s, "ORD-1", 1250, "eur")
	storetest.Deliver(t, s, pays("evt_1", "pi_1", 1))
	key := storetest.Effects(t, s, "ORD-1")[0].IdempotencyKey
	storetest.Deliver(t, s, dispute("evt_2", "needs_response", 2, taken))
	wantStanding(t, s, "disputed before the first try", "order.paid app canceled", "dispute.opened:dp_1 app pending")
	storetest.Deliver(t, s, dispute("evt_3", "won", 3, taken+`,{"id":"txn_2","amount":1250,"currency":"eur"}`))
	wantStanding(t, s, "won", "order.paid app pending", "dispute.opened:dp_1 app pending", "dispute.closed:dp_1:won app pending")
	c := storetest.ClaimOne(t, s, "app")
	if c.Operation != "order.paid" || c.Key != key {
		t.Errorf("claimed %s under %s; want order.paid under %s", c.Operation, c.Key, key)
	}
	storetest.Finish(t, s, c, again)
	storetest.Deliver(t, s, refund("evt_4", "re_1", "succeeded", opened+4))
	if got := standing(t, s)[0]; got != "order.paid app pending" {
		t.Errorf("after its first try it is %s: the receiver may have heard of it", got)
	}
}

func TestAStartTakesNothingForGranted(t *testing.T) {
	dir, clock := t.TempDir(), storetest.NewClock()
	kinds := []string{store.KindHTTP, store.KindEmail, store.KindExec}
	open := func() *store.Store {
		o := storetest.Options(dir, clock)
		o.Compose = func(oc store.Occasion) (all []store.Composed) {
			if oc.Order == nil {
				return nil
			}
			for _, k := range kinds {
				all = append(all, store.Composed{Target: "t-" + k, Kind: k, Body: []byte(`{}`)})
			}
			return all
		}
		s, err := store.Open(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	storetest.Register(t, s, "ORD-1", 1250, "eur")
	storetest.Deliver(t, s, pays("evt_1", "pi_1", 1))
	keys := map[string]string{}
	for _, k := range kinds {
		keys[k] = storetest.ClaimOne(t, s, "t-"+k).Key
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	clock.Advance(time.Second)
	s = open()
	defer s.Close()
	wantStanding(t, s, "after a start", "order.paid t-http unknown", "order.paid t-email unknown", "order.paid t-exec held")
	if c := storetest.ClaimOne(t, s, "t-http"); c.Key != keys[store.KindHTTP] || c.Attempt != 2 {
		t.Errorf("http: %+v; want the same key at once", c)
	}
	if c := storetest.Claim(t, s, "t-email"); len(c) != 0 {
		t.Errorf("mail: %+v; want nothing before its quarter of an hour", c)
	}
	clock.Advance(15 * time.Minute)
	if c := storetest.ClaimOne(t, s, "t-email"); c.Key != keys[store.KindEmail] {
		t.Errorf("mail: %+v; want the same key", c)
	}
	clock.Advance(100 * time.Hour)
	if c := storetest.Claim(t, s, "t-exec"); len(c) != 0 {
		t.Errorf("exec: %+v; want a person's word", c)
	}
	d, err := s.FindEffect(ctx, "1")
	if err != nil || len(d.History) != 2 || d.History[0].Outcome != "not_recorded" || d.History[1].Outcome != "under_way" {
		t.Errorf("history %+v, %v", d.History, err)
	}
	storetest.Check(t, s)
}

func TestRawEventsAreRouted(t *testing.T) {
	s, _ := storetest.Open(t, func(o *store.Options) {
		o.Scopes["github"] = "github:github:-"
		o.Compose = func(oc store.Occasion) []store.Composed {
			if oc.Operation == "github:push" || oc.Operation == "stripe:customer.created" || oc.Operation == "stripe:payment_intent.updated" {
				return []store.Composed{{Target: "app", Kind: store.KindHTTP, Body: oc.Payload}}
			}
			return nil
		}
	})
	deliver := func(source, tenant, id, kind string) store.Event {
		t.Helper()
		body := `{"id":"` + id + `","object":"event","created":1796115601,"livemode":false,"type":"` + kind + `","data":{"object":{"id":"x","object":"customer"}}}`
		e := storetest.NewEvent(body)
		e.Source, e.Type, e.Tenant = source, kind, tenant
		if source == "github" {
			e.Scope = "github:github:-"
		}
		if _, err := s.AddEvent(ctx, e); err != nil {
			t.Fatal(err)
		}
		claims, err := s.ClaimEvents(ctx, 10)
		if err != nil || len(claims) != 1 {
			t.Fatalf("%d claims, %v", len(claims), err)
		}
		d := decoded(claims[0])
		if err := s.ApplyEvents(ctx, []store.Decoded{d})[0]; err != nil {
			t.Fatal(err)
		}
		return storetest.Event(t, s, id)
	}
	for _, tt := range []struct{ source, tenant, id, kind, verdict string }{
		{"github", "main", "g1", "push", "routed"},
		{"github", "main", "g2", "ping", "ignored"},
		{"stripe", "main", "evt_1", "customer.created", "routed"},
		{"stripe", "main", "evt_2", "customer.deleted", "ignored"},
		{"stripe", store.ForeignTenant + "acct_1", "evt_3", "customer.created", "ignored"},
	} {
		if e := deliver(tt.source, tt.tenant, tt.id, tt.kind); e.Verdict != tt.verdict {
			t.Errorf("%s %s of %s: %s; want %s", tt.source, tt.kind, tt.tenant, e.Verdict, tt.verdict)
		}
	}
	// One that the rules want as well does both.
	storetest.Deliver(t, s, loose("evt_4", "pi_9", ""))
	if e := storetest.Event(t, s, "evt_4"); e.Verdict != "unlinked" {
		t.Errorf("a payment that is routed too: %s", e.Verdict)
	}
	page, err := s.ListEffects(ctx, store.EffectFilter{})
	if err != nil || len(page.Items) != 3 {
		t.Fatalf("%d effects, %v; want three", len(page.Items), err)
	}
	if _, err := s.RequeueEvent(ctx, "", "g1"); err != nil {
		t.Fatal(err)
	}
	claims, _ := s.ClaimEvents(ctx, 10)
	s.ApplyEvents(ctx, []store.Decoded{decoded(claims[0])})
	if e := storetest.Event(t, s, "g1"); e.Verdict != "routed" {
		t.Errorf("run again it is %s", e.Verdict)
	}
	if page, _ = s.ListEffects(ctx, store.EffectFilter{}); len(page.Items) != 3 {
		t.Errorf("run again it made effects: %+v", page.Items)
	}
}

func TestWhatACommandRecordsIsQueuedByTheProcessThatServes(t *testing.T) {
	dir, clock := t.TempDir(), storetest.NewClock()
	o := storetest.Options(dir, clock)
	composed := 0
	o.Compose = func(oc store.Occasion) []store.Composed {
		composed++
		return storetest.Fan("app")(oc)
	}
	s, err := store.Open(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	storetest.Register(t, s, "ORD-1", 1250, "eur")
	c := storetest.Options(dir, clock)
	c.Mode, c.Actor = store.Client, "cli"
	cli, err := store.Open(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	defer cli.Close()
	if _, err := cli.FulfilOrder(ctx, "", "ORD-1"); err != nil {
		t.Fatal(err)
	}
	wantStanding(t, s, "before serve looks")
	if more, err := s.FanOutWaiting(ctx, 10); more || err != nil {
		t.Fatalf("%v, %v", more, err)
	}
	wantStanding(t, s, "after it", "order.paid app pending")
	if more, err := s.FanOutWaiting(ctx, 10); more || err != nil {
		t.Fatalf("%v, %v", more, err)
	}
	if wantStanding(t, s, "once", "order.paid app pending"); composed != 1 {
		t.Errorf("composed %d times", composed)
	}
}

// TestNeverTwoOfALaneAtOnce: claims, answers and a person's retries from all
// sides at once.
func TestNeverTwoOfALaneAtOnce(t *testing.T) {
	s, _ := storetest.Open(t, fan("app"))
	const orders = 3
	var bodies []string
	for i := range orders {
		id := fmt.Sprint("ORD-", i)
		storetest.Register(t, s, id, 1250, "eur")
		bodies = append(bodies, strings.ReplaceAll(pays(fmt.Sprint("evt_", i), fmt.Sprint("pi_", i), 1), "ORD-1", id))
		for r := range 4 {
			bodies = append(bodies, of(fmt.Sprintf("evt_%d_%d", i, r), "refund", fmt.Sprintf("re_%d_%d", i, r), opened+2,
				fmt.Sprintf(`,"amount":50,"status":"succeeded","payment_intent":"pi_%d"`, i)))
		}
	}
	storetest.Deliver(t, s, bodies...)
	var mu sync.Mutex
	flying := map[string]int64{}
	rounds := 60
	if testing.Short() {
		rounds = 15
	}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			dice := rand.New(rand.NewPCG(uint64(g), 1))
			for range rounds {
				claims, err := s.ClaimEffects(ctx, "app", 2)
				if err != nil {
					t.Error(err)
				}
				for _, c := range claims {
					mu.Lock()
					if other, busy := flying[c.Order]; busy {
						t.Errorf("effect %d beside %d of %s", c.Row, other, c.Order)
					}
					flying[c.Order] = c.Row
					mu.Unlock()
				}
				_, _ = s.RetryEffect(ctx, fmt.Sprint(1+dice.IntN(orders*5))) // whatever it says
				for _, c := range claims {
					mu.Lock()
					delete(flying, c.Order)
					mu.Unlock()
					if err := s.FinishEffect(ctx, c, []store.Answer{done, refused, done, {Outcome: store.OutcomeDone}}[dice.IntN(4)]); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
}

func TestAFailedEffectIsAnAttentionUntilItIsNot(t *testing.T) {
	s, _ := storetest.Open(t, fan("app"))
	storetest.Register(t, s, "ORD-1", 1250, "eur")
	storetest.Deliver(t, s, pays("evt_1", "pi_1", 1))
	words := func() string { return strings.Join(storetest.Order(t, s, "ORD-1").Attention, " ") }
	storetest.Finish(t, s, storetest.ClaimOne(t, s, "app"), refused)
	if words() != "effect_failed" {
		t.Fatalf("attention %q", words())
	}
	if _, err := s.AckAttention(ctx, "", "ORD-1", "effect_failed", ""); err != nil {
		t.Fatal(err)
	}
	storetest.Deliver(t, s, pays("evt_2", "pi_1", 2)) // derived again: still acknowledged
	if words() != "" {
		t.Fatalf("after the ack: %q", words())
	}
	if _, err := s.RetryEffect(ctx, "1"); err != nil {
		t.Fatal(err)
	}
	storetest.Finish(t, s, storetest.ClaimOne(t, s, "app"), refused)
	if words() != "effect_failed" {
		t.Fatalf("a new failure is news: %q", words())
	}
	if _, err := s.RetryEffect(ctx, "1"); err != nil {
		t.Fatal(err)
	}
	storetest.Finish(t, s, storetest.ClaimOne(t, s, "app"), done)
	if words() != "" {
		t.Errorf("done, and attention %q", words())
	}
}

func TestATemplateThatFailsIsAFailedEffectAndNoFailedEvent(t *testing.T) {
	s, _ := storetest.Open(t, func(o *store.Options) {
		o.Compose = func(oc store.Occasion) []store.Composed {
			if oc.Order == nil {
				return nil
			}
			return []store.Composed{{Target: "thanks", Kind: store.KindEmail, Failed: "order has no customer e-mail"}}
		}
	})
	storetest.Register(t, s, "ORD-1", 1250, "eur")
	storetest.Deliver(t, s, pays("evt_1", "pi_1", 1))
	e := storetest.Effects(t, s, "ORD-1")[0]
	if e.Status != "failed" || !strings.Contains(e.Reason, "no customer e-mail") {
		t.Errorf("%+v", e)
	}
	if ev := storetest.Event(t, s, "evt_1"); ev.Verdict != "applied" {
		t.Errorf("the event is %s", ev.Verdict)
	}
	if o := storetest.Order(t, s, "ORD-1"); o.Status != "paid" || !slices.Contains(o.Attention, "effect_failed") {
		t.Errorf("%s, attention %v", o.Status, o.Attention)
	}
	_, err := s.RetryEffect(ctx, e.ID)
	wantProblem(t, "retry without a body", err, store.CodeNotRetryable)
	if d, err := s.ResolveEffect(ctx, e.ID, "canceled", "phoned her"); err != nil || d.Status != "canceled" {
		t.Errorf("%s, %v", d.Status, err)
	}
	if o := storetest.Order(t, s, "ORD-1"); len(o.Attention) != 0 {
		t.Errorf("attention %v after it was put aside", o.Attention)
	}
}

// decoded is what the worker makes of a claim.
func decoded(c store.Claim) store.Decoded {
	d := store.Decoded{Claim: c}
	if d.Ignored = c.IgnoredUnread(); d.Ignored == "" {
		d.Event = payment.Decode(c.Body)
	}
	return d
}
