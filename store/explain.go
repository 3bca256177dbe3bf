package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"

	"paidonce/store/payment"
)

// Explanation answers "why is this event like this?".
type Explanation struct {
	Event   Event      `json:"event"`
	Rule    string     `json:"rule"`     // which rule gives its verdict, in words
	NamedBy []string   `json:"named_by"` // all that speaks for an order, in words
	Facts   []FactView `json:"facts"`    // of the payment that it belongs to, as they stand
	Watched bool       `json:"watched"`  // unlinked, and for somebody to look at
	Today   Preview    `json:"today"`
}

// Preview is what a requeue would come to, were it done now. Nothing of it has
// happened.
type Preview struct {
	Possible   bool            `json:"possible"` // false: the payload was purged
	Failure    string          `json:"failure,omitempty"`
	Status     string          `json:"status,omitempty"`
	Verdict    string          `json:"verdict,omitempty"`
	Reason     string          `json:"reason,omitempty"`
	Order      string          `json:"order,omitempty"`
	Orders     []OrderChange   `json:"orders"`     // that would be made or be different
	Entries    []Entry         `json:"entries"`    // that would be written
	Operations []OperationView `json:"operations"` // that would be recorded
	Stock      []StockChange   `json:"stock"`      // that would be taken (below nothing: given back)
	Changes    bool            `json:"changes"`    // anything at all would be different
}

// OrderChange is an order before and after. An order that would be made was
// nothing.
type OrderChange struct {
	Tenant           string         `json:"tenant"`
	Order            string         `json:"order"`
	StatusWas        payment.Status `json:"status_was,omitempty"`
	Status           payment.Status `json:"status"`
	ReceivedMinorWas int64          `json:"received_minor_was"`
	ReceivedMinor    int64          `json:"received_minor"`
	AttentionWas     []string       `json:"attention_was"`
	Attention        []string       `json:"attention"`
	Currency         string         `json:"currency"`
}

// StockChange is what an order would take.
type StockChange struct {
	SKU      string `json:"sku"`
	Quantity int64  `json:"quantity"`
}

// rules says for each verdict which rule gives it (design.md §4 and §5).
var rules = map[string]string{
	"new":               "it was not tried yet",
	"retrying":          "the last try failed for a reason that may pass; last_error says which",
	"applied":           "its fact changed, and nothing stands in the way of what follows from it",
	"duplicate":         "another event, under another id, had already said the same of this object",
	"stale":             "a later state of this object was already known: a fact never steps back",
	"unlinked":          "no order has one of the payment's ids, and none that it names exists: its money, if there is any, stands in suspense",
	"ignored":           "it is signed, but no rule wants it, or a person set it aside",
	"routed":            "its source has no orders: it was handed to effects",
	"amount_mismatch":   "the order's amount_policy does not take this amount: the money stands in suspense",
	"currency_mismatch": "the money is in another currency than the order: it stands in suspense",
	"order_conflict":    "the ids and names that speak for an order do not agree on one, or the order takes another payment intent only: the money stands in suspense",
	"contradiction":     "two things are known of this payment that cannot both be true at Stripe: the money stands in suspense",
	"malformed":         "the body cannot be read as the rules need it: no fact was taken from it",
	"too_many_attempts": "it failed too often to be tried again without a person",
}

// errUndo ends a write that was made to look at its result.
var errUndo = errors.New("undo")

// ExplainEvent tells why an event stands where it does, and what a requeue
// would do today. It finds that out by doing it, through the one path that
// there is, in a write that is taken back before anybody can see it.
func (s *Store) ExplainEvent(ctx context.Context, scope, id string) (Explanation, error) {
	var x Explanation
	err := s.w.write(ctx, "explain event "+id, func(t *Tx) error {
		t.wrote = true // whatever comes, there is something to take back
		var err error
		if x, err = s.explain(t, scope, id); err != nil {
			return err
		}
		return errUndo
	})
	if !errors.Is(err, errUndo) {
		return Explanation{}, err
	}
	return x, nil
}

func (s *Store) explain(t *Tx, scope, id string) (Explanation, error) {
	x := Explanation{NamedBy: []string{}, Facts: []FactView{},
		Today: Preview{Orders: []OrderChange{}, Entries: []Entry{}, Operations: []OperationView{}, Stock: []StockChange{}}}
	e, err := findEvent(t, scope, id)
	if err != nil {
		return x, err
	}
	x.Event, x.Rule, x.Watched = e.Event, rules[e.Verdict], e.watched && s.opt.Unlinked != "ignore"
	d, err := decodeAgain(t, e)
	if err != nil {
		return x, err
	}
	around, err := neighbourhood(t, d)
	if err != nil {
		return x, err
	}
	for _, gr := range around.groups {
		for _, r := range gr.rows {
			x.Facts = append(x.Facts, FactView{Scope: r.fact.Scope, ID: r.fact.ID, Kind: r.fact.Kind, Version: r.version, Fact: r.fact, UpdatedAt: r.updated})
		}
	}
	if x.NamedBy, err = around.namedBy(t); err != nil {
		return x, err
	}
	return x, s.preview(t, e, d, around, &x.Today)
}

// decodeAgain claims e anew, as a requeue and the next claim would, and reads
// its body.
func decodeAgain(t *Tx, e eventView) (*Decoded, error) {
	d := &Decoded{Claim: Claim{Row: e.row, Scope: e.Scope, ID: e.ID, Source: e.Source, Type: e.Type, OccurredAt: e.OccurredAt, ReceivedAt: e.ReceivedAt}}
	if _, err := one(t, `
		UPDATE events SET status = 'pending', verdict = 'new', watched = 0, claim = 'alone', done_at = NULL, lease = lease + 1 WHERE id = ?
		RETURNING lease, tenant, merged, coalesce(object_id, '')`, []any{e.row}, &d.Lease, &d.Tenant, &d.Merged, &d.Event.ObjectID); err != nil {
		return nil, fmt.Errorf("claim %s: %w", e.ID, err)
	}
	known, err := one(t, `SELECT body FROM payloads WHERE event = ?`, []any{e.row}, &d.Body)
	if err != nil {
		return nil, fmt.Errorf("payload of %s: %w", e.ID, err)
	}
	d.PayloadGone, d.Ignored = !known, d.IgnoredUnread()
	if known && d.Ignored == "" {
		d.Event = payment.Decode(d.Body)
	}
	return d, nil
}

// preview runs the event and notes what is different after it.
func (s *Store) preview(t *Tx, e eventView, d *Decoded, before *surroundings, p *Preview) error {
	if d.PayloadGone {
		return nil
	}
	p.Possible = true
	var entry, operation, move int64
	if _, err := one(t, `SELECT (SELECT coalesce(max(id), 0) FROM entries), (SELECT coalesce(max(id), 0) FROM operations),
		(SELECT coalesce(max(id), 0) FROM stock_moves)`, nil, &entry, &operation, &move); err != nil {
		return err
	}
	if err := s.apply(t, d); err != nil {
		if Transient(err) {
			return err
		}
		p.Failure, p.Changes = errorText(err), true
		return nil
	}
	after, err := findEvent(t, e.Scope, e.ID)
	if err != nil {
		return err
	}
	p.Status, p.Verdict, p.Reason, p.Order = after.Status, after.Verdict, after.Reason, after.Order
	around, err := neighbourhood(t, d)
	if err != nil {
		return err
	}
	p.Orders = orderChanges(before.orders, around.orders)
	if err := p.readWritten(t, entry, operation, move); err != nil {
		return err
	}
	p.Changes = e.Status != p.Status || e.Verdict != p.Verdict || e.Reason != p.Reason || e.Order != p.Order ||
		len(p.Orders)+len(p.Entries)+len(p.Operations)+len(p.Stock) > 0
	return nil
}

// surroundings are the payments that an event belongs to, and the orders that
// they could concern.
type surroundings struct {
	groups []*group
	orders map[int64]orderView
}

func neighbourhood(t *Tx, d *Decoded) (*surroundings, error) {
	seen := d.Event.Fact
	seen.Scope = d.Scope
	g := newGraph(t)
	if err := g.grow(d.Scope, d.Event.ObjectID, seen.ID, seen.PaymentIntent(), seen.Charge()); err != nil {
		return nil, err
	}
	groups, err := g.groups()
	if err != nil {
		return nil, err
	}
	rows := map[int64]bool{}
	names := payment.RawNames([]payment.Fact{seen})
	tenant := d.Tenant
	for _, gr := range groups {
		tenant = gr.tenant
		names = append(names, payment.RawNames(gr.facts)...)
		for _, row := range append([]int64{gr.order}, gr.conflict...) {
			rows[row] = true
		}
		for _, r := range gr.rows {
			rows[r.order] = true
		}
	}
	for _, name := range names {
		row, err := findOrderRow(t, tenant, name)
		if err != nil {
			return nil, err
		}
		rows[row] = true
	}
	for _, id := range []string{seen.ID, seen.PaymentIntent(), seen.Charge()} {
		var row int64
		if _, err := one(t, `SELECT order_id FROM refs WHERE object_id = ?`, []any{id}, &row); err != nil {
			return nil, err
		}
		rows[row] = true
	}
	delete(rows, 0) // none
	around := &surroundings{groups: groups, orders: map[int64]orderView{}}
	for row := range rows {
		if around.orders[row], err = findView(t, row); err != nil {
			return nil, err
		}
	}
	return around, nil
}

// namedBy says in words all that speaks for an order.
func (a *surroundings) namedBy(t *Tx) ([]string, error) {
	words := []string{}
	for _, gr := range a.groups {
		for _, id := range gr.ids {
			var order string
			var byHand bool
			ok, err := one(t, `SELECT o.order_id, r.by_hand FROM refs r JOIN orders o ON o.id = r.order_id WHERE r.object_id = ?`, []any{id}, &order, &byHand)
			switch {
			case err != nil:
				return nil, fmt.Errorf("look up %s: %w", id, err)
			case ok && byHand:
				words = append(words, fmt.Sprintf("a person tied %s to order %s, which outranks all else", id, order))
			case ok:
				words = append(words, fmt.Sprintf("%s was registered with order %s", id, order))
			}
		}
		for _, n := range gr.names {
			row, err := findOrderRow(t, gr.tenant, n.Order)
			if err != nil {
				return nil, err
			}
			text := fmt.Sprintf("%s of %s names order %s", n.By, n.Object, n.Order)
			if row == 0 {
				text += ", which does not exist"
			}
			words = append(words, text)
		}
	}
	return words, nil
}

// orderChanges are the orders that are not what they were.
func orderChanges(before, after map[int64]orderView) []OrderChange {
	changes := []OrderChange{}
	for _, row := range slices.Sorted(maps.Keys(after)) {
		is := after[row]
		was, there := before[row]
		if there && was.Status == is.Status && was.ReceivedMinor == is.ReceivedMinor && was.RefundedMinor == is.RefundedMinor &&
			was.RefundPendingMinor == is.RefundPendingMinor && was.ChargedBackMinor == is.ChargedBackMinor &&
			was.SuspenseMinor == is.SuspenseMinor && slices.Equal(was.attention, is.attention) {
			continue
		}
		changes = append(changes, OrderChange{Tenant: is.Tenant, Order: is.ID, StatusWas: was.Status, Status: is.Status,
			ReceivedMinorWas: was.ReceivedMinor, ReceivedMinor: is.ReceivedMinor,
			AttentionWas: append([]string{}, was.Attention...), Attention: is.Attention, Currency: is.Currency})
	}
	return changes
}

// readWritten notes what was written behind the given rows.
func (p *Preview) readWritten(t *Tx, entry, operation, stock int64) error {
	rows, err := t.query(`SELECT account, object, amount_minor, currency, occurred_at FROM entries WHERE id > ? ORDER BY id`, entry)
	entries, err := collect(rows, err, func(r *sql.Rows, e *Entry) error {
		return r.Scan(&e.Account, &e.Object, &e.AmountMinor, &e.Currency, &e.OccurredAt)
	})
	if err != nil {
		return fmt.Errorf("entries: %w", err)
	}
	rows, err = t.query(`SELECT name, occurred_at, recorded_at FROM operations WHERE id > ? ORDER BY id`, operation)
	operations, err := collect(rows, err, func(r *sql.Rows, o *OperationView) error {
		return r.Scan(&o.Name, &o.OccurredAt, &o.RecordedAt)
	})
	if err != nil {
		return fmt.Errorf("operations: %w", err)
	}
	rows, err = t.query(`SELECT sku, quantity FROM stock_moves WHERE id > ? ORDER BY id`, stock)
	moves, err := collect(rows, err, func(r *sql.Rows, c *StockChange) error { return r.Scan(&c.SKU, &c.Quantity) })
	if err != nil {
		return fmt.Errorf("stock: %w", err)
	}
	p.Entries = append(p.Entries, entries...)
	p.Operations = append(p.Operations, operations...)
	p.Stock = append(p.Stock, moves...)
	return nil
}
