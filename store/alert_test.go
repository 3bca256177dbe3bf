package store_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"paidonce/store"
	"paidonce/store/storetest"
)

// rules are the defaults of [alerts].
var rules = store.AlertRules{Pending: 5 * time.Minute, Remind: 6 * time.Hour}

// tells is a Compose by which alerts go to the target ops, and the operations
// of orders to app.
func tells(o *store.Options) {
	o.Targets = []string{"ops", "app"}
	o.Compose = func(oc store.Occasion) []store.Composed {
		if oc.Alert == nil {
			return storetest.Fan("app")(oc)
		}
		body, err := json.Marshal(oc.Alert)
		if err != nil {
			panic(err)
		}
		return []store.Composed{{Target: "ops", Kind: store.KindHTTP, Body: body}}
	}
}

func check(t *testing.T, s *store.Store, r store.AlertRules) []store.Alert {
	t.Helper()
	told, err := s.CheckAlerts(ctx, r)
	if err != nil {
		t.Fatalf("CheckAlerts: %v", err)
	}
	return told
}

// wantTold checks what is told now: "name state count", in sequence.
func wantTold(t *testing.T, s *store.Store, r store.AlertRules, when string, want ...string) []store.Alert {
	t.Helper()
	told := check(t, s, r)
	var got []string
	for _, a := range told {
		got = append(got, fmt.Sprintf("%s %s %d", a.Name, a.State, a.Count))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: told %q; want %q", when, got, want)
	}
	return told
}

// messages are the operations that were queued for ops, the oldest first.
func messages(t *testing.T, s *store.Store) []string {
	t.Helper()
	page, err := s.ListEffects(ctx, store.EffectFilter{Target: "ops", Limit: 200})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range page.Items {
		all = append(all, e.Operation+" "+e.Status)
	}
	slices.Reverse(all)
	return all
}

// broken is an event that nobody can read: its amount is no number.
func broken(event string) string {
	return of(event, "payment_intent", "pi_"+event, opened+1, `,"amount":"much","amount_received":"much","status":"succeeded"`)
}

func brokenOnes(from, to int) (bodies []string) {
	for i := from; i <= to; i++ {
		bodies = append(bodies, broken(fmt.Sprintf("evt_%03d", i)))
	}
	return bodies
}

func dismiss(t *testing.T, s *store.Store, events ...string) {
	t.Helper()
	for _, id := range events {
		if _, err := s.DismissEvent(ctx, "", id, "by phone with Ann"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestEveryConditionBeginsAndEnds brings each condition about and takes it away
// again.
func TestEveryConditionBeginsAndEnds(t *testing.T) {
	paidOrder := func(t *testing.T, s *store.Store) store.EffectClaim {
		storetest.Register(t, s, "ORD-1", 1250, "eur", func(n *store.NewOrder) {
			n.Customer = &store.Customer{Email: "ann@example.com", Name: "Ann Example"}
		})
		storetest.Deliver(t, s, pays("evt_1", "pi_1", 1))
		return storetest.ClaimOne(t, s, "app")
	}
	dispute := func(event, status, more string) string {
		return of(event, "dispute", "dp_1", opened+9, `,"amount":1200,"payment_intent":"pi_1","status":"`+status+`"`+more)
	}
	raw := func(t *testing.T, s *store.Store) store.EffectClaim {
		e := storetest.NewEvent(`{"id":"evt_raw","object":"event","created":1796115601,"livemode":false,"type":"customer.created","data":{"object":{"id":"cus_1","object":"customer"}}}`)
		if _, err := s.AddEvent(ctx, e); err != nil {
			t.Fatal(err)
		}
		storetest.Work(t, s)
		return storetest.ClaimOne(t, s, "app")
	}
	for _, tt := range []struct {
		name    string
		change  func(*store.Options)
		begin   func(t *testing.T, s *store.Store, clock *storetest.Clock)
		rules   func(*store.AlertRules)
		alert   string
		summary string
		item    store.AlertItem // At is not compared
		command string
		end     func(t *testing.T, s *store.Store, clock *storetest.Clock)
		calm    func(*store.AlertRules)
	}{
		{name: "an event that nobody can read", alert: store.AlertQuarantined,
			begin:   func(t *testing.T, s *store.Store, _ *storetest.Clock) { storetest.Deliver(t, s, broken("evt_1")) },
			summary: "1 event is quarantined.",
			item:    store.AlertItem{Event: "evt_1", Text: "malformed: the body cannot be read as the rules need it: no fact was taken from it"},
			command: "paidonce events explain evt_1",
			end:     func(t *testing.T, s *store.Store, _ *storetest.Clock) { dismiss(t, s, "evt_1") },
		},
		{name: "money of the wrong amount", alert: store.AlertQuarantined,
			begin: func(t *testing.T, s *store.Store, _ *storetest.Clock) {
				storetest.Register(t, s, "ORD-1", 1250, "eur")
				storetest.Deliver(t, s, intent("evt_1", "pi_1", "succeeded", opened+1, 1000, ""))
			},
			summary: "1 event is quarantined.",
			item: store.AlertItem{Order: "ORD-1", Event: "evt_1", Amount: "10.00 EUR",
				Text: "amount_mismatch: the order's amount_policy does not take this amount: the money stands in suspense"},
			command: "paidonce events explain evt_1",
			end: func(t *testing.T, s *store.Store, _ *storetest.Clock) {
				if _, err := s.AcceptPayment(ctx, "", "ORD-1", "pi_1"); err != nil {
					t.Fatal(err)
				}
			},
		},
		{name: "money that nobody claims for a day", alert: store.AlertUnlinked,
			begin: func(t *testing.T, s *store.Store, clock *storetest.Clock) {
				storetest.Deliver(t, s, loose("evt_1", "pi_1", ""))
				wantTold(t, s, rules, "at once")
				clock.Advance(24*time.Hour - time.Millisecond)
				wantTold(t, s, rules, "before its day is over")
				clock.Advance(time.Millisecond)
			},
			summary: "1 event tells of a payment that no order has claimed for more than a day.",
			item: store.AlertItem{Event: "evt_1", Amount: "7.00 EUR",
				Text: "no order has one of the payment's ids, and none that it names exists: its money, if there is any, stands in suspense"},
			command: "paidonce events explain evt_1",
			end: func(t *testing.T, s *store.Store, _ *storetest.Clock) {
				storetest.Register(t, s, "ORD-2", 700, "eur", func(n *store.NewOrder) { n.Refs = []string{"pi_1"} })
			},
		},
		{name: "an effect that was refused", alert: store.AlertEffectFailed,
			begin: func(t *testing.T, s *store.Store, _ *storetest.Clock) {
				storetest.Finish(t, s, paidOrder(t, s), refused)
			},
			summary: "1 effect was refused or given up.",
			item:    store.AlertItem{Order: "ORD-1", Event: "evt_1", Effect: "1", Amount: "12.50 EUR", Text: "order.paid for app: it was refused: 404"},
			command: "paidonce effects show 1",
			end: func(t *testing.T, s *store.Store, _ *storetest.Clock) {
				if _, err := s.AckAttention(ctx, "", "ORD-1", "effect_failed", ""); err != nil {
					t.Fatal(err)
				}
			},
		},
		{name: "an effect of no order that was refused", alert: store.AlertEffectFailed,
			change: func(o *store.Options) {
				o.Targets = []string{"app"}
				o.Compose = func(oc store.Occasion) []store.Composed {
					if oc.Payload == nil {
						return nil
					}
					return []store.Composed{{Target: "app", Kind: store.KindHTTP, Body: oc.Payload}}
				}
			},
			begin:   func(t *testing.T, s *store.Store, _ *storetest.Clock) { storetest.Finish(t, s, raw(t, s), refused) },
			summary: "1 effect was refused or given up.",
			item:    store.AlertItem{Event: "evt_raw", Effect: "1", Text: "stripe:customer.created for app: it was refused: 404"},
			command: "paidonce effects show 1",
			end: func(t *testing.T, s *store.Store, _ *storetest.Clock) {
				if _, err := s.ResolveEffect(ctx, "1", "canceled", ""); err != nil {
					t.Fatal(err)
				}
			},
		},
		{name: "an effect that is past its quick retries", alert: store.AlertEffectStuck,
			begin: func(t *testing.T, s *store.Store, clock *storetest.Clock) {
				c := paidOrder(t, s)
				for n := 1; n <= 8; n++ {
					if n > 1 {
						c = storetest.ClaimOne(t, s, "app")
					}
					wantTold(t, s, rules, fmt.Sprintf("before failure %d", n))
					storetest.Finish(t, s, c, again)
					clock.Advance(34 * time.Second)
				}
			},
			summary: "1 effect is stuck.",
			item:    store.AlertItem{Order: "ORD-1", Event: "evt_1", Effect: "1", Amount: "12.50 EUR", Text: "order.paid for app: it is past its quick retries, and not done after 8 attempts"},
			command: "paidonce effects show 1",
			end: func(t *testing.T, s *store.Store, clock *storetest.Clock) {
				clock.Advance(6 * time.Minute)
				c := storetest.ClaimOne(t, s, "app")
				wantTold(t, s, rules, "while it is being tried again")
				storetest.Finish(t, s, c, done)
			},
		},
		{name: "an effect that holds its lane for more than an hour", alert: store.AlertEffectStuck,
			begin: func(t *testing.T, s *store.Store, clock *storetest.Clock) {
				storetest.Finish(t, s, paidOrder(t, s), store.Answer{Outcome: store.OutcomeAgain, Status: 503, RetryAfter: 2 * time.Hour})
				clock.Advance(time.Hour)
				wantTold(t, s, rules, "within the hour")
				clock.Advance(time.Second)
			},
			summary: "1 effect is stuck.",
			item:    store.AlertItem{Order: "ORD-1", Event: "evt_1", Effect: "1", Amount: "12.50 EUR", Text: "order.paid for app: it holds its lane, and is not done after 1 attempt"},
			command: "paidonce effects show 1",
			end: func(t *testing.T, s *store.Store, _ *storetest.Clock) {
				storetest.Finish(t, s, storetest.ClaimOne(t, s, "app"), done)
			},
		},
		{name: "an effect that is held, being learned of late", alert: store.AlertEffectStuck,
			begin: func(t *testing.T, s *store.Store, clock *storetest.Clock) {
				clock.Advance(73 * time.Hour)
				storetest.Register(t, s, "ORD-1", 1250, "eur")
				storetest.Deliver(t, s, pays("evt_1", "pi_1", 1))
				clock.Advance(time.Hour)
				wantTold(t, s, rules, "within the hour")
				clock.Advance(time.Second)
			},
			summary: "1 effect is stuck.",
			item:    store.AlertItem{Order: "ORD-1", Event: "evt_1", Effect: "1", Amount: "12.50 EUR", Text: "order.paid for app: it waits for a person's word"},
			command: "paidonce effects show 1",
			end: func(t *testing.T, s *store.Store, _ *storetest.Clock) {
				if _, err := s.RetryEffect(ctx, "1"); err != nil {
					t.Fatal(err)
				}
				storetest.Finish(t, s, storetest.ClaimOne(t, s, "app"), done)
			},
		},
		{name: "an effect of unknown outcome for more than an hour", alert: store.AlertEffectStuck,
			change: func(o *store.Options) { o.StripeKey = "sk_test" },
			begin: func(t *testing.T, s *store.Store, clock *storetest.Clock) {
				storetest.Register(t, s, "ORD-1", 1250, "eur")
				storetest.Deliver(t, s, pays("evt_1", "pi_1", 1))
				storetest.Finish(t, s, storetest.ClaimOne(t, s, "app"), done)
				amount := int64(500)
				if _, err := s.RequestRefund(ctx, "", "ORD-1", store.RefundRequest{AmountMinor: &amount, RequestID: "r1"}); err != nil {
					t.Fatal(err)
				}
				storetest.Finish(t, s, storetest.ClaimOne(t, s, store.StripeTarget), unknown)
				wantTold(t, s, rules, "within the hour")
				clock.Advance(time.Hour + time.Second)
			},
			summary: "1 effect is stuck.",
			item: store.AlertItem{Order: "ORD-1", Effect: "2", Amount: "5.00 EUR",
				Text: "refund.request:r1 for stripe: nobody knows whether it happened, after 1 attempt"},
			command: "paidonce effects show 2",
			end: func(t *testing.T, s *store.Store, _ *storetest.Clock) {
				storetest.Finish(t, s, storetest.ClaimOne(t, s, store.StripeTarget), done)
			},
		},
		{name: "an effect whose target is configured no more", alert: store.AlertEffectStuck,
			change: func(o *store.Options) { o.Targets = []string{"ops"} },
			begin: func(t *testing.T, s *store.Store, _ *storetest.Clock) {
				storetest.Register(t, s, "ORD-1", 1250, "eur")
				storetest.Deliver(t, s, pays("evt_1", "pi_1", 1))
			},
			summary: "1 effect is stuck.",
			item: store.AlertItem{Order: "ORD-1", Event: "evt_1", Effect: "1", Amount: "12.50 EUR",
				Text: "order.paid for app: no [[effect]] of the configuration has that name"},
			command: "paidonce effects show 1",
			end: func(t *testing.T, s *store.Store, _ *storetest.Clock) {
				if _, err := s.ResolveEffect(ctx, "1", "canceled", ""); err != nil {
					t.Fatal(err)
				}
			},
		},
		{name: "an inbox that nobody works on", alert: store.AlertPending,
			begin: func(t *testing.T, s *store.Store, clock *storetest.Clock) {
				if _, err := s.AddEvent(ctx, storetest.NewEvent(loose("evt_1", "pi_1", ""))); err != nil {
					t.Fatal(err)
				}
				clock.Advance(5 * time.Minute)
				wantTold(t, s, rules, "in time")
				clock.Advance(2 * time.Second)
			},
			summary: "1 event waits to be worked on, the longest for 5m2s.",
			item:    store.AlertItem{Event: "evt_1", Text: "waits for 5m2s"},
			command: "paidonce events list --status pending",
			end:     func(t *testing.T, s *store.Store, _ *storetest.Clock) { storetest.Work(t, s) },
		},
		{name: "an order that took more than there was", alert: store.AlertOversold,
			begin: func(t *testing.T, s *store.Store, _ *storetest.Clock) {
				setStock(t, s, "mug", 1)
				storetest.Register(t, s, "ORD-1", 1250, "eur", sells("mug", 3))
				storetest.Deliver(t, s, pays("evt_1", "pi_1", 1))
			},
			summary: "1 item of an order is oversold: there was less in stock than was paid for.",
			item:    store.AlertItem{Order: "ORD-1", Amount: "12.50 EUR", Text: "mug: 3 were sold and 2 of them were not in stock"},
			command: "paidonce orders show ORD-1",
			end: func(t *testing.T, s *store.Store, _ *storetest.Clock) {
				if _, err := s.AckAttention(ctx, "", "ORD-1", "oversold", ""); err != nil {
					t.Fatal(err)
				}
			},
		},
		{name: "a dispute that must be answered", alert: store.AlertDispute,
			begin: func(t *testing.T, s *store.Store, _ *storetest.Clock) {
				storetest.Finish(t, s, paidOrder(t, s), done)
				storetest.Deliver(t, s, dispute("evt_2", "needs_response", `,"evidence_details":{"due_by":1796720400}`))
			},
			summary: "1 dispute waits for a person's answer, the first by 2026-12-08T09:00:00.000Z.",
			item:    store.AlertItem{Order: "ORD-1", Amount: "12.00 EUR", Text: "dp_1 must be answered by 2026-12-08T09:00:00.000Z"},
			command: "paidonce orders show ORD-1",
			end: func(t *testing.T, s *store.Store, _ *storetest.Clock) {
				storetest.Deliver(t, s, dispute("evt_3", "won", ""))
			},
		},
		{name: "a source whose deliveries are refused, one after the other", alert: store.AlertRejects,
			begin: func(t *testing.T, s *store.Store, _ *storetest.Clock) {
				four := rules
				four.Rejects = store.RejectsSeen{Source: "stripe", InARow: 4, LastAt: 1, LastReason: "signature mismatch"}
				wantTold(t, s, four, "four in a row")
			},
			rules: func(r *store.AlertRules) {
				r.Rejects = store.RejectsSeen{Source: "stripe", InARow: 5, LastAt: 1, LastReason: "signature mismatch"}
			},
			summary: "The last 5 deliveries of source stripe were refused, and none accepted between them.",
			item:    store.AlertItem{Text: "source stripe: signature mismatch"},
			command: "paidonce doctor",
			end: func(t *testing.T, s *store.Store, _ *storetest.Clock) {
				wantTold(t, s, rules, "after a start: nothing was refused yet, and nothing accepted")
			},
			calm: func(r *store.AlertRules) { r.Rejects = store.RejectsSeen{AcceptedAt: 2} },
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			changes := []func(*store.Options){tells}
			if tt.change != nil {
				changes = append(changes, tt.change)
			}
			s, clock := storetest.Open(t, changes...)
			wantTold(t, s, rules, "before anything")
			tt.begin(t, s, clock)
			r := rules
			if tt.rules != nil {
				tt.rules(&r)
			}
			count := 1
			if tt.alert == store.AlertRejects {
				count = 5
			}
			told := wantTold(t, s, r, "when it begins", fmt.Sprintf("%s firing %d", tt.alert, count))
			if len(told) != 1 {
				t.FailNow()
			}
			a := told[0]
			if a.Since != store.At(clock.Now()) || a.Summary != tt.summary || a.Command != tt.command || !strings.HasSuffix(a.Next, ".") {
				t.Errorf("told %+v\nwant summary %q, command %q, since now", a, tt.summary, tt.command)
			}
			if len(a.Items) != 1 || a.Items[0].At == 0 {
				t.Fatalf("items %+v; want one, with its time", a.Items)
			}
			a.Items[0].At = 0
			if a.Items[0] != tt.item {
				t.Errorf("item\n%+v; want\n%+v", a.Items[0], tt.item)
			}
			if body, _ := json.Marshal(a); bytes.Contains(body, []byte("nn@ex")) || bytes.Contains(body, []byte("Ann")) {
				t.Errorf("a customer stands in %s", body)
			}
			wantTold(t, s, r, "looked at again")
			clock.Advance(90 * time.Second)
			began := a.Since
			tt.end(t, s, clock)
			calm := rules
			if tt.calm != nil {
				tt.calm(&calm)
			}
			told = wantTold(t, s, calm, "when it ends", tt.alert+" resolved 0")
			if len(told) == 1 && (told[0].Since != began || len(told[0].Items) != 0 || told[0].Items == nil || !strings.Contains(told[0].Summary, "it was an alert for ")) {
				t.Errorf("the end is %+v", told[0])
			}
			wantTold(t, s, calm, "after its end")
			if tt.change == nil {
				want := []string{"alert." + tt.alert + ":1 pending", "alert." + tt.alert + ":2 pending"}
				if got := messages(t, s); !slices.Equal(got, want) {
					t.Errorf("queued %q; want %q", got, want)
				}
			}
		})
	}
}

func TestAStormIsOneMessage(t *testing.T) {
	s, clock := storetest.Open(t, tells)
	n := 500
	if testing.Short() {
		n = 250
	}
	storetest.Deliver(t, s, brokenOnes(1, n)...)
	a := wantTold(t, s, rules, "the storm", fmt.Sprintf("quarantined firing %d", n))[0]
	if len(a.Items) != 10 || a.Items[0].Event != fmt.Sprintf("evt_%03d", n) || a.Items[9].Event != fmt.Sprintf("evt_%03d", n-9) {
		t.Errorf("items %+v; want the newest ten", a.Items)
	}
	if a.Command != "paidonce events list --status quarantined" {
		t.Errorf("command %q", a.Command)
	}
	for i := range 19 { // it goes on: a new one every quarter of a minute
		clock.Advance(15 * time.Second)
		storetest.Deliver(t, s, brokenOnes(n+1+i, n+1+i)...)
		wantTold(t, s, rules, "while it goes on")
	}
	clock.Advance(15 * time.Second)
	wantTold(t, s, rules, "five minutes after the first message", fmt.Sprintf("quarantined firing %d", n+19))
	clock.Advance(time.Hour)
	wantTold(t, s, rules, "when nothing new came")
	if got := messages(t, s); len(got) != 2 {
		t.Errorf("queued %q; want two messages", got)
	}
}

func TestWhatIsNewIsTold(t *testing.T) {
	s, clock := storetest.Open(t, tells)
	storetest.Deliver(t, s, brokenOnes(1, 3)...)
	wantTold(t, s, rules, "three", "quarantined firing 3")
	clock.Advance(time.Hour)
	dismiss(t, s, "evt_003")
	wantTold(t, s, rules, "one of them is put aside")
	storetest.Deliver(t, s, broken("evt_004"))
	wantTold(t, s, rules, "as many as before, but another one", "quarantined firing 3")
	clock.Advance(time.Hour)
	if _, err := s.RequeueEvent(ctx, "", "evt_001"); err != nil {
		t.Fatal(err)
	}
	storetest.Work(t, s)
	wantTold(t, s, rules, "run again, and quarantined again", "quarantined firing 3")
	clock.Advance(time.Hour)
	dismiss(t, s, "evt_004")
	if _, err := s.RequeueEvent(ctx, "", "evt_003"); err != nil {
		t.Fatal(err)
	}
	storetest.Work(t, s)
	wantTold(t, s, rules, "one of a lower row in place of one of a higher", "quarantined firing 3")
}

// TestWhatComesBackIsNews: of two disputes one is answered, and then has to be
// answered again.
func TestWhatComesBackIsNews(t *testing.T) {
	s, clock := storetest.Open(t, tells)
	storetest.Register(t, s, "ORD-1", 1250, "eur")
	dispute := func(event, id, status string, seconds int64) string {
		return of(event, "dispute", id, opened+seconds, fmt.Sprintf(`,"amount":600,"payment_intent":"pi_1","status":%q`, status))
	}
	storetest.Deliver(t, s, pays("evt_1", "pi_1", 1), dispute("evt_2", "dp_1", "needs_response", 2), dispute("evt_3", "dp_2", "needs_response", 3))
	wantTold(t, s, rules, "two", "dispute firing 2")
	clock.Advance(time.Hour)
	storetest.Deliver(t, s, dispute("evt_4", "dp_2", "under_review", 4))
	wantTold(t, s, rules, "one is answered")
	clock.Advance(time.Hour)
	storetest.Deliver(t, s, dispute("evt_5", "dp_2", "needs_response", 5))
	wantTold(t, s, rules, "it has to be answered again", "dispute firing 2")
}

func TestAFailureAfterARetryIsNews(t *testing.T) {
	s, clock := storetest.Open(t, tells)
	storetest.Register(t, s, "ORD-1", 1250, "eur")
	storetest.Deliver(t, s, pays("evt_1", "pi_1", 1))
	storetest.Finish(t, s, storetest.ClaimOne(t, s, "app"), refused)
	wantTold(t, s, rules, "refused", "effect_failed firing 1")
	clock.Advance(time.Hour)
	if _, err := s.RetryEffect(ctx, "1"); err != nil {
		t.Fatal(err)
	}
	storetest.Finish(t, s, storetest.ClaimOne(t, s, "app"), refused)
	wantTold(t, s, rules, "refused again between two checks", "effect_failed firing 1")
}

func TestAReminderComesInItsTime(t *testing.T) {
	s, clock := storetest.Open(t, tells)
	storetest.Deliver(t, s, brokenOnes(1, 2)...)
	began := store.At(clock.Now())
	wantTold(t, s, rules, "it begins", "quarantined firing 2")
	clock.Advance(6*time.Hour - time.Second)
	wantTold(t, s, rules, "a second before its time")
	clock.Advance(time.Second)
	a := wantTold(t, s, rules, "in its time", "quarantined reminder 2")[0]
	if a.Since != began || a.Summary != "2 events are quarantined; it has been so since "+began.String()+"." || len(a.Items) != 2 {
		t.Errorf("the reminder is %+v", a)
	}
	wantTold(t, s, rules, "at once after it")
	clock.Advance(6 * time.Hour)
	wantTold(t, s, rules, "and again", "quarantined reminder 2")
	clock.Advance(6 * time.Hour)
	never := rules
	never.Remind = 0
	wantTold(t, s, never, "where nobody wants reminders")
}

func TestABacklogIsOneThing(t *testing.T) {
	s, clock := storetest.Open(t, tells)
	add := func(id string) {
		if _, err := s.AddEvent(ctx, storetest.NewEvent(loose(id, "pi_"+id, ""))); err != nil {
			t.Fatal(err)
		}
	}
	add("evt_1")
	clock.Advance(6 * time.Minute)
	wantTold(t, s, rules, "it begins", "pending firing 1")
	for i := range 20 {
		add(fmt.Sprintf("evt_%d", i+2))
		clock.Advance(6 * time.Minute)
		wantTold(t, s, rules, "it grows")
	}
	clock.Advance(4 * time.Hour)
	wantTold(t, s, rules, "reminded", "pending reminder 21")
	off := rules
	off.Pending = 0
	wantTold(t, s, off, "where nobody wants it", "pending resolved 0")
}

func TestUnlinkedMoneyIsToldOfOnce(t *testing.T) {
	s, clock := storetest.Open(t, tells)
	storetest.Deliver(t, s, loose("evt_1", "pi_1", ""), loose("evt_in", "pi_in", "in_1"))
	clock.Advance(25 * time.Hour)
	if a := wantTold(t, s, rules, "after a day", "unlinked firing 1")[0]; len(a.Items) != 1 || a.Items[0].Event != "evt_1" {
		t.Errorf("items %+v; want the one that is not an invoice's", a.Items)
	}
	storetest.Deliver(t, s, loose("evt_2", "pi_2", ""))
	for range 8 {
		clock.Advance(3*time.Hour - time.Second)
		wantTold(t, s, rules, "the day after")
	}
	clock.Advance(time.Minute)
	if a := wantTold(t, s, rules, "when the next one's day is over", "unlinked firing 2")[0]; a.Items[0].Event != "evt_2" {
		t.Errorf("items %+v; want the new one first", a.Items)
	}
	clock.Advance(1000 * time.Hour)
	wantTold(t, s, rules, "ever after")
	dismiss(t, s, "evt_1", "evt_2")
	wantTold(t, s, rules, "when all is put aside", "unlinked resolved 0")
}

func TestWhereOtherProgramsShareTheAccountNothingIsUnlinked(t *testing.T) {
	s, clock := storetest.Open(t, tells, func(o *store.Options) { o.Unlinked = "ignore" })
	storetest.Deliver(t, s, loose("evt_1", "pi_1", ""))
	clock.Advance(48 * time.Hour)
	wantTold(t, s, rules, "after two days")
}

// TestAConditionThatFlapsIsToldSeldom: each end is told at once, the next
// beginning not before five minutes are over.
func TestAConditionThatFlapsIsToldSeldom(t *testing.T) {
	s, clock := storetest.Open(t, tells)
	storetest.Deliver(t, s, broken("evt_1"))
	wantTold(t, s, rules, "it begins", "quarantined firing 1")
	dismiss(t, s, "evt_1")
	wantTold(t, s, rules, "it ends", "quarantined resolved 0")
	storetest.Deliver(t, s, broken("evt_2"))
	clock.Advance(5*time.Minute - time.Second)
	wantTold(t, s, rules, "it begins again too soon")
	clock.Advance(time.Second)
	wantTold(t, s, rules, "after five minutes", "quarantined firing 1")
}

func TestAClockThatIsSetBackMutesNothing(t *testing.T) {
	s, clock := storetest.Open(t, tells)
	storetest.Deliver(t, s, broken("evt_1"))
	wantTold(t, s, rules, "it begins", "quarantined firing 1")
	clock.Advance(-48 * time.Hour) // before the file was made, too
	storetest.Deliver(t, s, broken("evt_2"))
	wantTold(t, s, rules, "another one, two days before the first", "quarantined firing 2")
	if got := messages(t, s); !slices.Equal(got, []string{"alert.quarantined:1 pending", "alert.quarantined:2 pending"}) {
		t.Errorf("queued %q; want both ready to go", got)
	}
}

// TestAnAlertsOwnEffectsAlarmNobody: a message that cannot be sent must not
// cause the next one.
func TestAnAlertsOwnEffectsAlarmNobody(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(t *testing.T, s *store.Store, clock *storetest.Clock)
	}{
		{"refused", func(t *testing.T, s *store.Store, _ *storetest.Clock) {
			storetest.Finish(t, s, storetest.ClaimOne(t, s, "ops"), refused)
		}},
		{"failed again and again", func(t *testing.T, s *store.Store, clock *storetest.Clock) {
			for range 9 {
				storetest.Finish(t, s, storetest.ClaimOne(t, s, "ops"), again)
				clock.Advance(6 * time.Minute)
			}
		}},
		{"not even tried, since nobody is configured", func(*testing.T, *store.Store, *storetest.Clock) {}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, clock := storetest.Open(t, tells, func(o *store.Options) { o.Targets = []string{"app"} })
			storetest.Deliver(t, s, broken("evt_1"))
			wantTold(t, s, rules, "it begins", "quarantined firing 1")
			tt.do(t, s, clock)
			clock.Advance(2 * time.Hour)
			wantTold(t, s, rules, "hours later")
		})
	}
}

// TestToldAndNotedCommitTogether ends the write between the message and the
// note of it: neither is there, and the next check tells it once.
func TestToldAndNotedCommitTogether(t *testing.T) {
	fail := false
	s, _ := storetest.Open(t, tells, func(o *store.Options) {
		o.Testpoint = func(point string) {
			if fail && point == "effect:queued" {
				panic("stopped here")
			}
		}
	})
	storetest.Deliver(t, s, broken("evt_1"))
	fail = true
	if told, err := s.CheckAlerts(ctx, rules); err == nil || len(told) != 0 {
		t.Fatalf("told %+v, %v; want an error and nothing told", told, err)
	}
	if got := messages(t, s); len(got) != 0 {
		t.Errorf("queued %q", got)
	}
	fail = false
	wantTold(t, s, rules, "the next check", "quarantined firing 1")
	wantTold(t, s, rules, "and the one after")
	if got := messages(t, s); !slices.Equal(got, []string{"alert.quarantined:1 pending"}) {
		t.Errorf("queued %q", got)
	}
}

func TestWhereNobodyListensItIsToldAllTheSame(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*store.Options)
	}{
		{"no effects at all", func(*store.Options) {}},
		{"no effect for alerts", fan("app")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := storetest.Open(t, tt.change)
			storetest.Deliver(t, s, broken("evt_1"))
			wantTold(t, s, rules, "it begins", "quarantined firing 1")
			wantTold(t, s, rules, "looked at again")
		})
	}
}

func TestAStartKnowsWhatWasTold(t *testing.T) {
	dir, clock := t.TempDir(), storetest.NewClock()
	open := func() *store.Store {
		o := storetest.Options(dir, clock)
		tells(&o)
		s, err := store.Open(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	storetest.Deliver(t, s, brokenOnes(1, 2)...)
	r := rules
	r.Rejects = store.RejectsSeen{Source: "stripe", InARow: 7, LastAt: 1, LastReason: "signature mismatch"}
	wantTold(t, s, r, "it begins", "quarantined firing 2", "rejects firing 7")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	clock.Advance(time.Hour)
	s = open()
	defer s.Close()
	wantTold(t, s, rules, "after the start, which knows of no refusal")
	storetest.Deliver(t, s, broken("evt_003"))
	wantTold(t, s, rules, "a new one", "quarantined firing 3")
	r.Rejects = store.RejectsSeen{AcceptedAt: 1}
	wantTold(t, s, r, "the first delivery that is accepted", "rejects resolved 0")
	storetest.Check(t, s)
}

func TestACheckThatFindsNothingWritesNothing(t *testing.T) {
	dir, clock := t.TempDir(), storetest.NewClock()
	o := storetest.Options(dir, clock)
	tells(&o)
	s, err := store.Open(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	wal := func() []byte {
		t.Helper()
		b, err := os.ReadFile(o.Path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	storetest.Deliver(t, s, brokenOnes(1, 3)...)
	check(t, s, rules)
	storetest.Deliver(t, s, broken("evt_004")) // new, but its five minutes are not over
	before := wal()
	for range 5 {
		clock.Advance(15 * time.Second)
		wantTold(t, s, rules, "nothing is due")
	}
	if !bytes.Equal(before, wal()) {
		t.Error("a check that told nothing has written")
	}
}

func TestForeignTextIsHarmlessInAnAlert(t *testing.T) {
	for _, tt := range []struct {
		name, event, shown, command string
	}{
		{"a command behind the id", "evt_1; rm -rf /", "evt_1; rm -rf /", "paidonce events explain 'evt_1; rm -rf /'"},
		{"one that ends the quotes", "evt'$(id)`id`", "evt'$(id)`id`", "paidonce events explain 'evt'\\''$(id)`id`'"},
		{"one that looks like a flag", "--db=/etc/passwd", "--db=/etc/passwd", "paidonce events list --status quarantined"},
		{"text that turns around", "evt_\u202e1", "evt_?1", "paidonce events list --status quarantined"},
		{"a line of its own", "evt_1\u2028Command: rm", "evt_1?Command: rm", "paidonce events list --status quarantined"},
		{"one that is too long to show", strings.Repeat("e", 254), strings.Repeat("e", 200), "paidonce events list --status quarantined"},
		{"one with a percent sign", "evt_%d%s", "evt_%d%s", "paidonce events explain 'evt_%d%s'"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := storetest.Open(t, tells)
			e := storetest.NewEvent(broken("evt_1"))
			e.ID, e.Type = tt.event, "<script>"+strings.Repeat("\r\nBcc: x", 9)
			if _, err := s.AddEvent(ctx, e); err != nil {
				t.Fatal(err)
			}
			storetest.Work(t, s)
			a := check(t, s, rules)[0]
			if a.Items[0].Event != tt.shown || a.Command != tt.command {
				t.Errorf("shown as %q, command %q; want %q, %q", a.Items[0].Event, a.Command, tt.shown, tt.command)
			}
			body, _ := json.Marshal(a)
			if text := string(body); strings.Contains(text, "Bcc") || strings.Contains(text, "script") {
				t.Errorf("the sender's type stands in %s", text)
			}
		})
	}
}

func TestForeignTextOfAReceiverIsNotRepeated(t *testing.T) {
	for _, tt := range []struct {
		name string
		a    store.Answer
		text string
	}{
		{"a code", store.Answer{Outcome: store.OutcomeRefused, Code: "charge_disputed", Error: "no such ann@example.com"}, "it was refused: charge_disputed"},
		{"a code that is none", store.Answer{Outcome: store.OutcomeRefused, Code: "ann@example.com was refused", Error: "x"}, "it was refused"},
		{"no code", store.Answer{Outcome: store.OutcomeRefused, Error: "mail to ann@example.com refused"}, "it was refused"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := storetest.Open(t, tells)
			storetest.Register(t, s, "ORD-1", 1250, "eur")
			storetest.Deliver(t, s, pays("evt_1", "pi_1", 1))
			storetest.Finish(t, s, storetest.ClaimOne(t, s, "app"), tt.a)
			a := check(t, s, rules)[0]
			if got := a.Items[0].Text; got != "order.paid for app: "+tt.text {
				t.Errorf("text %q; want %q", got, tt.text)
			}
			if body, _ := json.Marshal(a); bytes.Contains(body, []byte("ann@")) {
				t.Errorf("a customer stands in %s", body)
			}
		})
	}
	s, _ := storetest.Open(t, func(o *store.Options) {
		o.Compose = func(oc store.Occasion) []store.Composed {
			if oc.Order == nil {
				return nil
			}
			return []store.Composed{{Target: "app", Kind: store.KindEmail, Failed: "cannot greet ann@example.com"}}
		}
	})
	storetest.Register(t, s, "ORD-1", 1250, "eur")
	storetest.Deliver(t, s, pays("evt_1", "pi_1", 1))
	if got := check(t, s, rules)[0].Items[0].Text; got != "order.paid for app: its text could not be made: the template failed" {
		t.Errorf("a template that failed: %q", got)
	}
}

func TestAnOrderOfAnotherTenantIsNamedInFull(t *testing.T) {
	s, _ := storetest.Open(t, tells)
	for _, tt := range []struct{ tenant, id, want string }{
		{"acct_1A", "ORD-1", "paidonce orders show ORD-1 --tenant acct_1A"},
	} {
		if _, err := s.SetStock(ctx, tt.tenant, "mug", 0); err != nil {
			t.Fatal(err)
		}
		storetest.Register(t, s, tt.id, 1250, "eur", sells("mug", 1), func(n *store.NewOrder) { n.Tenant = tt.tenant })
		e := storetest.NewEvent(pays("evt_1", "pi_1", 1))
		e.Tenant, e.Scope = tt.tenant, "stripe:acct_1A:test"
		if _, err := s.AddEvent(ctx, e); err != nil {
			t.Fatal(err)
		}
		storetest.Work(t, s)
		if a := wantTold(t, s, rules, "oversold", "oversold firing 1")[0]; a.Command != tt.want {
			t.Errorf("command %q; want %q", a.Command, tt.want)
		}
	}
}

// BenchmarkCheckAlerts is an idle check beside many rows that lie open.
func BenchmarkCheckAlerts(b *testing.B) {
	s, clock := storetest.Open(b, tells, func(o *store.Options) { o.Log = slog.New(slog.NewTextHandler(io.Discard, nil)) })
	storetest.Deliver(b, s, brokenOnes(1, 1000)...)
	clock.Advance(time.Minute)
	if _, err := s.CheckAlerts(ctx, rules); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if told, err := s.CheckAlerts(ctx, rules); err != nil || len(told) != 0 {
			b.Fatal(told, err)
		}
	}
}
