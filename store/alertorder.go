package store

import (
	"database/sql"
	"encoding/json"
	"fmt"

	"paidonce/store/payment"
)

const attentionDispute = payment.AttentionDisputeNeedsResponse

// findAttention finds the orders that show a word of attention: what a person
// has acknowledged is not in it. Row is the order's, mark the cause, detail our
// words for it, at the time by which somebody must act.
func findAttention(word string) func(*Store, querier, Time, AlertRules) (finding, error) {
	// The first instr keeps most orders from being parsed at all.
	const shown = ` FROM orders o INDEXED BY orders_attention, json_each(o.attention) a
		WHERE o.attention <> '[]' AND instr(o.attention, ?) > 0 AND json_extract(a.value, '$.word') = ?`
	return func(_ *Store, q querier, _ Time, _ AlertRules) (finding, error) {
		var f finding
		args := []any{`"word":"` + word + `"`, word}
		if _, err := one(q, `SELECT count(*)`+shown, args, &f.count); err != nil || f.count == 0 {
			return f, err
		}
		rows, err := q.query(`SELECT o.id, o.tenant, json_extract(a.value, '$.cause'), json_extract(a.value, '$.detail'), coalesce(json_extract(a.value, '$.due_at'), 0)`+
			shown+` ORDER BY o.id DESC, 3 LIMIT ?`, append(args, alertWindow)...)
		f.things, err = collect(rows, err, func(r *sql.Rows, t *thing) error { return r.Scan(&t.row, &t.tenant, &t.mark, &t.detail, &t.at) })
		return f, err
	}
}

// orderItem begins an item about an order.
func orderItem(q querier, th thing) (AlertItem, error) {
	var item AlertItem
	var total int64
	var currency string
	_, err := one(q, `SELECT order_id, total_minor, currency, coalesce(paid_at, updated_at) FROM orders WHERE id = ?`, []any{th.row},
		&item.Order, &total, &currency, &item.At)
	if err != nil {
		return item, fmt.Errorf("order row %d: %w", th.row, err)
	}
	item.Order, item.Amount = plain(item.Order), payment.FormatMinor(total, currency)
	return item, nil
}

func oversoldItems(_ *Store, q querier, things []thing) ([]AlertItem, error) {
	var items []AlertItem
	for _, th := range things {
		item, err := orderItem(q, th)
		if err != nil {
			return nil, err
		}
		if _, err := one(q, `SELECT at FROM stock_moves WHERE order_id = ? AND sku = ? ORDER BY id DESC LIMIT 1`, []any{th.row, th.mark}, &item.At); err != nil {
			return nil, err
		}
		item.Text = plain(th.detail)
		items = append(items, item)
	}
	return items, nil
}

// disputeItems show what each dispute is over, and until when it can be
// answered.
func disputeItems(_ *Store, q querier, things []thing) ([]AlertItem, error) {
	var items []AlertItem
	for _, th := range things {
		item, err := orderItem(q, th)
		if err != nil {
			return nil, err
		}
		var body []byte
		needed := false
		known, err := one(q, `SELECT body, created_at FROM facts WHERE object_id = ? AND order_id = ?`, []any{th.mark, th.row}, &body, &item.At)
		if err != nil {
			return nil, err
		}
		if known {
			var f payment.Fact
			if err := json.Unmarshal(body, &f); err != nil {
				return nil, fmt.Errorf("fact of %s: %w", plain(th.mark), err)
			}
			if f.Snapshot.Amount.Known && f.Snapshot.Currency != "" {
				item.Amount = payment.FormatMinor(f.Snapshot.Amount.Minor, f.Snapshot.Currency)
			}
			needed = f.Snapshot.Status == "needs_response"
			if f.Sticky.ProvenAt != 0 {
				item.At = Time(f.Sticky.ProvenAt)
			}
		}
		item.Text = plain(th.mark) + " is under review"
		if th.at != 0 {
			item.Text = plain(th.mark) + " must be answered by " + th.at.String()
		} else if needed {
			item.Text = plain(th.mark) + " must be answered"
		}
		items = append(items, item)
	}
	return items, nil
}
