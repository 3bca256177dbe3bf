package main

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"paidonce/store"
	"paidonce/store/payment"
)

func (a *app) ordersCommand() *cobra.Command {
	cmd := asGroup(&cobra.Command{
		Use:   "orders",
		Short: "What the shop sells: register, look, correct, send money back",
		Long: `Registers orders and shows what came of them. A payment counts for an order
that is registered; one that came first is found at once when the order is.

Amounts are in major units (12.50), JSON is in minor units (1250).`,
		Example: `  paidonce orders add --id A1 --total 12.50 --currency eur
  paidonce orders list --attention any
  paidonce orders show A1
  paidonce orders refund A1 --amount 12.50`,
	})
	cmd.AddCommand(a.ordersAdd(), a.ordersList(), a.ordersShow(), a.ordersEdit(), a.ordersCheckout(), a.ordersRefund(), a.ordersCancel(),
		a.ordersLink(), a.ordersAccept(), a.ordersAck(), a.ordersFulfil(), a.ordersForget())
	return cmd
}

// orderFlags are the fields of an order on the command line.
type orderFlags struct {
	tenant        string
	id            string
	total         string
	totalMinor    int64
	currency      string
	policy        string
	allowDiscount bool
	paymentIntent string
	refs          []string
	items         []string
	email, name   string
	successURL    string
	cancelURL     string
	meta          []string
	clear         []string
}

// register adds the flags that orders add and orders edit share.
func (f *orderFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.registerTenant(cmd)
	flags.StringVar(&f.total, "total", "", "the total, as an `AMOUNT` in major units such as 12.50")
	flags.Int64Var(&f.totalMinor, "total-minor", 0, "the total in minor units such as 1250, in place of --total")
	flags.StringVar(&f.currency, "currency", "", "the currency, a three-letter `CODE`")
	flags.StringVar(&f.policy, "policy", "", "the `policy` for the amount: exact (default), at_least, any or subtotal")
	flags.BoolVar(&f.allowDiscount, "allow-discount", false, "with subtotal: accept discounts given at checkout")
	flags.StringArrayVar(&f.items, "item", nil, "an item as `SKU:QUANTITY[:UNIT]`, UNIT its price in major units; may be repeated")
	flags.StringVar(&f.email, "email", "", "the customer's e-mail `address`")
	flags.StringVar(&f.name, "name", "", "the customer's `name`")
	flags.StringArrayVar(&f.meta, "meta", nil, "metadata as `KEY=VALUE`; may be repeated")
	oneOf(cmd, "policy", string(payment.PolicyExact), string(payment.PolicyAtLeast), string(payment.PolicyAny), string(payment.PolicySubtotal))
}

func (f *orderFlags) registerTenant(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.tenant, "tenant", "main", "the order's `tenant`")
}

// order turns the flags that were given into fields; the others stay absent.
// currency is that of an order that is edited, where no flag says another.
func (f *orderFlags) order(cmd *cobra.Command, currency string) (store.NewOrder, error) {
	given := cmd.Flags().Changed
	n := store.NewOrder{ID: f.id, Tenant: f.tenant, Refs: f.refs}
	if given("currency") {
		currency = f.currency
	}
	switch {
	case given("total") && given("total-minor"):
		return n, usagef(cmd, "--total and --total-minor say the same: give one")
	case given("total-minor"):
		n.TotalMinor = &f.totalMinor
	case given("total"):
		minor, err := payment.ParseMajor(f.total, currency)
		if err != nil {
			return n, usagef(cmd, "--total: %s", err)
		}
		n.TotalMinor = &minor
	}
	if given("currency") || n.TotalMinor != nil {
		// An amount means nothing without the currency it was typed for.
		n.Currency = &currency
	}
	if given("policy") {
		n.AmountPolicy = &f.policy
	}
	if given("allow-discount") {
		n.AllowDiscount = &f.allowDiscount
	}
	if given("payment-intent") {
		n.PaymentIntent = &f.paymentIntent
	}
	if given("email") || given("name") {
		n.Customer = &store.Customer{Email: f.email, Name: f.name}
	}
	for _, text := range f.items {
		item, err := parseItem(text, currency)
		if err != nil {
			return n, usagef(cmd, "--item: %s", err)
		}
		n.Items = append(n.Items, item)
	}
	for _, text := range f.meta {
		key, value, ok := strings.Cut(text, "=")
		if !ok || key == "" {
			return n, usagef(cmd, "--meta must be KEY=VALUE")
		}
		if n.Metadata == nil {
			n.Metadata = map[string]string{}
		}
		n.Metadata[key] = value
	}
	return n, f.clearInto(cmd, &n)
}

// clearInto empties what --clear names.
func (f *orderFlags) clearInto(cmd *cobra.Command, n *store.NewOrder) error {
	for _, what := range f.clear {
		given := false
		switch what {
		case "items":
			given, n.Items = n.Items != nil, []store.Item{}
		case "customer":
			given, n.Customer = n.Customer != nil, &store.Customer{}
		case "metadata":
			given, n.Metadata = n.Metadata != nil, map[string]string{}
		default:
			return usagef(cmd, "--clear must be items, customer or metadata")
		}
		if given {
			return usagef(cmd, "--clear %s and a flag that sets it contradict each other", what)
		}
	}
	return nil
}

// parseItem reads SKU:QUANTITY[:UNIT]. A SKU may hold colons itself.
func parseItem(text, currency string) (store.Item, error) {
	// A SKU with a colon is for the API: here 0:1 must be a mistake and not
	// another SKU.
	parts := strings.Split(text, ":")
	if len(parts) == 2 || len(parts) == 3 {
		quantity, err := strconv.ParseInt(parts[1], 10, 64)
		if err == nil && quantity >= 1 && quantity <= math.MaxInt32 && parts[0] != "" {
			item := store.Item{SKU: parts[0], Quantity: quantity}
			if len(parts) == 3 {
				if item.UnitMinor, err = payment.ParseMajor(parts[2], currency); err != nil {
					return item, fmt.Errorf("its unit price: %w", err)
				}
			}
			return item, nil
		}
	}
	return store.Item{}, fmt.Errorf("must be SKU:QUANTITY or SKU:QUANTITY:UNIT, such as ebook:2:6.25")
}

func (a *app) ordersAdd() *cobra.Command {
	var f orderFlags
	cmd := &cobra.Command{
		Use:   "add",
		Short: "Register an order",
		Long: `Registers an order. The same order again is no error and changes nothing; the
same id with other content is refused.

With --success-url, a running serve opens a page at Stripe where the order is
paid; the command waits for its URL, for up to 30 seconds.`,
		Example: `  paidonce orders add --id A1 --total 12.50 --currency eur
  paidonce orders add --total 25 --currency usd --item ebook:2:12.50 --email ann@example.com
  paidonce orders add --id A2 --total-minor 1250 --currency eur --ref cs_test_a1b2 --meta channel=web
  paidonce orders add --id A3 --total 12.50 --currency eur --success-url https://shop.example/thanks`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if given := cmd.Flags().Changed; (!given("total") && !given("total-minor")) || !given("currency") {
				return usagef(cmd, "--total and --currency are needed")
			}
			n, err := f.order(cmd, "")
			if err != nil {
				return err
			}
			if n.Checkout, err = f.checkout(cmd); err != nil {
				return err
			}
			return a.withStore(cmd.Context(), func(s *store.Store) error {
				o, created, err := s.RegisterOrder(cmd.Context(), n)
				if err != nil {
					return err
				}
				word := "registered"
				if !created {
					word = "was registered before"
				}
				if n.Checkout != nil {
					return a.printRegistered(cmd.Context(), s, o, word)
				}
				return a.print(o, func(w *bytes.Buffer) { registered(w, o, word) })
			})
		},
	}
	f.register(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.id, "id", "", "the order's `id` (made if absent)")
	flags.StringVar(&f.paymentIntent, "payment-intent", "", "take money from this payment intent `pi_…` only")
	flags.StringArrayVar(&f.refs, "ref", nil, "a Stripe `id` that belongs to the order; may be repeated")
	f.registerCheckout(cmd)
	return cmd
}

func (a *app) ordersEdit() *cobra.Command {
	var f orderFlags
	cmd := &cobra.Command{
		Use:   "edit ORDER",
		Short: "Correct an unpaid order",
		Long: `Corrects an order that is not paid: what a flag names is replaced as a whole,
the rest stays. What has arrived for it is judged again at once.`,
		Example: `  paidonce orders edit A1 --total 13.50
  paidonce orders edit A1 --policy at_least
  paidonce orders edit A1 --item ebook:1:13.50 --clear metadata`,
		Args: takes("ORDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(cmd.Context(), func(s *store.Store) error {
				now, err := s.FindOrder(cmd.Context(), f.tenant, args[0])
				if err != nil {
					return err
				}
				n, err := f.order(cmd, now.Currency)
				if err != nil {
					return err
				}
				if n.TotalMinor == nil && n.Currency == nil && n.AmountPolicy == nil && n.AllowDiscount == nil &&
					n.Items == nil && n.Customer == nil && n.Metadata == nil {
					return usagef(cmd, "nothing to correct: name it with a flag")
				}
				// --email alone must not lose the name, nor the other way round.
				email, name := cmd.Flags().Changed("email"), cmd.Flags().Changed("name")
				if name && !email {
					n.Customer.Email = now.Customer.Email
				}
				if email && !name {
					n.Customer.Name = now.Customer.Name
				}
				o, err := s.EditOrder(cmd.Context(), f.tenant, args[0], n)
				return a.acted(o, err, "corrected")
			})
		},
	}
	f.register(cmd)
	cmd.Flags().StringArrayVar(&f.clear, "clear", nil, "empty this `part`: items, customer or metadata; may be repeated")
	return cmd
}

func (a *app) ordersLink() *cobra.Command {
	var f orderFlags
	cmd := &cobra.Command{
		Use:   "link ORDER OBJECT",
		Short: "Tie a payment to an order",
		Long: `Ties the payment that OBJECT belongs to (a session, payment intent, charge,
refund or dispute) to an order. A person's word outranks what ids and names say.`,
		Example: "  paidonce orders link A1 pi_3Qabc",
		Args:    takes("ORDER", "OBJECT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(cmd.Context(), func(s *store.Store) error {
				o, err := s.LinkOrder(cmd.Context(), f.tenant, args[0], args[1])
				return a.acted(o, err, "linked")
			})
		},
	}
	f.registerTenant(cmd)
	return cmd
}

func (a *app) ordersAccept() *cobra.Command {
	var f orderFlags
	cmd := &cobra.Command{
		Use:   "accept ORDER PAYMENT",
		Short: "Count a payment as it is",
		Long: `Counts a payment of the order as it is, whatever amount the order asked for,
in the currency that it asked for.
PAYMENT is the id that orders show lists under payments.`,
		Example: "  paidonce orders accept A1 pi_3Qabc",
		Args:    takes("ORDER", "PAYMENT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(cmd.Context(), func(s *store.Store) error {
				o, err := s.AcceptPayment(cmd.Context(), f.tenant, args[0], args[1])
				return a.acted(o, err, "accepted")
			})
		},
	}
	f.registerTenant(cmd)
	return cmd
}

func registered(w *bytes.Buffer, o store.Order, word string) {
	fmt.Fprintf(w, "%s %s\n", clean(o.ID), word)
	orderLines(w, o)
}

// acted tells how an order stands after a person's act.
func (a *app) acted(o store.Order, err error, word string) error {
	if err != nil {
		return err
	}
	return a.print(o, func(w *bytes.Buffer) { registered(w, o, word) })
}
