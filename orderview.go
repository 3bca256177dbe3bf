package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"paidonce/store"
	"paidonce/store/payment"
)

// orderLines tells how an order stands.
func orderLines(w *bytes.Buffer, o store.Order) {
	money := func(minor int64) string { return payment.FormatMinor(minor, o.Currency) }
	unlessZero := func(minor int64) string {
		if minor == 0 {
			return ""
		}
		return money(minor)
	}
	policy := string(o.AmountPolicy)
	if o.AllowDiscount {
		policy += ", discounts allowed"
	}
	var metadata []string
	for _, k := range slices.Sorted(maps.Keys(o.Metadata)) {
		metadata = append(metadata, k+"="+o.Metadata[k])
	}
	tenant := o.Tenant
	if tenant == "main" {
		tenant = ""
	}
	pairs(w,
		"tenant", tenant,
		"status", string(o.Status),
		"attention", strings.Join(o.Attention, " "),
		"total", money(o.TotalMinor)+" ("+policy+")",
		"received", money(o.ReceivedMinor),
		"refunded", unlessZero(o.RefundedMinor),
		"refund pending", unlessZero(o.RefundPendingMinor),
		"charged back", unlessZero(o.ChargedBackMinor),
		"in suspense", unlessZero(o.SuspenseMinor),
		"payment intent", o.PaymentIntent,
		"refs", strings.Join(o.Refs, " "),
		"e-mail", o.Customer.Email,
		"name", o.Customer.Name,
		"metadata", strings.Join(metadata, " "),
		"checkout", o.CheckoutURL,
		"created", clock(o.CreatedAt),
		"paid", clock(o.PaidAt),
		"updated", clock(o.UpdatedAt),
	)
}

// orderDetail tells all of an order.
func orderDetail(w *bytes.Buffer, o store.OrderDetail) {
	fmt.Fprintf(w, "%s\n", clean(o.ID))
	orderLines(w, o.Order)
	section(w, "attention", len(o.AttentionDetail), func(t *table) {
		for _, x := range o.AttentionDetail {
			t.add(x.Word, x.Detail)
		}
	}, "WHAT", "WHY")
	section(w, "items", len(o.Items), func(t *table) {
		for _, x := range o.Items {
			t.add(x.SKU, count(x.Quantity), payment.FormatMinor(x.UnitMinor, o.Currency), x.Name)
		}
	}, "SKU", ">QUANTITY", ">UNIT", "NAME")
	section(w, "payments", len(o.Payments), func(t *table) {
		for _, x := range o.Payments {
			judged := string(x.Verdict)
			if x.Accepted {
				judged = "accepted"
			}
			t.add(x.ID, judged, payment.FormatMinor(x.ReceivedMinor, x.Currency),
				payment.FormatMinor(x.RefundedMinor, x.Currency), payment.FormatMinor(x.ChargedBackMinor, x.Currency))
		}
	}, "PAYMENT", "JUDGED", ">RECEIVED", ">REFUNDED", ">CHARGED BACK")
	for _, x := range o.Payments {
		if x.Reason != "" {
			fmt.Fprintf(w, "  %s: %s\n", clean(x.ID), clean(x.Reason))
		}
	}
	section(w, "books", len(o.Entries), func(t *table) {
		for _, x := range o.Entries {
			t.add(clock(x.OccurredAt), x.Account, payment.FormatMinor(x.AmountMinor, x.Currency), x.Object)
		}
	}, "OCCURRED", "ACCOUNT", ">AMOUNT", "OBJECT")
	section(w, "operations", len(o.Operations), func(t *table) {
		for _, x := range o.Operations {
			t.add(clock(x.OccurredAt), x.Name)
		}
	}, "OCCURRED", "OPERATION")
	section(w, "timeline", len(o.Timeline), func(t *table) {
		for _, x := range o.Timeline {
			t.add(clock(x.At), x.Kind, x.Text)
		}
	}, "LEARNED", "KIND", "WHAT")
}

// section prints a titled table, if it has rows.
func section(w *bytes.Buffer, title string, rows int, fill func(*table), header ...string) {
	if rows == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s\n", title)
	t := table{header: header}
	fill(&t)
	t.write(w, "  ")
}
