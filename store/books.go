package store

import (
	"cmp"
	"database/sql"
	"fmt"
	"slices"

	"paidonce/store/payment"
)

// books turns what the rules say of some objects into entries: an entry is the
// difference between what an object comes to now and what its entries already
// sum up to, so the same money learned twice is one entry, and a correction is
// a line of its own.
type books struct {
	wanted  map[balanceKey]payment.Balance
	touched map[factKey]bool
}

type balanceKey struct {
	scope, object, account string
	order                  int64
	currency               string
}

func newBooks() *books {
	return &books{wanted: map[balanceKey]payment.Balance{}, touched: map[factKey]bool{}}
}

// want notes what objects of an order (0: of none) come to.
func (b *books) want(order int64, balances []payment.Balance) {
	for _, bal := range balances {
		k := balanceKey{bal.Scope, bal.Object, string(bal.Account), order, bal.Currency}
		bal.AmountMinor += b.wanted[k].AmountMinor
		b.wanted[k] = bal
		b.touched[factKey{bal.Scope, bal.Object}] = true
	}
}

// objects notes that whatever stands in the books for gr's objects and is not
// wanted any more is to be taken back.
func (b *books) objects(gr *group) {
	for _, id := range gr.ids {
		b.touched[factKey{gr.scope, id}] = true
	}
}

// line is an entry to be written.
type line struct {
	balanceKey
	amount int64
}

// write appends the differences.
func (b *books) write(t *Tx, why cause) error {
	type sum struct {
		balanceKey
		amount, seq int64
	}
	var lines []line
	seqs := map[balanceKey]int64{} // per scope, object and account
	have := map[balanceKey]int64{}
	for k := range b.touched {
		rows, err := t.query(`
			SELECT account, coalesce(order_id, 0), currency, sum(amount_minor), max(seq) FROM entries
			WHERE scope = ? AND object = ? GROUP BY account, order_id, currency`, k.scope, k.id)
		sums, err := collect(rows, err, func(r *sql.Rows, s *sum) error {
			s.scope, s.object = k.scope, k.id
			return r.Scan(&s.account, &s.order, &s.currency, &s.amount, &s.seq)
		})
		if err != nil {
			return fmt.Errorf("books of %s: %w", k.id, err)
		}
		for _, s := range sums {
			have[s.balanceKey] = s.amount
			at := balanceKey{scope: s.scope, object: s.object, account: s.account}
			seqs[at] = max(seqs[at], s.seq)
			if _, ok := b.wanted[s.balanceKey]; !ok && s.amount != 0 {
				lines = append(lines, line{s.balanceKey, -s.amount})
			}
		}
	}
	for k, bal := range b.wanted {
		if diff := bal.AmountMinor - have[k]; diff != 0 {
			lines = append(lines, line{k, diff})
		}
	}
	slices.SortFunc(lines, func(x, y line) int { // the same facts give the same lines
		return cmp.Or(cmp.Compare(x.object, y.object), cmp.Compare(x.account, y.account), cmp.Compare(x.amount, y.amount),
			cmp.Compare(x.order, y.order), cmp.Compare(x.currency, y.currency), cmp.Compare(x.scope, y.scope))
	})
	for _, l := range lines {
		at := balanceKey{scope: l.scope, object: l.object, account: l.account}
		seqs[at]++
		// Both sides of a move out of suspense carry one date: that of the
		// event that caused it, or of the person's act.
		when := cmp.Or(why.occurredAt, t.now)
		if _, err := t.insert(`
			INSERT INTO entries (scope, object, account, seq, order_id, amount_minor, currency, occurred_at, recorded_at, event)
			VALUES (?, ?, ?, ?, nullif(?, 0), ?, ?, ?, ?, nullif(?, 0))`,
			l.scope, l.object, l.account, seqs[at], l.order, l.amount, l.currency, when, t.now, why.event); err != nil {
			return fmt.Errorf("entry for %s in %s: %w", l.object, l.account, err)
		}
	}
	return nil
}
