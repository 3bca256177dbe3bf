package main

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"paidonce/store"
)

func (a *app) stockCommand() *cobra.Command {
	cmd := asGroup(&cobra.Command{
		Use:   "stock",
		Short: "What there is to sell",
		Long: `Counts what there is. A paid order takes its items once; too little of them is an
attention of the order, never a failed payment. A full refund gives them back,
unless [stock] return_on_refund is false. What was never set is not counted.`,
		Example: `  paidonce stock set ebook 100
  paidonce stock list`,
	})
	cmd.AddCommand(a.stockList(), a.stockSet())
	return cmd
}

func (a *app) stockList() *cobra.Command {
	var tenant string
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List what is counted",
		Long:    "Lists what is counted: what is on hand, the last count, and what orders took since.",
		Example: "  paidonce stock list\n  paidonce stock list --json",
		Args:    takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withStore(cmd.Context(), func(s *store.Store) error {
				lines, err := s.ListStock(cmd.Context(), tenant)
				if err != nil {
					return err
				}
				return a.print(store.Page[store.StockLine]{Items: lines}, func(w *bytes.Buffer) { stockTable(w, lines) })
			})
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", "main", "whose stock: a `tenant`")
	return cmd
}

func stockTable(w *bytes.Buffer, lines []store.StockLine) {
	t := table{header: []string{"SKU", ">ON HAND", ">TAKEN", ">COUNTED", "COUNTED AT", "ATTENTION"}}
	for _, l := range lines {
		t.add(l.SKU, count(l.OnHand), count(l.Taken), count(l.Counted), clock(l.CountedAt), strings.Join(l.Attention, " "))
	}
	t.write(w, "")
}

func (a *app) stockSet() *cobra.Command {
	var tenant string
	cmd := &cobra.Command{
		Use:   "set SKU NUMBER",
		Short: "Say how much there is",
		Long: `Says how much of a thing there is now. Orders that are paid from now on take from
it; those that were paid before are in the count already.`,
		Example: "  paidonce stock set ebook 100",
		Args:    takes("SKU", "NUMBER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := strconv.ParseInt(args[1], 10, 64)
			if err != nil {
				return usagef(cmd, "NUMBER must be a whole number")
			}
			return a.withStore(cmd.Context(), func(s *store.Store) error {
				line, err := s.SetStock(cmd.Context(), tenant, args[0], n)
				if err != nil {
					return err
				}
				return a.print(line, func(w *bytes.Buffer) { fmt.Fprintf(w, "%s: %d on hand\n", clean(line.SKU), line.OnHand) })
			})
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", "main", "whose stock: a `tenant`")
	return cmd
}
