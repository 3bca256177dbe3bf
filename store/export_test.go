package store

import (
	"context"
	"testing"
)

// CloseOrder closes an order as the shop's cancel will: the rules of late money
// can be tested before there is a way to ask Stripe first.
func CloseOrder(t testing.TB, s *Store, id string) Order {
	t.Helper()
	o, err := s.actOnOrder(context.Background(), "cancel", "", id, "", func(t *Tx, row int64) (string, error) {
		_, err := t.exec(`UPDATE orders SET closed_at = ?, version = version + 1, updated_at = ? WHERE id = ?`, t.now, t.now, row)
		return "", err
	})
	if err != nil {
		t.Fatalf("close order %s: %v", id, err)
	}
	return o
}
