package store

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"paidonce/store/payment"
)

// The operations by which an order's effects call Stripe. Each has more behind
// a colon: a request id, or a number.
const (
	OperationRefund       = "refund.request"
	OperationOpenCheckout = "checkout.open"
	OperationCancelOrder  = "order.cancel"
)

// needStripeKey refuses what only Stripe can do when nobody may ask it. A
// command beside serve takes serve's word for it.
func (s *Store) needStripeKey(q querier, what string) error {
	kind := s.opt.StripeKey
	if s.opt.Mode == Client {
		if _, err := one(q, `SELECT value FROM meta WHERE key = 'stripe_key'`, nil, &kind); err != nil {
			return fmt.Errorf("read the kind of key: %w", err)
		}
	}
	if kind == "" {
		return problem(CodeNoStripeKey, "%s needs a Stripe key: set STRIPE_API_KEY for serve and start it again", what)
	}
	return nil
}

// hasStripeKey is needStripeKey as a question.
func (s *Store) hasStripeKey(q querier) (bool, error) {
	err := s.needStripeKey(q, "")
	if _, ok := AsProblem(err); ok {
		return false, nil
	}
	return err == nil, err
}

// callAccount is the connected account that calls about a scope are made for;
// "" is the key's own. Scopes are provider:account:mode.
func callAccount(q querier, scope string) (string, error) {
	rows, err := q.query(`SELECT value FROM meta WHERE key LIKE 'scope:%'`)
	own, err := collect(rows, err, func(r *sql.Rows, v *string) error { return r.Scan(v) })
	if err != nil {
		return "", fmt.Errorf("read the scopes: %w", err)
	}
	account, _, _ := strings.Cut(strings.TrimPrefix(scope, "stripe:"), ":")
	if slices.Contains(own, scope) || !strings.HasPrefix(account, "acct_") {
		return "", nil
	}
	return account, nil
}

// orderAccount is callAccount for an order: under account = "*" a connected
// account's orders are in the tenant of its id.
func orderAccount(tenant string) string {
	if strings.HasPrefix(tenant, "acct_") {
		return tenant
	}
	return ""
}

// callMetadata is what every object that we make at Stripe carries.
func callMetadata(key, order string) map[string]string {
	return map[string]string{payment.OperationMetadata: key, "order_id": order}
}

// underWay finds an effect of the order whose operation begins with prefix and
// that is not settled.
func underWay(q querier, order int64, prefix string) (int64, error) {
	var id int64
	_, err := one(q, `SELECT id FROM effects WHERE order_id = ? AND operation LIKE ? || ':%'
		AND status IN ('pending', 'sending', 'unknown', 'held') ORDER BY id DESC LIMIT 1`, []any{order, prefix}, &id)
	return id, err
}

// nextNumber is the number of the next effect of this name of the order.
func nextNumber(q querier, order int64, prefix string) (int64, error) {
	var n int64
	_, err := one(q, `SELECT count(*) + 1 FROM effects WHERE order_id = ? AND operation LIKE ? || ':%'`, []any{order, prefix}, &n)
	return n, err
}

// queueCall queues a call to Stripe about an order.
func (s *Store) queueCall(t *Tx, o Order, row int64, operation string, body func(key string) any, more func(*newEffect)) (int64, error) {
	n := newEffect{tenant: o.Tenant, subject: orderSubject(o.Tenant, o.ID), order: row, operation: operation,
		target: StripeTarget, kind: KindStripe, occurredAt: t.now}
	n.body = []byte(jsonText(body(n.key())))
	if more != nil {
		more(&n)
	}
	id, err := queue(t, n)
	if err == nil && id == 0 {
		err = fmt.Errorf("queue %s: it exists already", operation)
	}
	return id, err
}
