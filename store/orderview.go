package store

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"paidonce/store/payment"
)

const orderColumns = `id, tenant, order_id, status, attention, total_minor, currency, amount_policy, allow_discount,
	received_minor, refunded_minor, refund_pending_minor, charged_back_minor, suspense_minor, coalesce(payment_intent, ''),
	items, customer, metadata, created_at, coalesce(paid_at, 0), updated_at`

// orderView is an Order with what the list and the detail need besides.
type orderView struct {
	Order
	row       int64
	attention []payment.Attention
}

func scanOrder(rows *sql.Rows, o *orderView) error {
	var attention, items, customer, metadata []byte
	if err := rows.Scan(&o.row, &o.Tenant, &o.ID, &o.Status, &attention, &o.TotalMinor, &o.Currency, &o.AmountPolicy, &o.AllowDiscount,
		&o.ReceivedMinor, &o.RefundedMinor, &o.RefundPendingMinor, &o.ChargedBackMinor, &o.SuspenseMinor, &o.PaymentIntent,
		&items, &customer, &metadata, &o.CreatedAt, &o.PaidAt, &o.UpdatedAt); err != nil {
		return err
	}
	for _, part := range []struct {
		text []byte
		into any
	}{{attention, &o.attention}, {items, &o.Items}, {customer, &o.Customer}, {metadata, &o.Metadata}} {
		if err := json.Unmarshal(part.text, part.into); err != nil {
			return fmt.Errorf("order %s: %w", o.ID, err)
		}
	}
	o.Attention = []string{}
	for _, a := range o.attention {
		if !slices.Contains(o.Attention, a.Word) {
			o.Attention = append(o.Attention, a.Word)
		}
	}
	return nil
}

// addRefs fills in the Stripe ids that belong to o: registered, linked, learned.
func (o *orderView) addRefs(q querier) error {
	rows, err := q.query(`
		SELECT object_id FROM refs WHERE order_id = ?1 UNION SELECT object_id FROM facts WHERE order_id = ?1 ORDER BY 1`, o.row)
	refs, err := collect(rows, err, func(r *sql.Rows, id *string) error { return r.Scan(id) })
	if err != nil {
		return fmt.Errorf("refs of order %s: %w", o.ID, err)
	}
	o.Refs = append([]string{}, refs...)
	return nil
}

func viewOrder(q querier, row int64) (Order, error) {
	v, err := findView(q, row)
	return v.Order, err
}

func findView(q querier, row int64) (orderView, error) {
	rows, err := q.query(`SELECT `+orderColumns+` FROM orders WHERE id = ?`, row)
	found, err := collect(rows, err, scanOrder)
	if err != nil {
		return orderView{}, err
	}
	if len(found) == 0 {
		return orderView{}, fmt.Errorf("order row %d is not there", row)
	}
	v := found[0]
	if v.CheckoutURL, err = checkoutURL(q, v.Order, v.row); err != nil {
		return orderView{}, err
	}
	return v, v.addRefs(q)
}

// FindOrder returns an order with everything that explains it, or
// CodeNotFound.
func (s *Store) FindOrder(ctx context.Context, tenant, id string) (OrderDetail, error) {
	if tenant == "" {
		tenant = mainTenant
	}
	var d OrderDetail
	err := s.read(ctx, func(q querier) error {
		row, err := findOrderRow(q, tenant, id)
		if err != nil {
			return err
		}
		if row == 0 {
			return noOrder(tenant, id)
		}
		d, err = orderDetail(q, row)
		return err
	})
	return d, err
}

func orderDetail(q querier, row int64) (OrderDetail, error) {
	v, err := findView(q, row)
	if err != nil {
		return OrderDetail{}, err
	}
	d := OrderDetail{Order: v.Order, AttentionDetail: append([]payment.Attention{}, v.attention...),
		Payments: []PaymentView{}, Facts: []FactView{}, Effects: []Effect{}}
	o, err := loadOrder(q, row)
	if err != nil {
		return OrderDetail{}, err
	}
	g := newGraph(q)
	if err := g.growOrder(row, v.Tenant, v.ID); err != nil {
		return OrderDetail{}, err
	}
	groups, err := g.groups()
	if err != nil {
		return OrderDetail{}, err
	}
	for _, p := range o.derive(groups).Payments {
		d.Payments = append(d.Payments, PaymentView{Scope: p.Key.Scope, ID: p.Key.Object, Objects: p.Objects, Currency: p.Currency,
			ReceivedMinor: p.ReceivedMinor, RefundedMinor: p.RefundedMinor, RefundPendingMinor: p.RefundPendingMinor,
			ChargedBackMinor: p.ChargedBackMinor, Accepted: p.Accepted, Verdict: p.Verdict, Reason: p.Reason})
	}
	for _, gr := range groups {
		if gr.order != row && !slices.Contains(gr.conflict, row) {
			continue
		}
		for _, r := range gr.rows {
			d.Facts = append(d.Facts, FactView{Scope: r.fact.Scope, ID: r.fact.ID, Kind: r.fact.Kind, Version: r.version, Fact: r.fact, UpdatedAt: r.updated})
		}
	}
	rows, err := q.query(`SELECT `+effectColumns+effectTables+`WHERE e.order_id = ? ORDER BY e.id`, row)
	effects, err := collect(rows, err, scanEffect)
	if err != nil {
		return OrderDetail{}, fmt.Errorf("effects of order %s: %w", d.ID, err)
	}
	for _, e := range effects {
		d.Effects = append(d.Effects, e.Effect)
	}
	return d, d.addHistory(q, row)
}

// ListOrders returns a page of orders, newest first.
func (s *Store) ListOrders(ctx context.Context, f OrderFilter) (Page[Order], error) {
	limit, before, err := paging(f.Limit, f.Cursor)
	if err != nil {
		return Page[Order]{}, err
	}
	where, args := []string{"id < ?"}, []any{before}
	add := func(cond string, vals ...any) { where, args = append(where, cond), append(args, vals...) }
	if f.Tenant != "" {
		add("tenant = ?", f.Tenant)
	}
	if f.Status != "" {
		add("status = ?", f.Status)
	}
	switch f.Attention {
	case "":
	case "any", "true":
		add("attention <> '[]'")
	default:
		add("attention <> '[]' AND EXISTS (SELECT 1 FROM json_each(attention) WHERE json_extract(value, '$.word') = ?)", f.Attention)
	}
	if q := strings.TrimSpace(f.Query); q != "" {
		add(`id IN (
			SELECT id FROM orders WHERE order_id >= ? AND order_id < ? || char(1114111)
			UNION ALL SELECT id FROM orders WHERE lower(json_extract(customer, '$.email')) = lower(?)
			UNION ALL SELECT order_id FROM refs WHERE object_id = ?
			UNION ALL SELECT order_id FROM facts WHERE object_id = ? AND order_id IS NOT NULL)`, q, q, q, q, q)
	}
	page := Page[Order]{Items: []Order{}}
	err = s.read(ctx, func(q querier) error {
		rows, err := q.query(`SELECT `+orderColumns+` FROM orders WHERE `+strings.Join(where, " AND ")+` ORDER BY id DESC LIMIT ?`, append(args, limit+1)...)
		found, err := collect(rows, err, scanOrder)
		if err != nil {
			return fmt.Errorf("list orders: %w", err)
		}
		if len(found) > limit {
			found = found[:limit]
			page.NextCursor = cursor(found[limit-1].row)
		}
		for i := range found {
			if err := found[i].addRefs(q); err != nil {
				return err
			}
			if found[i].CheckoutURL, err = checkoutURL(q, found[i].Order, found[i].row); err != nil {
				return err
			}
			page.Items = append(page.Items, found[i].Order)
		}
		return nil
	})
	return page, err
}

// paging checks a list's limit and cursor. The cursor is the row of the last
// item, so a page goes on where the one before it ended, whatever came since.
func paging(limit int, cur string) (int, int64, error) {
	var bad problems
	if limit == 0 {
		limit = 50
	}
	if limit < 1 || limit > 200 {
		bad.add("limit", "must be 1 to 200")
	}
	before := int64(1) << 62
	if cur != "" {
		b, err := base64.RawURLEncoding.DecodeString(cur)
		if err == nil {
			before, err = strconv.ParseInt(string(b), 36, 64)
		}
		if err != nil {
			bad.add("cursor", "is not one that a list gave")
		}
	}
	if len(bad) > 0 {
		return 0, 0, &Problem{Code: CodeInvalid, Message: "invalid list parameters", Fields: bad}
	}
	return limit, before, nil
}

func cursor(row int64) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(row, 36)))
}
