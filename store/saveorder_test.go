package store

import (
	"errors"
	"testing"

	"paidonce/store/payment"
)

// TestAnOrderThatIsNotAsItWasLoadedIsNotWritten: everything that the decision
// rests on stands in the UPDATE's WHERE, and zero rows is a question (P5).
func TestAnOrderThatIsNotAsItWasLoadedIsNotWritten(t *testing.T) {
	for _, tt := range []struct {
		name, meanwhile string
		want            error
	}{
		{"nothing happened meanwhile", `UPDATE orders SET updated_at = updated_at`, nil},
		{"it was written again", `UPDATE orders SET version = version + 1`, errOrderMoved},
		{"its status moved", `UPDATE orders SET status = 'canceled'`, errOrderMoved},
		{"its total was edited", `UPDATE orders SET total_minor = 9900`, errOrderMoved},
		{"its currency was edited", `UPDATE orders SET currency = 'usd'`, errOrderMoved},
		{"it is bound to another payment, without a trace", `UPDATE orders SET provider_payment = 'pi_other'`, errInconsistent},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := openTest(t)
			total, currency := int64(1250), "eur"
			if _, _, err := s.RegisterOrder(t.Context(), NewOrder{ID: "A", TotalMinor: &total, Currency: &currency}); err != nil {
				t.Fatal(err)
			}
			err := s.w.write(t.Context(), "race", func(tx *Tx) error {
				row, err := findOrderRow(tx, mainTenant, "A")
				if err != nil {
					return err
				}
				o, err := loadOrder(tx, row)
				if err != nil {
					return err
				}
				if _, err := tx.exec(tt.meanwhile); err != nil {
					return err
				}
				return s.saveOrder(tx, o, payment.Outcome{Status: payment.StatusPaid, ReceivedMinor: 1250, PaidAt: 1, ProviderPayment: "pi_1"})
			})
			if !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
				t.Errorf("saveOrder = %v, want %v", err, tt.want)
			}
			if Transient(err) != (tt.want == errOrderMoved) {
				t.Errorf("Transient(%v) = %v: a conflict is tried again, an inconsistency is not the machine's", err, Transient(err))
			}
			if n := count(t, s, `SELECT count(*) FROM orders WHERE status = 'paid'`); (n == 1) != (tt.want == nil) {
				t.Errorf("%d orders paid", n)
			}
		})
	}
}

// TestAnInconsistentOrderIsQuarantinedAtOnce: no retry can mend it. The hand
// that meddles is a trigger, between the load and the write.
func TestAnInconsistentOrderIsQuarantinedAtOnce(t *testing.T) {
	s := openTest(t)
	total, currency := int64(1250), "eur"
	if _, _, err := s.RegisterOrder(t.Context(), NewOrder{ID: "A", TotalMinor: &total, Currency: &currency}); err != nil {
		t.Fatal(err)
	}
	// stock_moves are written after the order was loaded and before it is saved.
	if _, err := s.EditOrder(t.Context(), "", "A", NewOrder{Items: []Item{{SKU: "x", Quantity: 1}}}); err != nil {
		t.Fatal(err)
	}
	err := s.w.write(t.Context(), "meddle", func(tx *Tx) error {
		return tx.raw(`CREATE TRIGGER meddle AFTER INSERT ON stock_moves BEGIN UPDATE orders SET provider_payment = 'pi_other'; END`)
	})
	if err != nil {
		t.Fatal(err)
	}
	e := newEvent("evt_1")
	e.Body = []byte(`{"id":"evt_1","object":"event","created":1750000000,"livemode":false,"type":"payment_intent.succeeded",
		"data":{"object":{"id":"pi_1","object":"payment_intent","amount":1250,"amount_received":1250,"currency":"eur",
		"status":"succeeded","metadata":{"order_id":"A"}}}}`)
	if _, err := s.AddEvent(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	c := mustClaim(t, s, 1)[0]
	if err := s.ApplyEvents(t.Context(), []Decoded{{Claim: c, Event: payment.Decode(c.Body)}})[0]; err != nil {
		t.Fatalf("ApplyEvents = %v, want the event ended", err)
	}
	got, err := s.FindEvent(t.Context(), "", "evt_1")
	if err != nil || got.Status != "quarantined" || got.Verdict != "contradiction" || got.Reason == "" {
		t.Errorf("event %+v, %v; want it quarantined with a reason", got, err)
	}
	o, err := s.FindOrder(t.Context(), "", "A")
	if err != nil || o.Status != "awaiting_payment" || o.ReceivedMinor != 0 || len(o.Entries) != 0 {
		t.Errorf("order %s, received %d, %v; want it untouched", o.Status, o.ReceivedMinor, err)
	}
}
