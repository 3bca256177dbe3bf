package store

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"paidonce/store/payment"
)

// errOrderMoved says that an order changed between the load and the write. The
// whole write is rolled back and tried again; it is not the row's fault.
var errOrderMoved = &Problem{Code: CodeUnavailable, Message: "the order changed while its facts were derived; trying again"}

// errInconsistent says that the file holds an order in a state which no rule
// leads to. A person decides.
var errInconsistent = errors.New("the order is bound to another payment than its facts say")

// apply merges one event into its fact and writes what follows from it. All of
// it commits together or not at all (P3).
func (s *Store) apply(t *Tx, d *Decoded) error {
	if d.Ignored == "" && d.Event.Verdict == "malformed" && !d.PayloadGone { // nothing in it can be trusted
		return finish(t, d.Claim, verdict{status: "quarantined", verdict: "malformed", reason: d.Event.Reason, objectID: d.Event.ObjectID})
	}
	routed, err := s.route(t, d)
	if err != nil {
		return err
	}
	switch {
	case routed && (d.Ignored != "" || d.Event.Verdict != ""):
		return finish(t, d.Claim, verdict{status: "done", verdict: "routed", objectID: d.Event.ObjectID})
	case d.Ignored != "":
		return finish(t, d.Claim, verdict{status: "done", verdict: "ignored", reason: d.Ignored})
	case d.PayloadGone:
		return fmt.Errorf("apply %s: %w", d.ID, errNoPayload)
	case d.Event.Verdict != "":
		return finish(t, d.Claim, verdict{status: "done", verdict: "ignored", reason: d.Event.Reason, objectID: d.Event.ObjectID})
	}
	seen := d.Event.Fact
	seen.Scope = d.Scope
	key := factKey{seen.Scope, seen.ID}
	stored, change, err := mergeFact(t, d.Tenant, seen)
	if err != nil {
		return err
	}
	if change != payment.Changed && !d.Merged {
		v := verdict{status: "done", verdict: "duplicate", reason: "another event already said the same of " + seen.ID, objectID: seen.ID, order: stored.order}
		if change == payment.Stale {
			v.verdict, v.reason = "stale", "a later state of "+seen.ID+" is already known"
		}
		return finish(t, d.Claim, v)
	}
	t.at("apply:merged")
	if key := stored.fact.Operation(); key != "" {
		if err := s.learned(t, key, seen.ID); err != nil {
			return fmt.Errorf("effect of %s: %w", seen.ID, err)
		}
	}
	results, err := s.rederive(t, cause{event: d.Row, occurredAt: d.OccurredAt, customer: Customer(d.Event.Customer)}, []factKey{key}, nil)
	if err != nil {
		return err
	}
	t.at("apply:derived")
	v := results[key]
	v.objectID, v.merged = seen.ID, true
	return finish(t, d.Claim, v)
}

// mergeFact merges what one event has seen into the stored fact.
func mergeFact(t *Tx, tenant string, seen payment.Fact) (*factRow, payment.Change, error) {
	rows, err := t.query(`SELECT `+factColumns+` FROM facts WHERE object_id = ? AND scope = ?`, seen.ID, seen.Scope)
	found, err := collect(rows, err, scanFact)
	if err != nil {
		return nil, 0, fmt.Errorf("load fact %s: %w", seen.ID, err)
	}
	var stored *payment.Fact
	row := &factRow{tenant: tenant}
	if len(found) > 0 {
		row = &found[0]
		stored = &row.fact
	}
	merged, change, ranked := payment.MergeEvent(stored, seen)
	if stored != nil && change != payment.Changed && !ranked {
		return row, change, nil
	}
	body, err := json.Marshal(merged)
	if err != nil {
		return nil, 0, fmt.Errorf("fact %s: %w", seen.ID, err)
	}
	row.fact = merged
	if stored == nil {
		row.row, err = t.insert(`
			INSERT INTO facts (scope, object_id, kind, tenant, body, payment_intent, charge, operation, created_at, updated_at)
			VALUES (?, ?, ?, ?, ?, nullif(?, ''), nullif(?, ''), nullif(?, ''), ?, ?)`,
			seen.Scope, seen.ID, string(merged.Kind), tenant, string(body), merged.PaymentIntent(), merged.Charge(), merged.Operation(), t.now, t.now)
	} else {
		_, err = t.exec(`
			UPDATE facts SET version = version + 1, kind = ?, body = ?, payment_intent = nullif(?, ''), charge = nullif(?, ''),
				operation = nullif(?, ''), updated_at = ?
			WHERE id = ? AND version = ?`,
			string(merged.Kind), string(body), merged.PaymentIntent(), merged.Charge(), merged.Operation(), t.now, row.row, row.version)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("save fact %s: %w", seen.ID, err)
	}
	if err := noteCheckup(t, stored, merged, seen); err != nil {
		return nil, 0, err
	}
	for _, name := range payment.RawNames([]payment.Fact{merged}) { // they only ever grow
		if _, err := t.exec(`INSERT INTO fact_names (tenant, name, fact) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`, tenant, name, row.row); err != nil {
			return nil, 0, fmt.Errorf("names of fact %s: %w", seen.ID, err)
		}
	}
	return row, change, nil
}

// cause is what made the store derive again: an event, or a person's act.
type cause struct {
	event      int64 // events.id; 0 is an act
	occurredAt Time
	customer   Customer // who bought, if the event says so: for an adopted order
}

// rederive brings everything that depends on the given facts and orders to
// what the rules say of them now: orders, books, operations, and the verdicts
// of events that waited for this. It is the one path for events,
// registrations, links and acceptances. The result has the verdict on every
// fact that it looked at.
func (s *Store) rederive(t *Tx, why cause, facts []factKey, orders []int64) (map[factKey]verdict, error) {
	g := newGraph(t)
	for _, k := range facts {
		if err := g.grow(k.scope, k.id); err != nil {
			return nil, err
		}
	}
	all := map[int64]*orderRow{}
	load := func(row int64) error {
		if all[row] != nil {
			return nil
		}
		o, err := loadOrder(t, row)
		if err != nil {
			return err
		}
		all[row] = o
		return g.growOrder(row, o.reg.Tenant, o.reg.ID)
	}
	for _, row := range orders {
		if err := load(row); err != nil {
			return nil, err
		}
	}
	// The payments loaded so far are those that may change hands: whoever has,
	// had or could have one of them is derived again, from all of its payments.
	groups, err := g.groups()
	if err != nil {
		return nil, err
	}
	touched := map[int64]bool{}
	for _, gr := range groups {
		if err := s.touch(t, why, g, gr, touched); err != nil {
			return nil, err
		}
	}
	for _, row := range slices.Sorted(maps.Keys(touched)) {
		if err := load(row); err != nil {
			return nil, err
		}
	}
	if groups, err = g.groups(); err != nil {
		return nil, err
	}

	b := newBooks()
	verdicts := map[factKey]verdict{}
	outcomes, standing := map[int64]payment.Outcome{}, map[int64][]payment.Attention{}
	for _, row := range slices.Sorted(maps.Keys(all)) {
		o := all[row]
		out := o.derive(groups)
		oversold, err := s.saveStock(t, why, o, out)
		if err != nil {
			return nil, err
		}
		standing[row] = slices.Concat(out.Attention, oversold)
		if out.Attention, err = o.attentionNow(t, standing[row]); err != nil {
			return nil, err
		}
		if err := s.saveOrder(t, o, out); err != nil {
			return nil, err
		}
		outcomes[row] = out
		b.want(row, out.Balances)
		judge(verdicts, groups, func(gr *group) bool { return gr.order == row }, row, out.Payments)
	}
	for _, gr := range groups {
		switch {
		case gr.order != 0 && all[gr.order] == nil:
			continue // another order's, which nothing here touches
		case gr.order == 0:
			out := payment.Derive(nil, gr.facts, nil)
			b.want(0, out.Balances)
			judge(verdicts, []*group{gr}, func(*group) bool { return true }, 0, out.Payments)
			watch(verdicts, gr)
			if gr.conflict != nil {
				text, err := conflictText(t, gr)
				if err != nil {
					return nil, err
				}
				for _, f := range gr.facts {
					v := verdicts[factKey{f.Scope, f.ID}]
					if v.verdict != string(payment.VerdictContradiction) {
						v.status, v.verdict, v.reason, v.watched = "quarantined", string(payment.VerdictOrderConflict), text, false
						verdicts[factKey{f.Scope, f.ID}] = v
					}
				}
			}
		}
		b.objects(gr)
		if err := settleMoved(t, gr, verdicts); err != nil {
			return nil, err
		}
		if err := claimFacts(t, gr); err != nil {
			return nil, err
		}
	}
	if err := b.write(t, why); err != nil {
		return nil, err
	}
	// Last, so that what goes out shows the order with all that is its own.
	for _, row := range slices.Sorted(maps.Keys(outcomes)) {
		if err := s.operate(t, why, row, outcomes[row], standing[row]); err != nil {
			return nil, err
		}
	}
	return verdicts, settleWaiting(t, verdicts)
}

// operate records an order's operations and queues what they make. An effect
// that fails at once, such as a mail to nobody, shows on the order too.
func (s *Store) operate(t *Tx, why cause, row int64, out payment.Outcome, standing []payment.Attention) error {
	failed, err := s.saveOperations(t, why, row, out.Operations)
	if err != nil || !failed {
		return err
	}
	o, err := loadOrder(t, row)
	if err != nil {
		return err
	}
	if out.Attention, err = o.attentionNow(t, standing); err != nil {
		return err
	}
	return s.saveOrder(t, o, out)
}

// touch notes the orders that a payment belongs to, could belong to, or
// belonged to. A payment of an adopted Payment Link makes its order here.
func (s *Store) touch(t *Tx, why cause, g *graph, gr *group, touched map[int64]bool) error {
	if gr.order == 0 && gr.conflict == nil && len(s.opt.Adopt) > 0 {
		if session, ok := payment.Adoptable(gr.facts, s.opt.Adopt); ok {
			row, err := s.adopt(t, gr, session, why.customer)
			if err != nil {
				return err
			}
			touched[row] = true
			if err := g.resolve(gr); err != nil {
				return err
			}
			// And on: whoever had the payment until now loses it.
		}
	}
	if gr.order != 0 {
		touched[gr.order] = true
	}
	for _, o := range gr.conflict {
		touched[o] = true
	}
	for _, r := range gr.rows {
		if r.order != 0 {
			touched[r.order] = true
		}
		was, err := contestedBy(t, r.row)
		if err != nil {
			return err
		}
		for _, o := range was {
			touched[o] = true
		}
	}
	for _, name := range payment.RawNames(gr.facts) {
		row, err := findOrderRow(t, gr.tenant, name)
		if err != nil {
			return err
		}
		if row != 0 {
			touched[row] = true
		}
	}
	return nil
}

// judge notes the verdict on every fact of the payments that belong here.
func judge(verdicts map[factKey]verdict, groups []*group, belongs func(*group) bool, order int64, payments []payment.Payment) {
	for _, p := range payments {
		v := verdict{status: "quarantined", verdict: string(p.Verdict), reason: p.Reason, order: order}
		if p.Verdict == payment.VerdictApplied || p.Verdict == payment.VerdictUnlinked {
			v.status = "done"
		}
		for _, id := range p.Objects {
			verdicts[factKey{p.Key.Scope, id}] = v
		}
	}
	for _, gr := range groups { // a fact that the rules made no payment of
		if !belongs(gr) {
			continue
		}
		for _, f := range gr.facts {
			k := factKey{f.Scope, f.ID}
			if _, ok := verdicts[k]; ok {
				continue
			}
			v := verdict{status: "done", verdict: string(payment.VerdictApplied), order: order}
			if order == 0 {
				v.verdict = string(payment.VerdictUnlinked)
			}
			verdicts[k] = v
		}
	}
}

// watch notes which facts that no order claims are worth a look: not those of
// a payment that belongs to an invoice or a subscription, in any of its parts.
func watch(verdicts map[factKey]verdict, gr *group) {
	if slices.ContainsFunc(gr.facts, payment.Fact.Invoice) {
		return
	}
	for _, f := range gr.facts {
		k := factKey{f.Scope, f.ID}
		if v := verdicts[k]; v.verdict == string(payment.VerdictUnlinked) {
			v.watched = true
			verdicts[k] = v
		}
	}
}

func conflictText(t *Tx, gr *group) (string, error) {
	var ids []string
	for _, row := range gr.conflict {
		o, err := loadOrder(t, row)
		if err != nil {
			return "", err
		}
		ids = append(ids, o.reg.ID)
	}
	return "its ids and names belong to different orders (" + strings.Join(ids, ", ") + "): tie it to one with `orders link`", nil
}

// contestedBy returns the orders that a fact's payment was last contested
// between.
func contestedBy(q querier, fact int64) ([]int64, error) {
	rows, err := q.query(`SELECT order_id FROM contested WHERE fact = ? ORDER BY order_id`, fact)
	return collect(rows, err, func(r *sql.Rows, o *int64) error { return r.Scan(o) })
}

// claimFacts notes which order claims the facts of a payment, or between which
// ones it is contested.
func claimFacts(t *Tx, gr *group) error {
	for _, r := range gr.rows {
		was, err := contestedBy(t, r.row)
		if err != nil {
			return err
		}
		if !slices.Equal(was, gr.conflict) {
			if _, err := t.exec(`DELETE FROM contested WHERE fact = ?`, r.row); err != nil {
				return fmt.Errorf("contest fact %s: %w", r.fact.ID, err)
			}
			for _, o := range gr.conflict {
				if _, err := t.exec(`INSERT INTO contested (fact, order_id) VALUES (?, ?)`, r.row, o); err != nil {
					return fmt.Errorf("contest fact %s: %w", r.fact.ID, err)
				}
			}
		}
		if r.order == gr.order {
			continue
		}
		if _, err := t.exec(`UPDATE facts SET order_id = nullif(?, 0) WHERE id = ?`, gr.order, r.row); err != nil {
			return fmt.Errorf("claim fact %s: %w", r.fact.ID, err)
		}
		r.order = gr.order
	}
	return nil
}

// saveOrder writes what was derived, if it is not what stands there. The
// UPDATE names everything that the decision rests on; zero rows is a question.
func (s *Store) saveOrder(t *Tx, o *orderRow, out payment.Outcome) error {
	attention, err := json.Marshal(out.Attention)
	if err != nil {
		return err
	}
	if len(out.Attention) == 0 {
		attention = []byte("[]")
	}
	// The first accepted payment stays bound while it is accepted; a second
	// adds to the numbers without passing through here.
	provider := out.ProviderPayment
	if slices.ContainsFunc(out.Payments, func(p payment.Payment) bool { return p.Accepted && p.Key.Object == o.providerPayment }) {
		provider = o.providerPayment
	}
	if o.status == out.Status && o.received == out.ReceivedMinor && o.refunded == out.RefundedMinor &&
		o.refundPending == out.RefundPendingMinor && o.chargedBack == out.ChargedBackMinor && o.suspense == out.SuspenseMinor &&
		o.attention == string(attention) && o.providerPayment == provider && o.paidAt == Time(out.PaidAt) {
		return nil
	}
	n, err := t.exec(`
		UPDATE orders SET status = ?, received_minor = ?, refunded_minor = ?, refund_pending_minor = ?, charged_back_minor = ?,
			suspense_minor = ?, attention = ?, provider_payment = nullif(?, ''), paid_at = nullif(?, 0),
			version = version + 1, updated_at = ?
		WHERE tenant = ? AND order_id = ? AND version = ? AND status = ? AND total_minor = ? AND currency = ?
			AND (provider_payment IS NULL OR provider_payment = ?)`,
		string(out.Status), out.ReceivedMinor, out.RefundedMinor, out.RefundPendingMinor, out.ChargedBackMinor,
		out.SuspenseMinor, string(attention), provider, out.PaidAt, t.now,
		o.reg.Tenant, o.reg.ID, o.version, string(o.status), o.reg.TotalMinor, o.reg.Currency, o.providerPayment)
	if err != nil {
		return fmt.Errorf("update order %s: %w", o.reg.ID, err)
	}
	if n == 1 {
		t.at("apply:order-updated")
		return nil
	}
	now, err := loadOrder(t, o.row)
	if err != nil {
		return err
	}
	if now.version == o.version && now.status == o.status && now.reg.TotalMinor == o.reg.TotalMinor && now.reg.Currency == o.reg.Currency {
		return fmt.Errorf("update order %s: %w", o.reg.ID, errInconsistent)
	}
	return fmt.Errorf("update order %s: %w", o.reg.ID, errOrderMoved)
}

// waiting is an event whose verdict may have changed with its fact's.
type waiting struct {
	row, order              int64
	status, verdict, reason string
	watched                 bool
}

func scanWaiting(r *sql.Rows, w *waiting) error {
	return r.Scan(&w.row, &w.order, &w.status, &w.verdict, &w.reason, &w.watched)
}

// settleWaiting moves events that waited for a correction (an order, a link,
// an acceptance) to what is true of their fact now.
func settleWaiting(t *Tx, verdicts map[factKey]verdict) error {
	for _, k := range slices.SortedFunc(maps.Keys(verdicts), compareKeys) {
		rows, err := t.query(`
			SELECT id, coalesce(order_id, 0), status, verdict, reason, watched FROM events INDEXED BY events_waiting
			WHERE source_scope = ? AND object_id = ?
				AND verdict IN ('unlinked', 'amount_mismatch', 'currency_mismatch', 'order_conflict', 'contradiction')`, k.scope, k.id)
		if err := settle(t, k, rows, err, verdicts[k]); err != nil {
			return err
		}
	}
	return nil
}

// settleMoved does the same for events of a payment that leaves its order: what
// was applied there is not applied any more.
func settleMoved(t *Tx, gr *group, verdicts map[factKey]verdict) error {
	for _, r := range gr.rows {
		if r.order == 0 || r.order == gr.order {
			continue
		}
		k := r.key()
		rows, err := t.query(`
			SELECT id, coalesce(order_id, 0), status, verdict, reason, watched FROM events
			WHERE order_id = ? AND source_scope = ? AND object_id = ? AND verdict = 'applied'`, r.order, k.scope, k.id)
		if err := settle(t, k, rows, err, verdicts[k]); err != nil {
			return err
		}
	}
	return nil
}

func settle(t *Tx, k factKey, rows *sql.Rows, err error, v verdict) error {
	all, err := collect(rows, err, scanWaiting)
	if err != nil {
		return fmt.Errorf("events waiting for %s: %w", k.id, err)
	}
	for _, w := range all {
		if w.order == v.order && w.status == v.status && w.verdict == v.verdict && w.reason == v.reason && w.watched == v.watched {
			continue
		}
		if _, err := t.exec(`UPDATE events SET status = ?, verdict = ?, reason = ?, order_id = nullif(?, 0), watched = ? WHERE id = ?`,
			v.status, v.verdict, v.reason, v.order, v.watched, w.row); err != nil {
			return fmt.Errorf("settle events of %s: %w", k.id, err)
		}
		t.count(w.status, w.verdict, -1)
		t.count(v.status, v.verdict, 1)
		t.watch(w.watched, v.watched)
	}
	return nil
}
