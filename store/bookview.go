package store

import (
	"context"
	"database/sql"
	"encoding/base64"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// BookSum is what the accounts come to in one currency. Money in is positive,
// so refunds and disputes are mostly below nothing, and net is the sum of
// sales, refunds and disputes. Suspense is money that no order counts: it
// stands apart.
type BookSum struct {
	Currency      string `json:"currency"`
	SalesMinor    int64  `json:"sales_minor"`
	RefundsMinor  int64  `json:"refunds_minor"`
	DisputesMinor int64  `json:"disputes_minor"`
	NetMinor      int64  `json:"net_minor"`
	SuspenseMinor int64  `json:"suspense_minor"`
}

// BookDay is what one UTC day brought in one currency.
type BookDay struct {
	Date string `json:"date"` // 2026-11-30
	BookSum
}

// Books are the books of a time: what stood before, what each day brought, and
// what stands after. A currency is in opening and closing if it ever had an
// entry until then.
type Books struct {
	Since   Time      `json:"since,omitzero"` // inclusive; absent is from the beginning
	Until   Time      `json:"until,omitzero"` // exclusive; absent is to the end
	Opening []BookSum `json:"opening"`
	Days    []BookDay `json:"days"`
	Closing []BookSum `json:"closing"`
}

// BookEntry is a line of the books with all that it hangs together with.
type BookEntry struct {
	Row        int64 `json:"entry"`
	RecordedAt Time  `json:"recorded_at"`
	Entry
	Scope  string `json:"scope"`
	Tenant string `json:"tenant,omitempty"`
	Order  string `json:"order,omitempty"`
}

// EntryFilter selects entries for ListEntries by when they occurred.
type EntryFilter struct {
	Since, Until Time // inclusive, exclusive; 0 is open
	Limit        int  // 1 to 1000; 0 is 1000
	Cursor       string
}

// Books sums the entries that occurred from since until before until, by UTC
// day and currency; 0 is open. Days that begin or end inside of one are cut.
//
// It is one pass over one index, so opening, days and closing always fit each
// other.
func (s *Store) Books(ctx context.Context, since, until Time) (Books, error) {
	b := Books{Since: since, Until: until, Opening: []BookSum{}, Days: []BookDay{}, Closing: []BookSum{}}
	err := s.read(ctx, func(q querier) error {
		rows, err := q.query(`
			SELECT CASE WHEN occurred_at >= ?1 THEN occurred_at / ?3 END AS day, currency,
				coalesce(sum(amount_minor) FILTER (WHERE account = 'sales'), 0),
				coalesce(sum(amount_minor) FILTER (WHERE account = 'refunds'), 0),
				coalesce(sum(amount_minor) FILTER (WHERE account = 'disputes'), 0),
				coalesce(sum(amount_minor) FILTER (WHERE account = 'suspense'), 0)
			FROM entries WHERE occurred_at < ?2
			GROUP BY day, currency ORDER BY day, currency`, since, openEnd(until), day.Milliseconds())
		_, err = collect(rows, err, func(r *sql.Rows, sum *BookSum) error {
			var at sql.NullInt64
			if err := r.Scan(&at, &sum.Currency, &sum.SalesMinor, &sum.RefundsMinor, &sum.DisputesMinor, &sum.SuspenseMinor); err != nil {
				return err
			}
			sum.NetMinor = sum.SalesMinor + sum.RefundsMinor + sum.DisputesMinor
			if !at.Valid { // before since; NULL comes first
				b.Opening = append(b.Opening, *sum)
				return nil
			}
			b.Days = append(b.Days, BookDay{time.UnixMilli(at.Int64 * day.Milliseconds()).UTC().Format(time.DateOnly), *sum})
			return nil
		})
		return err
	})
	if err != nil {
		return Books{}, fmt.Errorf("books: %w", err)
	}
	b.close()
	return b, nil
}

const day = 24 * time.Hour

// openEnd makes an end of "none" one that no entry comes after.
func openEnd(until Time) Time {
	if until == 0 {
		return math.MaxInt64
	}
	return until
}

// close sums up opening and days.
func (b *Books) close() {
	sums := map[string]BookSum{}
	plus := func(x BookSum) {
		sum := sums[x.Currency]
		sums[x.Currency] = BookSum{x.Currency, sum.SalesMinor + x.SalesMinor, sum.RefundsMinor + x.RefundsMinor,
			sum.DisputesMinor + x.DisputesMinor, sum.NetMinor + x.NetMinor, sum.SuspenseMinor + x.SuspenseMinor}
	}
	for _, x := range b.Opening {
		plus(x)
	}
	for _, d := range b.Days {
		plus(d.BookSum)
	}
	for _, currency := range slices.Sorted(maps.Keys(sums)) {
		b.Closing = append(b.Closing, sums[currency])
	}
}

// ListEntries returns a page of the books, the first occurred first. Each page
// is a snapshot of its own, so a long export holds nothing open; all of its
// pages are of the books as they stood at the first, whatever is written
// meanwhile.
func (s *Store) ListEntries(ctx context.Context, f EntryFilter) (Page[BookEntry], error) {
	at := entryCursor{upTo: math.MaxInt64, occurred: math.MinInt64}
	var bad problems
	if f.Limit == 0 {
		f.Limit = maxEntries
	}
	if f.Limit < 1 || f.Limit > maxEntries {
		bad.add("limit", "must be 1 to %d", maxEntries)
	}
	if f.Cursor != "" && !at.parse(f.Cursor) {
		bad.add("cursor", "is not one that a list gave")
	}
	if err := bad.invalid("list parameters"); err != nil {
		return Page[BookEntry]{}, err
	}
	page := Page[BookEntry]{Items: []BookEntry{}}
	err := s.read(ctx, func(q querier) error {
		if f.Cursor == "" {
			if _, err := one(q, `SELECT coalesce(max(id), 0) FROM entries`, nil, &at.upTo); err != nil {
				return err
			}
		}
		rows, err := q.query(`
			SELECT n.id, n.recorded_at, n.account, n.object, n.amount_minor, n.currency, n.occurred_at, coalesce(e.event_id, ''),
				n.scope, coalesce(o.tenant, ''), coalesce(o.order_id, '')
			FROM entries n LEFT JOIN events e ON e.id = n.event LEFT JOIN orders o ON o.id = n.order_id
			WHERE n.occurred_at >= ?1 AND n.occurred_at < ?2 AND n.id <= ?3 AND (n.occurred_at > ?4 OR n.occurred_at = ?4 AND n.id > ?5)
			ORDER BY n.occurred_at, n.id LIMIT ?6`,
			max(f.Since, at.occurred), openEnd(f.Until), at.upTo, at.occurred, at.row, f.Limit+1)
		page.Items, err = collect(rows, err, func(r *sql.Rows, e *BookEntry) error {
			return r.Scan(&e.Row, &e.RecordedAt, &e.Account, &e.Object, &e.AmountMinor, &e.Currency, &e.OccurredAt, &e.Event,
				&e.Scope, &e.Tenant, &e.Order)
		})
		return err
	})
	if err != nil {
		return Page[BookEntry]{}, fmt.Errorf("list entries: %w", err)
	}
	if len(page.Items) > f.Limit {
		page.Items = page.Items[:f.Limit]
		last := page.Items[f.Limit-1]
		at.occurred, at.row = last.OccurredAt, last.Row
		page.NextCursor = at.String()
	}
	return page, nil
}

// maxEntries is the longest page of entries.
const maxEntries = 1000

// entryCursor is the last entry of a page, and the last one that there was when
// the first page was read.
type entryCursor struct {
	upTo     int64
	occurred Time
	row      int64
}

func (c entryCursor) String() string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d.%d.%d", c.upTo, c.occurred, c.row))
}

func (c *entryCursor) parse(text string) bool {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return false
	}
	parts := strings.Split(string(b), ".")
	if len(parts) != 3 {
		return false
	}
	var n [3]int64
	for i, p := range parts {
		if n[i], err = strconv.ParseInt(p, 10, 64); err != nil {
			return false
		}
	}
	c.upTo, c.occurred, c.row = n[0], Time(n[1]), n[2]
	return true
}
