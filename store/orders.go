package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"

	"paidonce/store/payment"
)

// RegisterOrder writes a new order and derives it at once from the facts that
// are already there, so an event that came first is not waited for. The same
// registration again returns the order with created false; other content under
// the same id is CodeOrderConflict; wrong fields are CodeInvalid.
func (s *Store) RegisterOrder(ctx context.Context, n NewOrder) (Order, bool, error) {
	if n.ID == "" {
		n.ID = "ord_" + rand.Text()
	}
	r, err := newRegistration(n)
	if err != nil {
		return Order{}, false, err
	}
	var order Order
	var created bool
	err = s.w.write(ctx, "register order "+r.ID, func(t *Tx) error {
		order, created, err = s.registerOrder(t, r)
		return err
	})
	if err != nil {
		return Order{}, false, err
	}
	return order, created, nil
}

func (s *Store) registerOrder(t *Tx, r registration) (Order, bool, error) {
	var row int64
	var had string
	known, err := one(t, `SELECT id, registered FROM orders WHERE tenant = ? AND order_id = ?`, []any{r.Tenant, r.ID}, &row, &had)
	if err != nil {
		return Order{}, false, fmt.Errorf("look up order %s: %w", r.ID, err)
	}
	if known {
		if had != r.fingerprint() {
			return Order{}, false, problem(CodeOrderConflict, "order %s exists with other content: use PATCH (or `orders edit`) to correct it, or another id", r.ID)
		}
		o, err := viewOrder(t, row)
		return o, false, err
	}
	if row, err = s.insertOrder(t, r, false); err != nil {
		return Order{}, false, err
	}
	if err := s.act(t, "register", row, 0, "", ""); err != nil {
		return Order{}, false, err
	}
	if _, err := s.rederive(t, cause{}, nil, []int64{row}); err != nil {
		return Order{}, false, err
	}
	if r.Checkout != nil {
		if err := s.firstCheckout(t, row); err != nil {
			return Order{}, false, err
		}
	}
	o, err := viewOrder(t, row)
	return o, true, err
}

// insertOrder writes the order and ties the ids that came with it. An id that
// belongs to another order is a conflict, not a change of mind.
//
// An order that adopts its session ties it only until another one speaks for
// it.
func (s *Store) insertOrder(t *Tx, r registration, adopts bool) (int64, error) {
	items, customer, metadata := jsonText(r.Items), jsonText(r.Customer), jsonText(r.Metadata)
	checkout := ""
	if r.Checkout != nil {
		checkout = jsonText(r.Checkout)
	}
	row, err := t.insert(`
		INSERT INTO orders (tenant, order_id, status, total_minor, currency, amount_policy, allow_discount, payment_intent,
			items, customer, metadata, checkout, registered, created_at, updated_at)
		VALUES (?, ?, 'awaiting_payment', ?, ?, ?, ?, nullif(?, ''), ?, ?, ?, ?, ?, ?, ?)`,
		r.Tenant, r.ID, r.TotalMinor, r.Currency, string(r.AmountPolicy), r.AllowDiscount, r.PaymentIntent,
		items, customer, metadata, checkout, r.fingerprint(), t.now, t.now)
	if err != nil {
		return 0, fmt.Errorf("insert order %s: %w", r.ID, err)
	}
	refs := r.Refs
	if r.PaymentIntent != "" && !slices.Contains(refs, r.PaymentIntent) {
		refs = append(slices.Clone(refs), r.PaymentIntent)
	}
	for _, ref := range refs {
		n, err := t.exec(`
			INSERT INTO refs (object_id, order_id, by_hand, adopted, created_at) VALUES (?, ?, 0, ?, ?)
			ON CONFLICT (object_id) DO UPDATE SET order_id = excluded.order_id, adopted = excluded.adopted, created_at = excluded.created_at
				WHERE adopted = 1`, ref, row, adopts, t.now)
		if err != nil {
			return 0, fmt.Errorf("tie %s to order %s: %w", ref, r.ID, err)
		}
		if n == 0 {
			var other string
			if _, err := one(t, `SELECT o.order_id FROM refs r JOIN orders o ON o.id = r.order_id WHERE r.object_id = ?`, []any{ref}, &other); err != nil {
				return 0, err
			}
			return 0, problem(CodeOrderConflict, "%s already belongs to order %s", ref, other)
		}
		if !adopts {
			if err := expectMoney(t, ref, t.now+Time(refPatience.Milliseconds())); err != nil {
				return 0, err
			}
		}
	}
	return row, nil
}

// adopt makes an order out of a completed session that names none: its id is
// the session's, its total is Stripe's, never the buyer's.
func (s *Store) adopt(t *Tx, gr *group, session payment.Fact, customer Customer) (int64, error) {
	r := registration{
		Tenant: gr.tenant, ID: session.ID, AmountPolicy: payment.PolicyExact,
		TotalMinor: session.Snapshot.Amount.Minor, Currency: session.Snapshot.Currency,
		Refs: []string{session.ID}, Items: []Item{}, Customer: customer, Metadata: map[string]string{},
	}
	if sold, ok := s.opt.Links[session.PaymentLink()]; ok {
		r.Items = append(r.Items, sold)
	}
	row, err := findOrderRow(t, r.Tenant, r.ID)
	if err != nil {
		return 0, err
	}
	if row == 0 {
		if row, err = s.insertOrder(t, r, true); err != nil {
			return 0, fmt.Errorf("adopt session %s: %w", session.ID, err)
		}
	}
	return row, nil
}

// EditOrder corrects an unpaid order: the fields that change holds, and no
// others. A paid order is CodeOrderPaid.
func (s *Store) EditOrder(ctx context.Context, tenant, id string, change NewOrder) (Order, error) {
	return s.actOnOrder(ctx, "edit", tenant, id, "", func(t *Tx, row int64) (string, error) {
		o, err := viewOrder(t, row)
		if err != nil {
			return "", err
		}
		if o.ReceivedMinor != 0 || o.PaidAt != 0 {
			return "", problem(CodeOrderPaid, "order %s is %s: a paid order cannot be edited", id, o.Status)
		}
		r := registration{TotalMinor: o.TotalMinor, Currency: o.Currency, AmountPolicy: o.AmountPolicy, AllowDiscount: o.AllowDiscount,
			Items: o.Items, Customer: o.Customer, Metadata: o.Metadata}
		var bad problems
		r.merge(change, &bad)
		if err := bad.err(); err != nil {
			return "", err
		}
		_, err = t.exec(`
			UPDATE orders SET total_minor = ?, currency = ?, amount_policy = ?, allow_discount = ?, items = ?, customer = ?, metadata = ?,
				version = version + 1, updated_at = ?
			WHERE id = ?`,
			r.TotalMinor, r.Currency, string(r.AmountPolicy), r.AllowDiscount, jsonText(r.Items), jsonText(r.Customer), jsonText(r.Metadata), t.now, row)
		return fmt.Sprintf("total %s, policy %s", payment.FormatMinor(r.TotalMinor, r.Currency), r.AmountPolicy), err
	})
}

// LinkOrder ties the payment of a Stripe object to an order, by a person's
// word, which outranks what ids and names say. The object must be known.
func (s *Store) LinkOrder(ctx context.Context, tenant, id, object string) (Order, error) {
	return s.actOnOrder(ctx, "link", tenant, id, object, func(t *Tx, row int64) (string, error) {
		groups, err := groupsOf(t, object)
		if err != nil {
			return "", err
		}
		if len(groups) == 0 {
			return "", problem(CodeNotFound, "no event has spoken of %s yet: register the order with it in refs, or wait for its event", object)
		}
		var moved []int64
		for _, gr := range groups {
			if gr.order != 0 {
				moved = append(moved, gr.order)
			}
			moved = append(moved, gr.conflict...)
			for _, known := range gr.ids { // an earlier link of the same payment is replaced
				if _, err := t.exec(`DELETE FROM refs WHERE object_id = ? AND by_hand = 1`, known); err != nil {
					return "", err
				}
			}
		}
		if _, err := t.exec(`
			INSERT INTO refs (object_id, order_id, by_hand, created_at) VALUES (?, ?, 1, ?)
			ON CONFLICT (object_id) DO UPDATE SET order_id = excluded.order_id, by_hand = 1, adopted = 0, created_at = excluded.created_at`,
			object, row, t.now); err != nil {
			return "", fmt.Errorf("link %s to %s: %w", object, id, err)
		}
		_, err = s.rederive(t, cause{}, nil, moved)
		return "", err
	})
}

// AcceptPayment counts a payment of the order as it is, whatever the policy
// says. payment is any Stripe id of it.
func (s *Store) AcceptPayment(ctx context.Context, tenant, id, object string) (Order, error) {
	return s.actOnOrder(ctx, "accept", tenant, id, object, func(t *Tx, row int64) (string, error) {
		groups, err := groupsOf(t, object)
		if err != nil {
			return "", err
		}
		i := slices.IndexFunc(groups, func(gr *group) bool { return gr.order == row })
		if i < 0 {
			return "", problem(CodeNothingToAccept, "%s is not a payment of order %s: tie it with `orders link %s %s` first", object, id, id, object)
		}
		o, err := loadOrder(t, row)
		if err != nil {
			return "", err
		}
		p := o.paymentOf(groups[i])
		switch {
		case p.Accepted:
			return "", problem(CodeNothingToAccept, "payment %s of order %s is counted already", object, id)
		case p.Currency != o.reg.Currency && p.ReceivedMinor != 0:
			return "", problem(CodeNothingToAccept, "payment %s is in %s and order %s in %s: money in another currency is never counted; correct the order's currency with `orders edit`, or refund it at Stripe",
				object, p.Currency, id, o.reg.Currency)
		case p.ReceivedMinor == 0:
			return "", problem(CodeNothingToAccept, "payment %s of order %s has brought no money yet", object, id)
		}
		_, err = t.exec(`INSERT INTO acceptances (order_id, object, created_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`, row, object, t.now)
		return payment.FormatMinor(p.ReceivedMinor, p.Currency), err
	})
}

// paymentOf is how one payment of o stands.
func (o *orderRow) paymentOf(gr *group) payment.Payment {
	key := payment.KeyOf(gr.facts)
	for _, p := range o.derive([]*group{gr}).Payments {
		if p.Key == key {
			return p
		}
	}
	return payment.Payment{Key: key}
}

// groupsOf returns the payments, of any scope, that object is part of.
func groupsOf(q querier, object string) ([]*group, error) {
	rows, err := q.query(`
		SELECT DISTINCT scope FROM facts WHERE object_id = ?1
		UNION SELECT scope FROM facts WHERE payment_intent = ?1
		UNION SELECT scope FROM facts WHERE charge = ?1`, object)
	scopes, err := collect(rows, err, func(r *sql.Rows, sc *string) error { return r.Scan(sc) })
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", object, err)
	}
	g := newGraph(q)
	for _, scope := range scopes {
		if err := g.grow(scope, object); err != nil {
			return nil, err
		}
	}
	return g.groups()
}

// actOnOrder runs a person's act on an order, writes it down with the note
// that fn returns, and derives the order again.
func (s *Store) actOnOrder(ctx context.Context, act, tenant, id, object string, fn func(t *Tx, row int64) (note string, err error)) (Order, error) {
	if tenant == "" {
		tenant = mainTenant
	}
	var order Order
	err := s.w.write(ctx, act+" order "+id, func(t *Tx) error {
		row, err := findOrderRow(t, tenant, id)
		if err != nil {
			return err
		}
		if row == 0 {
			return noOrder(tenant, id)
		}
		note, err := fn(t, row)
		if err != nil {
			return err
		}
		if err := s.act(t, act, row, 0, object, note); err != nil {
			return err
		}
		if _, err := s.rederive(t, cause{}, nil, []int64{row}); err != nil {
			return err
		}
		order, err = viewOrder(t, row)
		return err
	})
	if err != nil {
		return Order{}, err
	}
	return order, nil
}

func noOrder(tenant, id string) *Problem {
	if tenant == mainTenant {
		return problem(CodeNotFound, "no order %s", id)
	}
	return problem(CodeNotFound, "no order %s of tenant %s", id, tenant)
}

// act writes down what a person did.
func (s *Store) act(t *Tx, act string, order, event int64, object, note string) error {
	return s.writeAct(t, act, order, event, 0, object, note)
}

func (s *Store) writeAct(t *Tx, act string, order, event, effect int64, object, note string) error {
	_, err := t.insert(`INSERT INTO acts (at, actor, act, order_id, event, effect, object, note) VALUES (?, ?, ?, nullif(?, 0), nullif(?, 0), nullif(?, 0), ?, ?)`,
		t.now, s.opt.Actor, act, order, event, effect, object, note)
	if err != nil {
		return fmt.Errorf("write down %s: %w", act, err)
	}
	if !s.opt.Audit {
		return nil
	}
	line := AuditLine{Kind: "act", Actor: s.opt.Actor, Operation: act, Effect: effect, Detail: object}
	if order != 0 {
		if _, err := one(t, `SELECT order_id FROM orders WHERE id = ?`, []any{order}, &line.Order); err != nil {
			return err
		}
	}
	if event != 0 {
		if _, err := one(t, `SELECT event_id FROM events WHERE id = ?`, []any{event}, &line.Event); err != nil {
			return err
		}
	}
	return s.audit(t, line)
}

func jsonText(v any) string {
	b, err := json.Marshal(v)
	if err != nil { // our own structs of strings and integers: cannot happen
		panic(err)
	}
	return string(b)
}
