package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"paidonce/handler"
	"paidonce/store"
	"paidonce/store/payment"
)

func (a *app) ordersRefund() *cobra.Command {
	var f orderFlags
	var r store.RefundRequest
	var amount string
	cmd := &cobra.Command{
		Use:   "refund ORDER",
		Short: "Send money back",
		Long: `Sends money of an order back, by Stripe: all that is refundable, or --amount in
major units of the payment's currency. A running serve carries it out; the
command waits for that, for up to 30 seconds. What is queued is carried out
once, also when nobody waits or serve is not running.

--request-id names the request: the same one again is the same refund, and tells
what came of it. Without one, an id is made and told.`,
		Example: `  paidonce orders refund A1
  paidonce orders refund A1 --amount 12.50 --reason requested_by_customer
  paidonce orders refund A1 --payment pi_3Qabc --request-id return-771`,
		Args: takes("ORDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, id := cmd.Context(), args[0]
			return a.withStore(ctx, func(s *store.Store) error {
				if cmd.Flags().Changed("amount") {
					o, err := s.FindOrder(ctx, f.tenant, id)
					if err != nil {
						return err
					}
					minor, err := payment.ParseMajor(amount, refundCurrency(o, r.Payment))
					if err != nil {
						return usagef(cmd, "--amount: %s", err)
					}
					r.AmountMinor = &minor
				}
				if r.RequestID == "" {
					r.RequestID = "cli_" + rand.Text()
				}
				e, err := s.RequestRefund(ctx, f.tenant, id, r)
				if err != nil {
					if p, ok := store.AsProblem(err); !ok || p.Code == store.CodeUnavailable {
						return fmt.Errorf("%w; it may be queued all the same: go on with --request-id %s, which makes it one refund", err, r.RequestID)
					}
					return err
				}
				w, err := a.await(ctx, s, e.ID)
				if err != nil {
					return fmt.Errorf("order %s, request %s: %w", id, r.RequestID, err)
				}
				return a.print(w.Effect, func(b *bytes.Buffer) { refundLine(b, id, r.RequestID, w) })
			})
		},
	}
	f.registerTenant(cmd)
	flags := cmd.Flags()
	flags.StringVar(&amount, "amount", "", "how much, as an `AMOUNT` in major units such as 12.50 (default all)")
	flags.StringVar(&r.Payment, "payment", "", "the `payment`, by any Stripe id of it, where several hold money")
	flags.StringVar(&r.Reason, "reason", "", "the `reason` that Stripe is told: "+strings.Join(refundReasons, ", "))
	flags.StringVar(&r.RequestID, "request-id", "", "your `id` of this refund")
	oneOf(cmd, "reason", refundReasons...)
	return cmd
}

// refundReasons are what Stripe takes.
var refundReasons = []string{"duplicate", "fraudulent", "requested_by_customer"}

// refundCurrency is the currency that an amount to refund is typed in: money in
// suspense may be in another one than its order.
func refundCurrency(o store.OrderDetail, object string) string {
	for _, p := range o.Payments {
		if slices.Contains(p.Objects, object) {
			return cmp.Or(p.Currency, o.Currency)
		}
	}
	return o.Currency
}

// refundLine tells what came of a refund.
func refundLine(b *bytes.Buffer, order, request string, w awaited) {
	what := "refund"
	var call store.RefundCall
	if json.Unmarshal(w.Body, &call) == nil && call.Currency != "" {
		what = "refund of " + payment.FormatMinor(call.AmountMinor, call.Currency)
	}
	if w.done() {
		fmt.Fprintf(b, "%s %s done: %s\n", clean(order), what, clean(cmp.Or(w.ProviderRef, "effect "+w.ID)))
	} else {
		fmt.Fprintf(b, "%s %s %s\n", clean(order), what, w.open())
	}
	fmt.Fprintf(b, "request  %s\n", clean(request))
}

func (a *app) ordersCheckout() *cobra.Command {
	var f orderFlags
	cmd := &cobra.Command{
		Use:   "checkout ORDER",
		Short: "Open a page at Stripe where the order is paid",
		Long: `Opens a Checkout Session for an unpaid order and prints its URL, alone. The
sessions before it are closed first, so that only one can be paid. Without
--success-url, the addresses of the registration are taken.

A running serve carries it out; the command waits for that, for up to 30
seconds. Without a URL by then it exits 1, and orders show tells it later.`,
		Example: `  paidonce orders checkout A1
  paidonce orders checkout A1 --success-url https://shop.example/thanks --cancel-url https://shop.example/cart`,
		Args: takes("ORDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			urls, err := f.checkout(cmd)
			if err != nil {
				return err
			}
			ctx, id := cmd.Context(), args[0]
			return a.withStore(ctx, func(s *store.Store) error {
				e, err := s.RequestCheckout(ctx, f.tenant, id, urls)
				if err != nil {
					return err
				}
				w, err := a.await(ctx, s, e.ID)
				if err != nil {
					return err
				}
				if !w.done() {
					return w.unanswered("order " + id + " has no URL yet")
				}
				o, err := s.FindOrder(ctx, f.tenant, id)
				if err != nil {
					return err
				}
				if o.CheckoutURL == "" {
					return fmt.Errorf("order %s is %s: there is nowhere to pay it", id, o.Status)
				}
				return a.print(handler.NewCheckoutOrder(o.Order, true), func(b *bytes.Buffer) { fmt.Fprintln(b, clean(o.CheckoutURL)) })
			})
		},
	}
	f.registerTenant(cmd)
	f.registerCheckout(cmd)
	return cmd
}

// registerCheckout adds where a Checkout Session sends the buyer back to.
func (f *orderFlags) registerCheckout(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.successURL, "success-url", "", "where Stripe sends the buyer who has paid: a `URL`")
	cmd.Flags().StringVar(&f.cancelURL, "cancel-url", "", "where Stripe sends the buyer who has not: a `URL`")
}

// checkout is what registerCheckout's flags say; nil if nothing.
func (f *orderFlags) checkout(cmd *cobra.Command) (*store.Checkout, error) {
	switch {
	case f.successURL != "":
		return &store.Checkout{SuccessURL: f.successURL, CancelURL: f.cancelURL}, nil
	case f.cancelURL != "":
		return nil, usagef(cmd, "--cancel-url needs --success-url")
	}
	return nil, nil
}

// printRegistered prints an order that was registered with checkout, or was
// before. It stays registered, whatever comes of its session.
func (a *app) printRegistered(ctx context.Context, s *store.Store, o store.Order, word string) error {
	known, err := s.FindOrder(ctx, o.Tenant, o.ID)
	if err != nil {
		return err
	}
	opened := true
	if effect := handler.CheckoutEffect(known); effect != "" {
		w, err := a.await(ctx, s, effect)
		switch {
		case err != nil:
			return fmt.Errorf("order %s %s, but: %w", o.ID, word, err)
		case !w.done():
			opened, known.CheckoutURL = false, ""
			defer a.hint("it has no URL yet: %s", w.open())
		default:
			if known, err = s.FindOrder(ctx, o.Tenant, o.ID); err != nil {
				return err
			}
		}
	}
	return a.print(handler.NewCheckoutOrder(known.Order, opened), func(b *bytes.Buffer) { registered(b, known.Order, word) })
}

func (a *app) ordersCancel() *cobra.Command {
	var f orderFlags
	cmd := &cobra.Command{
		Use:   "cancel ORDER",
		Short: "Close an unpaid order",
		Long: `Closes an order that is not paid. Where it could still be paid at Stripe, Stripe
is asked first, by a running serve: what is open there is closed, and an order
that is paid or being paid stays. The command waits for that, for up to 30
seconds; without an answer by then the order closes when there is one. Money
that comes after that is an attention of the order.`,
		Example: "  paidonce orders cancel A1",
		Args:    takes("ORDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, id := cmd.Context(), args[0]
			return a.withStore(ctx, func(s *store.Store) error {
				o, e, err := s.RequestCancel(ctx, f.tenant, id)
				if err != nil || e == nil {
					return a.acted(o, err, "closed")
				}
				w, err := a.await(ctx, s, e.ID)
				if err != nil {
					return err
				}
				if !w.done() {
					return a.print(o, func(b *bytes.Buffer) { fmt.Fprintf(b, "%s is not closed yet, %s\n", clean(id), w.open()) })
				}
				d, err := s.FindOrder(ctx, f.tenant, id)
				return a.acted(d.Order, err, "closed")
			})
		},
	}
	f.registerTenant(cmd)
	return cmd
}
