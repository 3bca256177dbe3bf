package store_test

import (
	"context"
	"testing"

	"paidonce/store"
	"paidonce/store/storetest"
)

func TestOnlyWatchedMoneyIsCountedAsUnlinked(t *testing.T) {
	ctx := context.Background()
	setup := of("evt_s", "checkout.session", "cs_s", 1750000000, `,"mode":"setup","status":"complete","payment_status":"no_payment_required"`)
	subscription := of("evt_s", "checkout.session", "cs_s", 1750000000, `,"mode":"subscription","status":"complete","payment_status":"paid","amount_total":700,"subscription":"sub_1"`)
	charge := of("evt_c", "charge", "ch_1", 1750000000, `,"amount":700,"amount_captured":700,"amount_refunded":0,"captured":true,"paid":true,"status":"succeeded","payment_intent":"pi_1"`)
	for _, tt := range []struct {
		name, unlinked string
		act            func(t *testing.T, s *store.Store)
		watched, all   int64 // of done, unlinked
	}{
		{"money that names nobody", "watch", func(t *testing.T, s *store.Store) { storetest.Deliver(t, s, loose("evt_1", "pi_1", "")) }, 1, 1},
		{"where other programs share the account", "ignore", func(t *testing.T, s *store.Store) { storetest.Deliver(t, s, loose("evt_1", "pi_1", "")) }, 0, 1},
		{"an invoice's money", "watch", func(t *testing.T, s *store.Store) { storetest.Deliver(t, s, loose("evt_1", "pi_1", "in_1")) }, 0, 1},
		{"the charge of an invoice's payment", "watch", func(t *testing.T, s *store.Store) { storetest.Deliver(t, s, loose("evt_1", "pi_1", "in_1"), charge) }, 0, 2},
		{"a charge that only later shows to be an invoice's", "watch", func(t *testing.T, s *store.Store) { storetest.Deliver(t, s, charge, loose("evt_1", "pi_1", "in_1")) }, 0, 2},
		{"a session that sets up a card", "watch", func(t *testing.T, s *store.Store) { storetest.Deliver(t, s, setup) }, 0, 1},
		{"a subscription's session", "watch", func(t *testing.T, s *store.Store) { storetest.Deliver(t, s, subscription) }, 0, 1},
		{"linked later", "watch", func(t *testing.T, s *store.Store) {
			storetest.Deliver(t, s, loose("evt_1", "pi_1", ""), charge)
			storetest.Register(t, s, "ORD-1", 700, "eur", func(n *store.NewOrder) { n.Refs = []string{"pi_1"} })
			wantVerdict(t, s, "evt_1", "done", "applied")
		}, 0, 0},
		{"dismissed", "watch", func(t *testing.T, s *store.Store) {
			storetest.Deliver(t, s, loose("evt_1", "pi_1", ""))
			if _, err := s.DismissEvent(ctx, "", "evt_1", ""); err != nil {
				t.Fatal(err)
			}
		}, 0, 0},
		{"requeued, and not yet run", "watch", func(t *testing.T, s *store.Store) {
			storetest.Deliver(t, s, loose("evt_1", "pi_1", ""))
			if _, err := s.RequeueEvent(ctx, "", "evt_1"); err != nil {
				t.Fatal(err)
			}
		}, 0, 0},
		{"requeued, and run", "watch", func(t *testing.T, s *store.Store) {
			storetest.Deliver(t, s, loose("evt_1", "pi_1", ""))
			if _, err := s.RequeueEvent(ctx, "", "evt_1"); err != nil {
				t.Fatal(err)
			}
			storetest.Work(t, s)
		}, 1, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := storetest.Open(t, func(o *store.Options) { o.Unlinked = tt.unlinked })
			tt.act(t, s)
			st, err := s.Stats(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if st.Unlinked != tt.watched || st.Events["done"]["unlinked"] != tt.all {
				t.Errorf("%d to look at, of %d unlinked; want %d of %d", st.Unlinked, st.Events["done"]["unlinked"], tt.watched, tt.all)
			}
		})
	}
}
