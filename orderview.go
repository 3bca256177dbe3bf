package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"paidonce/store"
	"paidonce/store/payment"
)

func (a *app) ordersList() *cobra.Command {
	var f store.OrderFilter
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List orders, the newest first",
		Long:  "Lists orders, the newest first. Filters narrow each other.",
		Example: `  paidonce orders list
  paidonce orders list --status paid --limit 10
  paidonce orders list --attention any
  paidonce orders list --query ann@example.com`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkLimit(cmd, f.Limit); err != nil {
				return err
			}
			return a.withStore(cmd.Context(), func(s *store.Store) error {
				page, err := s.ListOrders(cmd.Context(), f)
				if err != nil {
					return err
				}
				return a.printPage(page, page.NextCursor, func(w *bytes.Buffer) { orderTable(w, page.Items) })
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.Tenant, "tenant", "main", "the orders' `tenant`")
	flags.StringVar(&f.Status, "status", "", "only those of this `status`, such as paid")
	flags.StringVar(&f.Attention, "attention", "", "only those with this attention `word`, or any")
	flags.StringVarP(&f.Query, "query", "q", "", "only those whose id begins with this `text`, or whose e-mail or Stripe id it is")
	pageFlags(cmd, &f.Limit, &f.Cursor)
	oneOf(cmd, "status", orderStatuses...)
	oneOf(cmd, "attention", attentionWords...)
	return cmd
}

// What --status and --attention take, as the API does.
var (
	orderStatuses = []string{
		string(payment.StatusAwaitingPayment), string(payment.StatusProcessing), string(payment.StatusAuthorized),
		string(payment.StatusPaymentFailed), string(payment.StatusExpired), string(payment.StatusCanceled),
		string(payment.StatusPaid), string(payment.StatusPartiallyRefunded), string(payment.StatusRefundPending),
		string(payment.StatusRefunded), string(payment.StatusDisputed), string(payment.StatusChargedBack),
	}
	attentionWords = []string{
		"any", payment.AttentionAmountMismatch, payment.AttentionCurrencyMismatch, payment.AttentionOrderConflict,
		payment.AttentionContradiction, payment.AttentionDoublePayment, payment.AttentionPaidAfterClose,
		payment.AttentionRefundFailed, payment.AttentionDisputeInquiry, payment.AttentionDisputeNeedsResponse,
		payment.AttentionUnderpaid, payment.AttentionOverpaid, "oversold", "effect_failed",
	}
)

func orderTable(w *bytes.Buffer, orders []store.Order) {
	t := table{header: []string{"CREATED", "ORDER", "STATUS", ">TOTAL", ">RECEIVED", "ATTENTION"}}
	for _, o := range orders {
		t.add(clock(o.CreatedAt), o.ID, string(o.Status), payment.FormatMinor(o.TotalMinor, o.Currency),
			payment.FormatMinor(o.ReceivedMinor, o.Currency), strings.Join(o.Attention, " "))
	}
	t.write(w, "")
}

func (a *app) ordersShow() *cobra.Command {
	var f orderFlags
	cmd := &cobra.Command{
		Use:     "show ORDER",
		Short:   "Show an order with all that explains it",
		Long:    "Shows an order: its numbers, its payments, its books, its effects, and what happened when.",
		Example: "  paidonce orders show A1\n  paidonce orders show A1 --json",
		Args:    takes("ORDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(cmd.Context(), func(s *store.Store) error {
				o, err := s.FindOrder(cmd.Context(), f.tenant, args[0])
				if err != nil {
					return err
				}
				return a.print(o, func(w *bytes.Buffer) { orderDetail(w, o) })
			})
		},
	}
	f.registerTenant(cmd)
	return cmd
}

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
	section(w, "effects", len(o.Effects), func(t *table) { effectRows(t, o.Effects) }, effectHeader...)
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
