package store_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"paidonce/store"
	"paidonce/store/storetest"
)

// allOf is all that an operator can see of an order and an event, to tell
// whether anything has changed.
func allOf(t *testing.T, s *store.Store, order, event string) string {
	t.Helper()
	st, err := s.Stats(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	st.AckMS, st.ReceiptToDoneMS = store.Percentiles{}, store.Percentiles{}
	b, err := json.Marshal([]any{storetest.Order(t, s, order), storetest.Event(t, s, event), st})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestExplainTellsWhyAndWhatARequeueWouldDo(t *testing.T) {
	ctx := context.Background()
	edit := func(t *testing.T, s *store.Store, total int64) {
		t.Helper()
		if _, err := s.EditOrder(ctx, "", "ORD-1", store.NewOrder{TotalMinor: &total}); err != nil {
			t.Fatal(err)
		}
	}
	adopts := []func(*store.Options){func(o *store.Options) { o.Adopt = []string{"plink_1"} }}
	for _, tt := range []struct {
		name    string
		prepare func(t *testing.T, s *store.Store)
		options []func(*store.Options)
		verdict string
		rule    string
		named   string // part of what speaks for an order
		today   string // verdict
		changes bool
		orders  string // changes of orders: "ORD-1: was > is"
		written int    // entries, operations and stock moves
	}{
		{"applied, and nothing would change", func(t *testing.T, s *store.Store) { storetest.Deliver(t, s, paid("evt_1", "pi_1")) }, nil,
			"applied", "its fact changed", "metadata.order_id of pi_1 names order ORD-1", "applied", false, "", 0},
		{"a repeat under another id", func(t *testing.T, s *store.Store) {
			storetest.Deliver(t, s, paid("evt_0", "pi_1"), paid("evt_1", "pi_1"))
		}, nil, "duplicate", "already said the same", "names order ORD-1", "duplicate", false, "", 0},
		{"a wrong amount", func(t *testing.T, s *store.Store) {
			storetest.Deliver(t, s, intent("evt_1", "pi_1", "succeeded", 1750000000, 1000, ""))
		}, nil, "amount_mismatch", "amount_policy does not take", "names order ORD-1", "amount_mismatch", false, "", 0},
		{"pending, and it would pay", func(t *testing.T, s *store.Store) {
			if _, err := s.AddEvent(ctx, storetest.NewEvent(paid("evt_1", "pi_1"))); err != nil {
				t.Fatal(err)
			}
		}, nil, "new", "not tried yet", "", "applied", true, "ORD-1: awaiting_payment > paid", 3},
		{"an order of that name does not exist", func(t *testing.T, s *store.Store) {
			storetest.Deliver(t, s, strings.ReplaceAll(paid("evt_1", "pi_1"), "ORD-1", "ORD-9"))
		}, nil, "unlinked", "no order has", "names order ORD-9, which does not exist", "unlinked", false, "", 0},
		{"a Payment Link that is adopted since", func(t *testing.T, s *store.Store) {
			storetest.Deliver(t, s, session("evt_1", "cs_1", "plink_1", "pi_1", 1750000000))
		}, adopts, "unlinked", "no order has", "", "applied", true, "cs_1:  > paid", 3},
		{"a body that cannot be read", func(t *testing.T, s *store.Store) {
			storetest.Deliver(t, s, `{"id":"evt_1","object":"event","type":"payment_intent.succeeded","livemode":false,"created":1,"data":{"object":{"id":"pi_1","object":"payment_intent","amount":1e3}}}`)
		}, nil, "malformed", "no fact was taken", "", "malformed", false, "", 0},
		{"a kind that nothing wants", func(t *testing.T, s *store.Store) {
			storetest.Deliver(t, s, `{"id":"evt_1","object":"event","type":"customer.created","livemode":false,"created":1,"data":{"object":{"id":"cus_1","object":"customer"}}}`)
		}, nil, "ignored", "no rule wants it", "", "ignored", false, "", 0},
		{"dismissed by a person", func(t *testing.T, s *store.Store) {
			storetest.Deliver(t, s, loose("evt_1", "pi_1", ""))
			if _, err := s.DismissEvent(ctx, "", "evt_1", "ours"); err != nil {
				t.Fatal(err)
			}
		}, nil, "ignored", "a person set it aside", "", "unlinked", true, "", 0},
		{"linked by a person", func(t *testing.T, s *store.Store) {
			edit(t, s, 700)
			storetest.Deliver(t, s, loose("evt_1", "pi_1", ""))
			if _, err := s.LinkOrder(ctx, "", "ORD-1", "pi_1"); err != nil {
				t.Fatal(err)
			}
		}, nil, "applied", "its fact changed", "a person tied pi_1 to order ORD-1", "applied", false, "", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var o store.Options
			s, _ := storetest.Open(t, func(opt *store.Options) { o = *opt })
			setStock(t, s, "ebook", 5)
			storetest.Register(t, s, "ORD-1", 1250, "eur", sells("ebook", 1))
			tt.prepare(t, s)
			if tt.options != nil { // today's rules are others
				o.Mode = store.Client
				for _, f := range tt.options {
					f(&o)
				}
				other, err := store.Open(ctx, o)
				if err != nil {
					t.Fatal(err)
				}
				defer other.Close()
				s = other
			}
			before := allOf(t, s, "ORD-1", "evt_1")
			x, err := s.ExplainEvent(ctx, "", "evt_1")
			if err != nil {
				t.Fatal(err)
			}
			if after := allOf(t, s, "ORD-1", "evt_1"); after != before {
				t.Errorf("explaining has changed\n%s\nto\n%s", before, after)
			}
			storetest.Check(t, s)
			if x.Event.Verdict != tt.verdict || !strings.Contains(x.Rule, tt.rule) || !strings.Contains(strings.Join(x.NamedBy, "\n"), tt.named) {
				t.Errorf("%s by %q, named by %q; want %s, %q, %q", x.Event.Verdict, x.Rule, x.NamedBy, tt.verdict, tt.rule, tt.named)
			}
			p := x.Today
			var orders []string
			for _, c := range p.Orders {
				orders = append(orders, c.Order+": "+string(c.StatusWas)+" > "+string(c.Status))
			}
			if !p.Possible || p.Failure != "" || p.Verdict != tt.today || p.Changes != tt.changes ||
				strings.Join(orders, ", ") != tt.orders || len(p.Entries)+len(p.Operations)+len(p.Stock) != tt.written {
				t.Errorf("today %+v\norders %q; want %s, changes %v, orders %q, %d written", p, orders, tt.today, tt.changes, tt.orders, tt.written)
			}
		})
	}
}

func TestWhatExplainSaysARequeueDoes(t *testing.T) {
	ctx := context.Background()
	s, _ := storetest.Open(t)
	storetest.Register(t, s, "ORD-1", 1250, "eur")
	if _, err := s.AddEvent(ctx, storetest.NewEvent(paid("evt_1", "pi_1"))); err != nil {
		t.Fatal(err)
	}
	x, err := s.ExplainEvent(ctx, "", "evt_1")
	if err != nil {
		t.Fatal(err)
	}
	storetest.Work(t, s)
	e, o := storetest.Event(t, s, "evt_1"), storetest.Order(t, s, "ORD-1")
	if p := x.Today; p.Status != e.Status || p.Verdict != e.Verdict || p.Order != e.Order || len(p.Entries) != len(o.Entries) ||
		len(p.Operations) != len(o.Operations) || p.Orders[0].ReceivedMinor != o.ReceivedMinor || p.Orders[0].Status != o.Status {
		t.Errorf("said %+v; it did %+v, %+v", p, e, o)
	}
}

func TestWithoutItsPayloadThereIsNothingToTry(t *testing.T) {
	ctx := context.Background()
	s, _ := storetest.Open(t)
	storetest.Register(t, s, "ORD-1", 1250, "eur")
	storetest.Deliver(t, s, paid("evt_1", "pi_1"))
	if _, err := s.ForgetOrder(ctx, "", "ORD-1"); err != nil {
		t.Fatal(err)
	}
	x, err := s.ExplainEvent(ctx, "", "evt_1")
	if err != nil || x.Today.Possible || x.Today.Changes || len(x.Facts) != 1 || x.Event.Verdict != "applied" {
		t.Errorf("%+v, %v; want its facts and nothing to try", x, err)
	}
	_, err = s.ExplainEvent(ctx, "", "evt_nobody")
	wantProblem(t, "explain nobody", err, store.CodeNotFound)
}
