package store

import (
	"context"
	"fmt"

	"paidonce/store/payment"
)

// FulfilOrder records order.paid by a person's word: for an order that the shop
// closed before its money came, or one that was paid elsewhere. It happens once:
// CodeAlreadyFulfilled when order.paid is recorded, by whomever. An order whose
// money went back is CodeNotFulfillable.
func (s *Store) FulfilOrder(ctx context.Context, tenant, id string) (Order, error) {
	return s.actOnOrder(ctx, "fulfil", tenant, id, "", func(t *Tx, row int64) (string, error) {
		recorded, err := one(t, `SELECT 1 FROM operations WHERE order_id = ? AND name = 'order.paid'`, []any{row}, new(int))
		if err != nil {
			return "", fmt.Errorf("operations of order %s: %w", id, err)
		}
		if recorded {
			return "", problem(CodeAlreadyFulfilled, "order.paid of order %s is recorded already, and happens once", id)
		}
		o, err := loadOrder(t, row)
		if err != nil {
			return "", err
		}
		if o.status == payment.StatusRefunded || o.status == payment.StatusChargedBack {
			return "", problem(CodeNotFulfillable, "order %s is %s: its money went back", id, o.status)
		}
		if _, err := t.exec(`UPDATE orders SET fulfil_at = ?, version = version + 1, updated_at = ? WHERE id = ?`, t.now, t.now, row); err != nil {
			return "", fmt.Errorf("fulfil order %s: %w", id, err)
		}
		return fmt.Sprintf("was %s", o.status), nil
	})
}
