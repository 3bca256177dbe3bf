package store_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"paidonce/store"
	"paidonce/store/storetest"
)

func TestForgettingErasesWhoBoughtAndNoNumber(t *testing.T) {
	ctx := context.Background()
	s, _ := storetest.Open(t)
	ann := func(n *store.NewOrder) {
		n.Customer, n.Metadata = &store.Customer{Email: "ann@example.com", Name: "Ann"}, map[string]string{"phone": "555-ANN"}
		n.Refs = []string{"pi_1"}
	}
	// A repeat before its order is known belongs to no order, and is erased too.
	storetest.Deliver(t, s, paid("evt_1", "pi_1"), paid("evt_2", "pi_1"))
	storetest.Register(t, s, "ORD-1", 1250, "eur", ann)
	storetest.Register(t, s, "ORD-2", 1250, "eur")
	storetest.Deliver(t, s, of("evt_3", "refund", "re_1", 1750000010, `,"amount":50,"status":"pending","payment_intent":"pi_1"`),
		strings.Replace(paid("evt_other", "pi_2"), "ORD-1", "ORD-2", 1),
		intent("evt_4", "pi_3", "succeeded", 1750000020, 1249, "")) // quarantined: it may still be wanted
	if _, err := s.AddEvent(ctx, storetest.NewEvent(paid("evt_5", "pi_4"))); err != nil { // pending
		t.Fatal(err)
	}
	before := storetest.Order(t, s, "ORD-1")

	o, err := s.ForgetOrder(ctx, "", "ORD-1")
	if err != nil {
		t.Fatal(err)
	}
	if o.Customer != (store.Customer{}) || len(o.Metadata) != 0 {
		t.Errorf("still there: %+v, %v", o.Customer, o.Metadata)
	}
	if o.ReceivedMinor != before.ReceivedMinor || o.Status != before.Status || o.SuspenseMinor != before.SuspenseMinor || len(o.Refs) != len(before.Refs) {
		t.Errorf("was %+v and is %+v", before.Order, o)
	}
	for id, kept := range map[string]bool{"evt_1": false, "evt_2": false, "evt_3": false, "evt_4": true, "evt_5": true, "evt_other": true} {
		if e := storetest.Event(t, s, id); (len(e.Payload) > 0) != kept {
			t.Errorf("payload of %s (%s): %d bytes; kept should be %v", id, e.Status, len(e.Payload), kept)
		}
	}
	if page, err := s.ListOrders(ctx, store.OrderFilter{Query: "ann@example.com"}); err != nil || len(page.Items) != 0 {
		t.Errorf("found by e-mail: %+v, %v", page.Items, err)
	}
	again := storetest.Register(t, s, "ORD-1", 1250, "eur", ann) // fails if that is not the same order
	if again.Customer != (store.Customer{}) {
		t.Errorf("the same registration brought %+v back", again.Customer)
	}
	if lines := strings.Join(timelineOf(t, s, "ORD-1"), "\n"); !strings.Contains(lines, "act: forget by api: 3 payloads and 0 effects erased, 1 payloads") {
		t.Errorf("timeline:\n%s", lines)
	}
	_, err = s.ForgetOrder(ctx, "", "nobody")
	wantProblem(t, "forget nobody", err, store.CodeNotFound)
	_, err = s.RequeueEvent(ctx, "", "evt_1")
	wantProblem(t, "requeue what was erased", err, store.CodePayloadGone)
}

func TestNothingOfTheForgottenIsInTheFile(t *testing.T) {
	o := storetest.Options(t.TempDir(), storetest.NewClock())
	s, err := store.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	storetest.Register(t, s, "ORD-1", 2500, "eur", func(n *store.NewOrder) {
		n.Refs, n.Customer = []string{"cs_1"}, &store.Customer{Email: "MARKANN@example.com"}
	})
	storetest.Deliver(t, s, strings.ReplaceAll(session("evt_1", "cs_1", "", "pi_1", 1750000000), "ann@", "MARKANN@"))
	wantOrder(t, s, "ORD-1", "paid", 2500, 0)
	if _, err := s.ForgetOrder(context.Background(), "", "ORD-1"); err != nil {
		t.Fatal(err)
	}
	storetest.Check(t, s)
	if err := s.Close(); err != nil { // checkpoints the WAL into the file
		t.Fatal(err)
	}
	b, err := os.ReadFile(o.Path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(b), "MARKANN") {
		t.Error("the customer's address is still in the file")
	}
}
