package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"

	"paidonce/store/payment"
)

// AckAttention says that a person has looked at an order's attention: word, for
// every cause that it has now. It goes from the order, and comes back when
// something new causes it, or when what caused it ends and begins again. A word
// that the order does not show is CodeNotFound.
func (s *Store) AckAttention(ctx context.Context, tenant, id, word, note string) (Order, error) {
	var bad problems
	checkID(&bad, "attention", word)
	checkNote(&bad, note)
	if err := bad.invalid("acknowledgement"); err != nil {
		return Order{}, err
	}
	return s.actOnOrder(ctx, "ack", tenant, id, word, func(t *Tx, row int64) (string, error) {
		o, err := loadOrder(t, row)
		if err != nil {
			return "", err
		}
		var standing []payment.Attention
		if err := json.Unmarshal([]byte(o.attention), &standing); err != nil {
			return "", fmt.Errorf("attention of order %s: %w", id, err)
		}
		found := false
		for _, a := range standing {
			if a.Word != word {
				continue
			}
			found = true
			if _, err := t.exec(`INSERT INTO acks (order_id, word, cause, created_at) VALUES (?, ?, ?, ?) ON CONFLICT (order_id, word, cause) DO NOTHING`,
				row, a.Word, a.Cause, t.now); err != nil {
				return "", fmt.Errorf("acknowledge %s of order %s: %w", word, id, err)
			}
		}
		if !found {
			return "", problem(CodeNotFound, "order %s has no attention %s that is not acknowledged", id, word)
		}
		return note, nil
	})
}

// unacknowledged returns what of o's attention a person has not looked at,
// sorted. What was acknowledged and stands no more is forgotten: should it come
// again, it is news again.
func (o *orderRow) unacknowledged(t *Tx, standing []payment.Attention) ([]payment.Attention, error) {
	slices.SortFunc(standing, func(a, b payment.Attention) int {
		return cmp.Or(cmp.Compare(a.Word, b.Word), cmp.Compare(a.Cause, b.Cause))
	})
	if !o.acked {
		return standing, nil
	}
	type ack struct{ word, cause string }
	rows, err := t.query(`SELECT word, cause FROM acks WHERE order_id = ?`, o.row)
	acks, err := collect(rows, err, func(r *sql.Rows, a *ack) error { return r.Scan(&a.word, &a.cause) })
	if err != nil {
		return nil, fmt.Errorf("acknowledgements of order %s: %w", o.reg.ID, err)
	}
	for _, k := range acks {
		before := len(standing)
		standing = slices.DeleteFunc(standing, func(a payment.Attention) bool { return a.Word == k.word && a.Cause == k.cause })
		if len(standing) < before {
			continue
		}
		if _, err := t.exec(`DELETE FROM acks WHERE order_id = ? AND word = ? AND cause = ?`, o.row, k.word, k.cause); err != nil {
			return nil, fmt.Errorf("acknowledgements of order %s: %w", o.reg.ID, err)
		}
	}
	return standing, nil
}
