package store

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"paidonce/store/payment"
)

// factKey names a fact: ids are unique in their scope.
type factKey struct{ scope, id string }

// factRow is a fact as it stands in the file.
type factRow struct {
	row     int64
	version int64
	tenant  string
	order   int64 // the order that claims it, as last derived; 0 is none
	updated Time
	fact    payment.Fact
}

func (r *factRow) key() factKey { return factKey{r.fact.Scope, r.fact.ID} }

const factColumns = `id, scope, object_id, version, tenant, coalesce(order_id, 0), updated_at, body`

func scanFact(rows *sql.Rows, f *factRow) error {
	var key factKey
	var body []byte
	if err := rows.Scan(&f.row, &key.scope, &key.id, &f.version, &f.tenant, &f.order, &f.updated, &body); err != nil {
		return err
	}
	if err := json.Unmarshal(body, &f.fact); err != nil {
		return fmt.Errorf("fact %s: %w", key.id, err)
	}
	f.fact.Scope = key.scope
	return nil
}

// graph is the part of the facts that a change can touch. It grows along the
// ids that facts point to, so that a payment is always loaded whole.
type graph struct {
	q     querier
	facts map[factKey]*factRow
	asked map[factKey]bool
}

func newGraph(q querier) *graph {
	return &graph{q: q, facts: map[factKey]*factRow{}, asked: map[factKey]bool{}}
}

// grow loads every fact that is, or points to, one of the ids, and all that
// hang together with those.
func (g *graph) grow(scope string, ids ...string) error {
	for len(ids) > 0 {
		id := ids[0]
		ids = ids[1:]
		if id == "" || g.asked[factKey{scope, id}] {
			continue
		}
		g.asked[factKey{scope, id}] = true
		rows, err := g.q.query(`
			SELECT `+factColumns+` FROM facts WHERE object_id = ?1 AND scope = ?2
			UNION ALL
			SELECT `+factColumns+` FROM facts WHERE payment_intent = ?1 AND scope = ?2
			UNION ALL
			SELECT `+factColumns+` FROM facts WHERE charge = ?1 AND scope = ?2`, id, scope)
		found, err := collect(rows, err, scanFact)
		if err != nil {
			return fmt.Errorf("load facts around %s: %w", id, err)
		}
		for i := range found {
			f := &found[i]
			if g.facts[f.key()] == nil {
				g.facts[f.key()] = f
			}
			ids = append(ids, f.fact.ID, f.fact.PaymentIntent(), f.fact.Charge())
		}
	}
	return nil
}

// growOrder loads the facts of every payment that could be order's: by a ref,
// by a name, or because it was last time.
func (g *graph) growOrder(order int64, tenant, id string) error {
	rows, err := g.q.query(`
		SELECT f.scope, f.object_id FROM refs r JOIN facts f ON f.object_id = r.object_id WHERE r.order_id = ?1
		UNION SELECT f.scope, f.object_id FROM refs r JOIN facts f ON f.payment_intent = r.object_id WHERE r.order_id = ?1
		UNION SELECT f.scope, f.object_id FROM refs r JOIN facts f ON f.charge = r.object_id WHERE r.order_id = ?1
		UNION SELECT f.scope, f.object_id FROM fact_names n JOIN facts f ON f.id = n.fact WHERE n.tenant = ?2 AND n.name = ?3
		UNION SELECT scope, object_id FROM facts WHERE order_id = ?1`, order, tenant, id)
	keys, err := collect(rows, err, func(r *sql.Rows, k *factKey) error { return r.Scan(&k.scope, &k.id) })
	if err != nil {
		return fmt.Errorf("find the facts of order %s: %w", id, err)
	}
	for _, k := range keys {
		if err := g.grow(k.scope, k.id); err != nil {
			return err
		}
	}
	return nil
}

// group is one payment's facts, and whose they are.
type group struct {
	facts    []payment.Fact
	rows     []*factRow
	ids      []string // of its facts and of what they point to, sorted
	scope    string
	tenant   string
	order    int64   // the one order that claims it; 0 is none, or several
	conflict []int64 // the orders that those who speak name, when they disagree
	names    []payment.Name
}

// groups returns the payments in g, each resolved to its order.
func (g *graph) groups() ([]*group, error) {
	all := make([]payment.Fact, 0, len(g.facts))
	for _, k := range slices.SortedFunc(maps.Keys(g.facts), compareKeys) {
		all = append(all, g.facts[k].fact)
	}
	var groups []*group
	for _, facts := range payment.Group(all) {
		gr := &group{facts: facts, scope: facts[0].Scope}
		ids := map[string]bool{}
		for _, f := range facts {
			row := g.facts[factKey{f.Scope, f.ID}]
			gr.rows = append(gr.rows, row)
			gr.tenant = row.tenant
			for _, id := range []string{f.ID, f.PaymentIntent(), f.Charge()} {
				if id != "" {
					ids[id] = true
				}
			}
		}
		gr.ids = slices.Sorted(maps.Keys(ids))
		if err := g.resolve(gr); err != nil {
			return nil, err
		}
		groups = append(groups, gr)
	}
	return groups, nil
}

func compareKeys(a, b factKey) int {
	if a.scope != b.scope {
		return cmpString(a.scope, b.scope)
	}
	return cmpString(a.id, b.id)
}

func cmpString(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// resolve finds the order that claims a payment (design.md §5, "How an event
// names its order"). A person's link outranks all else; otherwise registered
// ids and names all speak, and all that speak must agree. A name speaks only
// if such an order exists, in the tenant of the event's account.
func (g *graph) resolve(gr *group) error {
	spoken, byHand, adopted := map[int64]bool{}, map[int64]bool{}, map[int64]bool{}
	for _, id := range gr.ids {
		var order int64
		var hand, own bool
		ok, err := one(g.q, `SELECT order_id, by_hand, adopted FROM refs WHERE object_id = ?`, []any{id}, &order, &hand, &own)
		if err != nil {
			return fmt.Errorf("look up %s: %w", id, err)
		}
		switch {
		case !ok:
		case own:
			adopted[order] = true
		default:
			spoken[order] = true
			if hand {
				byHand[order] = true
			}
		}
	}
	gr.names = payment.Names(gr.facts)
	if len(byHand) > 0 {
		spoken = byHand
	} else {
		for _, n := range gr.names {
			order, err := findOrderRow(g.q, gr.tenant, n.Order)
			if err != nil {
				return err
			}
			if order != 0 {
				spoken[order] = true
			}
		}
	}
	if len(spoken) == 0 && len(gr.names) == 0 {
		spoken = adopted // it yields to all else, whichever came first
	}
	orders := slices.Sorted(maps.Keys(spoken))
	gr.order, gr.conflict = 0, nil
	switch len(orders) {
	case 0:
	case 1:
		gr.order = orders[0]
	default:
		gr.conflict = orders
	}
	return nil
}

// findOrderRow returns orders.id, or 0.
func findOrderRow(q querier, tenant, id string) (int64, error) {
	var row int64
	_, err := one(q, `SELECT id FROM orders WHERE tenant = ? AND order_id = ?`, []any{tenant, id}, &row)
	if err != nil {
		return 0, fmt.Errorf("look up order %s: %w", id, err)
	}
	return row, nil
}

// orderRow is an order as it stands in the file: the shop's side, and what was
// last derived.
type orderRow struct {
	row     int64
	version int64
	reg     payment.Order
	status  payment.Status

	received, refunded, refundPending, chargedBack, suspense int64

	attention       string
	providerPayment string
	paidAt          Time
	accepted        map[string]bool // objects whose payment a person accepted
	items           []Item
	acked, moved    bool // it has acknowledgements; it ever took stock
}

func loadOrder(q querier, row int64) (*orderRow, error) {
	o := &orderRow{row: row, accepted: map[string]bool{}}
	var closed, fulfil, paid sql.NullInt64
	var intent, provider sql.NullString
	var items []byte
	ok, err := one(q, `
		SELECT tenant, order_id, version, status, total_minor, currency, amount_policy, allow_discount, payment_intent,
			received_minor, refunded_minor, refund_pending_minor, charged_back_minor, suspense_minor,
			attention, provider_payment, closed_at, fulfil_at, paid_at, items,
			EXISTS (SELECT 1 FROM acks WHERE order_id = orders.id), EXISTS (SELECT 1 FROM stock_moves WHERE order_id = orders.id)
		FROM orders WHERE id = ?`, []any{row},
		&o.reg.Tenant, &o.reg.ID, &o.version, &o.status, &o.reg.TotalMinor, &o.reg.Currency, &o.reg.Policy, &o.reg.AllowDiscount, &intent,
		&o.received, &o.refunded, &o.refundPending, &o.chargedBack, &o.suspense,
		&o.attention, &provider, &closed, &fulfil, &paid, &items, &o.acked, &o.moved)
	if err != nil {
		return nil, fmt.Errorf("load order: %w", err)
	}
	if !ok {
		return nil, fmt.Errorf("load order: row %d is not there", row)
	}
	o.reg.PaymentIntent, o.providerPayment = intent.String, provider.String
	o.reg.ClosedAt, o.reg.FulfilAt, o.paidAt = closed.Int64, fulfil.Int64, Time(paid.Int64)
	if string(items) != "[]" {
		if err := json.Unmarshal(items, &o.items); err != nil {
			return nil, fmt.Errorf("items of order %s: %w", o.reg.ID, err)
		}
	}
	rows, err := q.query(`SELECT object FROM acceptances WHERE order_id = ?`, row)
	objects, err := collect(rows, err, func(r *sql.Rows, id *string) error { return r.Scan(id) })
	if err != nil {
		return nil, fmt.Errorf("load acceptances of %s: %w", o.reg.ID, err)
	}
	for _, id := range objects {
		o.accepted[id] = true
	}
	return o, nil
}

// derive asks the rules what o comes to, given the payments around it.
func (o *orderRow) derive(groups []*group) payment.Outcome {
	var linked, conflicted []payment.Fact
	o.reg.Accepted = map[payment.PaymentKey]bool{}
	for _, gr := range groups {
		switch {
		case gr.order == o.row:
			linked = append(linked, gr.facts...)
			if slices.ContainsFunc(gr.ids, func(id string) bool { return o.accepted[id] }) {
				o.reg.Accepted[payment.KeyOf(gr.facts)] = true
			}
		case slices.Contains(gr.conflict, o.row):
			conflicted = append(conflicted, gr.facts...)
		}
	}
	return payment.Derive(&o.reg, linked, conflicted)
}
