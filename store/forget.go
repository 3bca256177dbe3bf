package store

import (
	"context"
	"fmt"
)

// ForgetOrder erases who bought: the order's customer and metadata, and the
// bodies of its finished events. Numbers, books, facts and ids stay, for they
// name nobody, and so does the fingerprint of the registration: the same one
// again is the same order, and brings nobody back.
//
// What is erased is overwritten in the file. The -wal beside it still holds the
// old pages until it begins anew, and backups hold what they held.
//
// Bodies of events that are pending or quarantined stay too, and of effects
// that are on their way, since they are all there is to finish them by; forget
// again when that is done. What a person
// wrote in a note is a person's to mind.
func (s *Store) ForgetOrder(ctx context.Context, tenant, id string) (Order, error) {
	return s.actOnOrder(ctx, "forget", tenant, id, "", func(t *Tx, row int64) (string, error) {
		// What is deleted is overwritten with zeros, here alone: everywhere else
		// that would cost writes and protect nobody.
		overwrite := func(word string) error {
			_, err := one(t, "PRAGMA secure_delete = "+word, nil, new(int))
			return err
		}
		if err := overwrite("ON"); err != nil {
			return "", fmt.Errorf("forget order %s: %w", id, err)
		}
		defer func() { _ = overwrite("OFF") }() // if it stays on, nothing but speed is lost
		if _, err := t.exec(`UPDATE orders SET customer = '{}', metadata = '{}', version = version + 1, updated_at = ? WHERE id = ?`, t.now, row); err != nil {
			return "", fmt.Errorf("forget order %s: %w", id, err)
		}
		// By order and by object: a repeat that came before the order did
		// belongs to none.
		const events = `
			SELECT e.id, e.status FROM events e WHERE e.order_id = ?1
			UNION SELECT e.id, e.status FROM facts f JOIN events e ON e.source_scope = f.scope AND e.object_id = f.object_id WHERE f.order_id = ?1`
		erased, err := t.exec(`DELETE FROM payloads WHERE event IN (SELECT id FROM (`+events+`) WHERE status = 'done')`, row)
		if err != nil {
			return "", fmt.Errorf("erase the payloads of order %s: %w", id, err)
		}
		var kept int64
		if _, err := one(t, `SELECT count(*) FROM payloads WHERE event IN (SELECT id FROM (`+events+`))`, []any{row}, &kept); err != nil {
			return "", fmt.Errorf("count the payloads of order %s: %w", id, err)
		}
		// What was sent, and what came back. A refund's body names nobody, and
		// is what tells how much is still to come.
		bodies, err := t.exec(`UPDATE effects SET body = x'' WHERE order_id = ? AND status IN ('done', 'failed', 'canceled')
			AND operation NOT LIKE ? || ':%'`, row, OperationRefund)
		if err != nil {
			return "", fmt.Errorf("erase the effects of order %s: %w", id, err)
		}
		if _, err := t.exec(`UPDATE effect_attempts SET answer = NULL WHERE effect IN (SELECT id FROM effects WHERE order_id = ?)`, row); err != nil {
			return "", fmt.Errorf("erase the answers of order %s: %w", id, err)
		}
		var open int64
		if _, err := one(t, `SELECT count(*) FROM effects WHERE order_id = ? AND status IN ('pending', 'sending', 'unknown', 'held')`, []any{row}, &open); err != nil {
			return "", fmt.Errorf("count the effects of order %s: %w", id, err)
		}
		return fmt.Sprintf("%d payloads and %d effects erased, %d payloads and %d effects kept that are not done", erased, bodies, kept, open), nil
	})
}
