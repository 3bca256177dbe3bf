package store

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"paidonce/store/payment"
)

// attentionOversold is the one word of an order's attention that facts alone do
// not cause: it depends on what there was when the order took it.
const attentionOversold = "oversold"

// StockLine is one thing in stock, as `stock list` shows it.
type StockLine struct {
	Tenant    string   `json:"tenant"`
	SKU       string   `json:"sku"`
	OnHand    int64    `json:"on_hand"`    // below nothing: more was sold than there was
	Counted   int64    `json:"counted"`    // what a person last counted
	CountedAt Time     `json:"counted_at"` // when
	Taken     int64    `json:"taken"`      // by orders since, less what they gave back
	Attention []string `json:"attention"`  // low_stock: at or under [stock] low
	UpdatedAt Time     `json:"updated_at"`
}

// move is one row of stock_moves: what an order took (or, below nothing, gave
// back), and how much of it was not there.
type move struct {
	sku             string
	quantity, short int64
}

// saveStock takes or gives back what o's facts ask for, and returns an
// attention for each thing that was not there in full. An order holds all of
// its items from the moment that what is due was ever received, refunds and
// disputes aside, until a full refund gives them back, if the shop wants that.
// Stock is never a reason for a payment to fail.
//
// What is held is compared with what should be, so learning the same again
// takes nothing again.
func (s *Store) saveStock(t *Tx, why cause, o *orderRow, out payment.Outcome) ([]payment.Attention, error) {
	if len(o.items) == 0 && !o.moved {
		return nil, nil
	}
	moves, err := stockMoves(t, o)
	if err != nil {
		return nil, err
	}
	held, short := map[string]int64{}, map[string]int64{}
	for _, m := range moves { // oldest first: the last one knows what is short
		held[m.sku] += m.quantity
		short[m.sku] = m.short
	}
	want := map[string]int64{}
	switch {
	case out.FullyRefunded && !s.opt.StockReturn && len(moves) > 0:
		// What it holds stays out; and what went back while the shop still
		// wanted that is not taken a second time.
		want = held
	case out.DueReceived && !(out.FullyRefunded && s.opt.StockReturn):
		for _, it := range o.items {
			want[it.SKU] += it.Quantity
		}
	}
	skus := maps.Clone(held)
	maps.Copy(skus, want)
	var oversold []payment.Attention
	for _, sku := range slices.Sorted(maps.Keys(skus)) {
		if n := want[sku] - held[sku]; n != 0 {
			m := move{sku: sku, quantity: n}
			if err := takeStock(t, why, o, &m); err != nil {
				return nil, err
			}
			short[sku] = m.short
		}
		if short[sku] > 0 {
			oversold = append(oversold, payment.Attention{Word: attentionOversold, Cause: sku,
				Detail: fmt.Sprintf("%s: %d were sold and %d of them were not in stock", sku, want[sku], short[sku])})
		}
	}
	return oversold, nil
}

func stockMoves(q querier, o *orderRow) ([]move, error) {
	if !o.moved {
		return nil, nil
	}
	rows, err := q.query(`SELECT sku, quantity, short FROM stock_moves WHERE order_id = ? ORDER BY id`, o.row)
	moves, err := collect(rows, err, func(r *sql.Rows, m *move) error { return r.Scan(&m.sku, &m.quantity, &m.short) })
	if err != nil {
		return nil, fmt.Errorf("stock of order %s: %w", o.reg.ID, err)
	}
	return moves, nil
}

// takeStock writes a move down and changes what is on hand, if that is counted
// at all. It fills in how much was not there.
func takeStock(t *Tx, why cause, o *orderRow, m *move) error {
	var onHand int64
	counted, err := one(t, `SELECT on_hand FROM stock WHERE tenant = ? AND sku = ?`, []any{o.reg.Tenant, m.sku}, &onHand)
	if err != nil {
		return fmt.Errorf("stock of %s: %w", m.sku, err)
	}
	if counted {
		if m.quantity > 0 {
			m.short = min(m.quantity, max(0, m.quantity-onHand))
		}
		if _, err := t.exec(`UPDATE stock SET on_hand = on_hand - ?, updated_at = ? WHERE tenant = ? AND sku = ?`,
			m.quantity, t.now, o.reg.Tenant, m.sku); err != nil {
			return fmt.Errorf("take %s: %w", m.sku, err)
		}
	}
	if _, err := t.insert(`INSERT INTO stock_moves (order_id, sku, quantity, short, at, event) VALUES (?, ?, ?, ?, ?, nullif(?, 0))`,
		o.row, m.sku, m.quantity, m.short, t.now, why.event); err != nil {
		return fmt.Errorf("take %s for order %s: %w", m.sku, o.reg.ID, err)
	}
	return nil
}

// SetStock says how much of a thing is on hand now. From then on orders take
// from it; those that were paid before are in the count already.
func (s *Store) SetStock(ctx context.Context, tenant, sku string, onHand int64) (StockLine, error) {
	if tenant == "" {
		tenant = mainTenant
	}
	var bad problems
	if !tenantPattern.MatchString(tenant) {
		bad.add("tenant", "must be 1 to 64 letters, digits, dots, dashes or underscores")
	}
	checkID(&bad, "sku", sku)
	if onHand < math.MinInt32 || onHand > math.MaxInt32 {
		bad.add("on_hand", "must be a whole number from %d to %d", math.MinInt32, math.MaxInt32)
	}
	if err := bad.invalid("stock"); err != nil {
		return StockLine{}, err
	}
	var line StockLine
	err := s.w.write(ctx, "set stock of "+sku, func(t *Tx) error {
		if _, err := t.exec(`
			INSERT INTO stock (tenant, sku, on_hand, counted, counted_at, counted_after, updated_at)
			VALUES (?1, ?2, ?3, ?3, ?4, (SELECT coalesce(max(id), 0) FROM stock_moves), ?4)
			ON CONFLICT (tenant, sku) DO UPDATE SET on_hand = excluded.on_hand, counted = excluded.counted,
				counted_at = excluded.counted_at, counted_after = excluded.counted_after, updated_at = excluded.updated_at`,
			tenant, sku, onHand, t.now); err != nil {
			return fmt.Errorf("set stock of %s: %w", sku, err)
		}
		if err := s.act(t, "stock set", 0, 0, sku, fmt.Sprintf("%d on hand, tenant %s", onHand, tenant)); err != nil {
			return err
		}
		lines, err := s.stockLines(t, tenant, sku)
		if err == nil {
			line = lines[0]
		}
		return err
	})
	if err != nil {
		return StockLine{}, err
	}
	return line, nil
}

// ListStock returns what is counted, by name; an empty tenant is all of them.
func (s *Store) ListStock(ctx context.Context, tenant string) ([]StockLine, error) {
	var lines []StockLine
	err := s.read(ctx, func(q querier) error {
		var err error
		lines, err = s.stockLines(q, tenant, "")
		return err
	})
	return lines, err
}

func (s *Store) stockLines(q querier, tenant, sku string) ([]StockLine, error) {
	where, args := []string{"1"}, []any{}
	if tenant != "" {
		where, args = append(where, "tenant = ?"), append(args, tenant)
	}
	if sku != "" {
		where, args = append(where, "sku = ?"), append(args, sku)
	}
	rows, err := q.query(`
		SELECT tenant, sku, on_hand, counted, counted_at, updated_at FROM stock
		WHERE `+strings.Join(where, " AND ")+` ORDER BY tenant, sku`, args...)
	lines, err := collect(rows, err, func(r *sql.Rows, l *StockLine) error {
		if err := r.Scan(&l.Tenant, &l.SKU, &l.OnHand, &l.Counted, &l.CountedAt, &l.UpdatedAt); err != nil {
			return err
		}
		l.Taken, l.Attention = l.Counted-l.OnHand, []string{}
		if s.opt.StockLow > 0 && l.OnHand <= s.opt.StockLow {
			l.Attention = append(l.Attention, "low_stock")
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list stock: %w", err)
	}
	return append([]StockLine{}, lines...), nil
}
