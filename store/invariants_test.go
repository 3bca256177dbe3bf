package store

import (
	"context"
	"strings"
	"testing"
)

// TestABrokenPromiseIsSeen breaks a healthy file in one place at a time.
func TestABrokenPromiseIsSeen(t *testing.T) {
	for _, tt := range []struct{ name, statement, want string }{
		{"nothing is broken", `UPDATE orders SET updated_at = updated_at`, ""},
		{"an order's number", `UPDATE orders SET received_minor = 1`, "books equal orders"},
		{"a count", `UPDATE event_counts SET n = n + 1`, "event counts"},
		{"an order without the date that it was paid", `UPDATE orders SET status = 'paid'`, "paid_at"},
		{"an entry of another currency", `INSERT INTO entries (scope, object, account, seq, order_id, amount_minor, currency, occurred_at, recorded_at)
			SELECT 's', 'pi_1', 'sales', 1, id, 1, 'usd', 1, 1 FROM orders`, "currency"},
		{"money of no order outside suspense", `INSERT INTO entries (scope, object, account, seq, amount_minor, currency, occurred_at, recorded_at)
			VALUES ('s', 'pi_1', 'sales', 1, 1, 'eur', 1, 1)`, "suspense"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := openTest(t)
			total, currency := int64(1250), "eur"
			if _, _, err := s.RegisterOrder(t.Context(), NewOrder{ID: "A", TotalMinor: &total, Currency: &currency}); err != nil {
				t.Fatal(err)
			}
			mustAdd(t, s, "evt_1")
			err := s.w.write(t.Context(), "break", func(tx *Tx) error {
				_, err := tx.exec(tt.statement)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			broken, err := s.CheckInvariants(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(broken, "\n"); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("broken %q, want %q", got, tt.want)
			}
		})
	}
}

func TestTheBooksAreAppendOnly(t *testing.T) {
	s := openTest(t)
	err := s.w.write(t.Context(), "entry", func(tx *Tx) error {
		_, err := tx.insert(`INSERT INTO entries (scope, object, account, seq, amount_minor, currency, occurred_at, recorded_at)
			VALUES ('s', 'pi_1', 'suspense', 1, 1, 'eur', 1, 1)`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{`UPDATE entries SET amount_minor = 2`, `DELETE FROM entries`} {
		err := s.w.write(t.Context(), "change the books", func(tx *Tx) error {
			_, err := tx.exec(statement)
			return err
		})
		if err == nil || !strings.Contains(err.Error(), "append-only") {
			t.Errorf("%s: %v, want it refused", statement, err)
		}
	}
}
