package store_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"paidonce/store"
	"paidonce/store/storetest"
)

func operationsOf(t *testing.T, s *store.Store, id string) (names []string) {
	t.Helper()
	for _, op := range storetest.Order(t, s, id).Operations {
		names = append(names, op.Name)
	}
	return names
}

func TestFulfilRecordsOrderPaidOnce(t *testing.T) {
	late := intent("evt_1", "pi_1", "succeeded", 1750000000, 1250, "")
	for _, tt := range []struct {
		name    string
		prepare func(t *testing.T, s *store.Store)
		code    store.Code // "" is that it works
	}{
		{"money after the shop's close", func(t *testing.T, s *store.Store) {
			store.CloseOrder(t, s, "ORD-1")
			storetest.Deliver(t, s, late)
			wantOrder(t, s, "ORD-1", "paid", 1250, 0, "paid_after_close")
		}, ""},
		{"paid elsewhere", func(*testing.T, *store.Store) {}, ""},
		{"already paid by money", func(t *testing.T, s *store.Store) { storetest.Deliver(t, s, late) }, store.CodeAlreadyFulfilled},
		{"already fulfilled by hand", func(t *testing.T, s *store.Store) {
			if _, err := s.FulfilOrder(context.Background(), "", "ORD-1"); err != nil {
				t.Fatal(err)
			}
		}, store.CodeAlreadyFulfilled},
		{"refunded after the close", func(t *testing.T, s *store.Store) {
			store.CloseOrder(t, s, "ORD-1")
			storetest.Deliver(t, s, refund("evt_2", "re_1", "succeeded", 1750000010), late)
		}, store.CodeNotFulfillable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := storetest.Open(t)
			storetest.Register(t, s, "ORD-1", 1250, "eur")
			tt.prepare(t, s)
			before := operationsOf(t, s, "ORD-1")
			o, err := s.FulfilOrder(context.Background(), "", "ORD-1")
			if tt.code != "" {
				wantProblem(t, "fulfil", err, tt.code)
				if after := operationsOf(t, s, "ORD-1"); !slices.Equal(after, before) {
					t.Errorf("operations were %q and are %q", before, after)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(o.Attention) != 0 {
				t.Errorf("attention %q; want none", o.Attention)
			}
			if got := operationsOf(t, s, "ORD-1"); !slices.Contains(got, "order.paid") {
				t.Errorf("operations %q lack order.paid", got)
			}
			if lines := strings.Join(timelineOf(t, s, "ORD-1"), "\n"); !strings.Contains(lines, "act: fulfil by api: was ") {
				t.Errorf("the timeline lacks the act:\n%s", lines)
			}
		})
	}
}

func TestLateMoneyOfAClosedOrderWaitsForAPerson(t *testing.T) {
	s, _ := storetest.Open(t)
	storetest.Register(t, s, "ORD-1", 1250, "eur")
	if o := store.CloseOrder(t, s, "ORD-1"); o.Status != "canceled" {
		t.Errorf("closed, and %s", o.Status)
	}
	storetest.Deliver(t, s, paid("evt_1", "pi_1"))
	wantOrder(t, s, "ORD-1", "paid", 1250, 0, "paid_after_close")
	if got := operationsOf(t, s, "ORD-1"); slices.Contains(got, "order.paid") {
		t.Errorf("operations %q: nobody has said that it should be fulfilled", got)
	}
}
