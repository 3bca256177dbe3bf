package store

import (
	"context"
	"database/sql"
	"time"

	"paidonce/store/payment"
)

// Listed is a charge, a refund or a dispute as Stripe lists it.
type Listed struct {
	Copy    ObjectCopy
	Created Time // of the object
}

// ClearSums begins the comparison of a run again.
func (s *Store) ClearSums(ctx context.Context, run int64) error {
	return s.w.write(ctx, "compare with the books", func(t *Tx) error {
		if _, err := t.exec(`UPDATE runs SET payments_seen = 0 WHERE id = ?`, run); err != nil {
			return err
		}
		_, err := t.exec(`DELETE FROM run_sums WHERE run = ?`, run)
		return err
	})
}

// Compare adds a page of listed objects to the sums of a run, beside what the
// books say of the same objects. It returns those that are worth fetching: they
// are not known, or Stripe's copy or the books say something else.
func (s *Store) Compare(ctx context.Context, run int64, src ReconcileSource, page []Listed) ([]Checkup, error) {
	var differ []Checkup
	err := s.w.write(ctx, "compare with the books", func(t *Tx) error {
		c, err := comparePage(t, src, page)
		if err != nil {
			return err
		}
		differ = c.differ
		for k, sum := range c.sums {
			if _, err := t.exec(`
				INSERT INTO run_sums (run, day, currency, stripe_minor, books_minor) VALUES (?, ?, ?, ?, ?)
				ON CONFLICT (run, day, currency) DO UPDATE SET stripe_minor = stripe_minor + excluded.stripe_minor,
					books_minor = books_minor + excluded.books_minor`, run, k.day, k.currency, sum.stripe, sum.books); err != nil {
				return err
			}
		}
		_, err = t.exec(`UPDATE runs SET payments_seen = payments_seen + ? WHERE id = ?`, c.payments, run)
		return err
	})
	return differ, err
}

type dayCurrency struct{ day, currency string }

type comparison struct {
	sums     map[dayCurrency]struct{ stripe, books int64 }
	payments int64
	differ   []Checkup
}

func comparePage(q querier, src ReconcileSource, page []Listed) (comparison, error) {
	c := comparison{sums: map[dayCurrency]struct{ stripe, books int64 }{}}
	for _, l := range page {
		_, _, body := payment.Fetched(l.Copy.Word, l.Copy.ID, src.Account, src.Live, payment.Millis(l.Copy.Date), l.Copy.Raw)
		ev := payment.Decode(body)
		if ev.Verdict != "" || l.Copy.foreign(src) {
			continue // fetched or not, nothing could be read from it
		}
		f := ev.Fact
		f.Scope = src.Scope
		rows, err := q.query(`SELECT `+factColumns+` FROM facts WHERE object_id = ? AND scope = ?`, f.ID, f.Scope)
		found, err := collect(rows, err, scanFact)
		if err != nil {
			return comparison{}, err
		}
		money := f.Money()
		books, err := booksOf(q, f)
		if err != nil {
			return comparison{}, err
		}
		if f.Kind == payment.KindCharge {
			if len(money) == 0 { // an attempt, or a hold: another charge may have paid
				books = nil
			} else {
				c.payments++
			}
		}
		day := l.Created.Std().Format(time.DateOnly)
		equal := true
		for currency := range joinKeys(money, books) {
			k := dayCurrency{day, currency}
			sum := c.sums[k]
			sum.stripe += money[currency]
			sum.books += books[currency]
			c.sums[k] = sum
			equal = equal && money[currency] == books[currency]
		}
		checkup := Checkup{Source: src, Object: f.ID, Kind: f.Kind, Why: whySums}
		if len(found) > 0 {
			checkup.Version = found[0].version
			_, change, _ := payment.MergeEvent(&found[0].fact, f)
			equal = equal && change != payment.Changed
		} else {
			equal = equal && len(money) == 0
		}
		if !equal {
			c.differ = append(c.differ, checkup)
		}
	}
	return c, nil
}

// booksOf is what the books say of the money that f itself has moved.
func booksOf(q querier, f payment.Fact) (map[string]int64, error) {
	account := payment.AccountSales
	switch f.Kind {
	case payment.KindRefund:
		account = payment.AccountRefunds
	case payment.KindDispute:
		account = payment.AccountDisputes
	}
	rows, err := q.query(`
		SELECT currency, sum(amount_minor) FROM entries
		WHERE scope = ? AND object = ? AND account IN (?, 'suspense') GROUP BY currency HAVING sum(amount_minor) <> 0`,
		f.Scope, f.BooksObject(), string(account))
	books := map[string]int64{}
	_, err = collect(rows, err, func(r *sql.Rows, _ *struct{}) error {
		var currency string
		var n int64
		if err := r.Scan(&currency, &n); err != nil {
			return err
		}
		books[currency] = n
		return nil
	})
	return books, err
}

func joinKeys(a, b map[string]int64) map[string]bool {
	keys := map[string]bool{}
	for k := range a {
		keys[k] = true
	}
	for k := range b {
		keys[k] = true
	}
	return keys
}

// sumDifferences notes the days on which Stripe and the books do not agree.
func sumDifferences(t *Tx, run int64) error {
	rows, err := t.query(`SELECT day, currency, stripe_minor, books_minor FROM run_sums WHERE run = ? AND stripe_minor <> books_minor ORDER BY day, currency`, run)
	days, err := collect(rows, err, func(r *sql.Rows, d *DaySum) error { return r.Scan(&d.Day, &d.Currency, &d.StripeMinor, &d.BooksMinor) })
	if err != nil {
		return err
	}
	for _, d := range days {
		if err := addDifference(t, run, d.difference()); err != nil {
			return err
		}
	}
	return nil
}
