package main

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"paidonce/store"
	"paidonce/store/payment"
)

func (a *app) eventsExplain() *cobra.Command {
	var scope string
	cmd := &cobra.Command{
		Use:   "explain EVENT",
		Short: "Tell why an event stands where it does",
		Long: `Tells which rule gives an event its verdict, what speaks for which order, which
facts of its payment stand, and what a requeue would do today, under today's
configuration. It tries that out and takes it back: nothing changes.`,
		Example: `  paidonce events explain evt_1Abc
  paidonce events explain evt_1Abc --json`,
		Args: takes("EVENT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(cmd.Context(), func(s *store.Store) error {
				x, err := s.ExplainEvent(cmd.Context(), scope, args[0])
				if err != nil {
					return err
				}
				return a.print(x, func(w *bytes.Buffer) { explanation(w, x) })
			})
		},
	}
	scopeFlag(cmd, &scope)
	return cmd
}

// explanation tells x in words.
func explanation(w *bytes.Buffer, x store.Explanation) {
	fmt.Fprintf(w, "%s is %s, %s: %s\n", clean(x.Event.ID), x.Event.Status, x.Event.Verdict, clean(x.Rule))
	watched := ""
	if x.Watched {
		watched = "yes: nobody has linked or dismissed it"
	}
	pairs(w,
		"type", x.Event.Type,
		"reason", x.Event.Reason,
		"order", x.Event.Order,
		"last error", x.Event.LastError,
		"to look at", watched,
	)
	section(w, "what speaks for an order", len(x.NamedBy), func(t *table) {
		for _, text := range x.NamedBy {
			t.add(text)
		}
	}, "WHAT")
	section(w, "facts of its payment", len(x.Facts), func(t *table) {
		for _, f := range x.Facts {
			amount := ""
			if f.Fact.Snapshot.Amount.Known {
				amount = payment.FormatMinor(f.Fact.Snapshot.Amount.Minor, f.Fact.Snapshot.Currency)
			}
			t.add(f.ID, string(f.Kind), f.Fact.Snapshot.Status, amount, f.Fact.Rank.Event)
		}
	}, "OBJECT", "KIND", "STATUS", ">AMOUNT", "LATEST EVENT")
	fmt.Fprintf(w, "\nrun again today\n")
	today(w, x.Today)
}

func today(w *bytes.Buffer, p store.Preview) {
	switch {
	case !p.Possible:
		fmt.Fprintln(w, "  it cannot: its payload was purged, and its facts stand")
		return
	case p.Failure != "":
		fmt.Fprintf(w, "  it would fail: %s\n", clean(p.Failure))
		return
	case !p.Changes:
		fmt.Fprintln(w, "  nothing would change")
		return
	}
	said := fmt.Sprintf("the event would be %s, %s", p.Status, p.Verdict)
	if p.Reason != "" {
		said += ": " + p.Reason
	}
	fmt.Fprintf(w, "  %s\n", clean(said))
	for _, o := range p.Orders {
		fmt.Fprintf(w, "  order %s: %s > %s, received %s > %s, attention %s > %s\n", clean(o.Order),
			cmp.Or(o.StatusWas, "not there"), o.Status,
			payment.FormatMinor(o.ReceivedMinorWas, o.Currency), payment.FormatMinor(o.ReceivedMinor, o.Currency),
			or(strings.Join(o.AttentionWas, " "), "none"), or(strings.Join(o.Attention, " "), "none"))
	}
	for _, e := range p.Entries {
		fmt.Fprintf(w, "  entry: %s %s for %s\n", e.Account, payment.FormatMinor(e.AmountMinor, e.Currency), clean(e.Object))
	}
	for _, o := range p.Operations {
		fmt.Fprintf(w, "  operation: %s\n", clean(o.Name))
	}
	for _, m := range p.Stock {
		if m.Quantity < 0 {
			fmt.Fprintf(w, "  stock: gives back %d × %s\n", -m.Quantity, clean(m.SKU))
		} else {
			fmt.Fprintf(w, "  stock: takes %d × %s\n", m.Quantity, clean(m.SKU))
		}
	}
}
