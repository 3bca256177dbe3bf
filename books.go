package main

import (
	"bytes"
	"encoding/csv"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"paidonce/store"
	"paidonce/store/payment"
)

func (a *app) booksCommand() *cobra.Command {
	var times span
	var asCSV bool
	cmd := &cobra.Command{
		Use:   "books",
		Short: "What came in and went out, by day and currency",
		Long: `Sums the books by UTC day and currency. Net is sales, refunds and disputes
together; money in suspense is no order's, and stands apart. Opening is all that
occurred before --since, closing is opening and the days together.

With --csv it prints each entry, for a spreadsheet: cells that one would take
for a formula begin with an apostrophe.`,
		Example: `  paidonce books --since 30d
  paidonce books --since 2026-11-01 --until 2026-12-01
  paidonce books --csv --since 2026-01-01 > 2026.csv`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			since, until, err := times.read(cmd, a.now())
			if err != nil {
				return err
			}
			if asCSV && a.json {
				return usagef(cmd, "--csv and --json contradict each other")
			}
			return a.withStore(cmd.Context(), func(s *store.Store) error {
				if asCSV {
					return a.exportBooks(cmd, s, store.EntryFilter{Since: since, Until: until})
				}
				b, err := s.Books(cmd.Context(), since, until)
				if err != nil {
					return err
				}
				return a.print(b, func(w *bytes.Buffer) { bookLines(w, b) })
			})
		},
	}
	times.register(cmd, "what occurred")
	cmd.Flags().BoolVar(&asCSV, "csv", false, "print every entry, as CSV")
	return cmd
}

func bookLines(w *bytes.Buffer, b store.Books) {
	t := table{header: []string{"DAY", ">SALES", ">REFUNDS", ">DISPUTES", ">NET", ">IN SUSPENSE"}}
	line := func(name string, s store.BookSum) {
		money := func(minor int64) string { return payment.FormatMinor(minor, s.Currency) }
		t.add(name, money(s.SalesMinor), money(s.RefundsMinor), money(s.DisputesMinor), money(s.NetMinor), money(s.SuspenseMinor))
	}
	for _, s := range b.Opening {
		line("opening", s)
	}
	for _, d := range b.Days {
		line(d.Date, d.BookSum)
	}
	for _, s := range b.Closing {
		line("closing", s)
	}
	t.write(w, "")
}

// exportBooks prints the entries page by page: a year of them need not fit into
// memory, nor hold the file open.
func (a *app) exportBooks(cmd *cobra.Command, s *store.Store, f store.EntryFilter) error {
	w := newBookWriter(a.stdout)
	for {
		page, err := s.ListEntries(cmd.Context(), f)
		if err != nil {
			return err
		}
		if err := w.write(page.Items); err != nil {
			return err
		}
		if f.Cursor = page.NextCursor; f.Cursor == "" {
			return nil
		}
	}
}

// bookWriter writes entries as CSV.
type bookWriter struct {
	csv     *csv.Writer
	started bool
}

func newBookWriter(w io.Writer) *bookWriter { return &bookWriter{csv: csv.NewWriter(w)} }

func (b *bookWriter) write(entries []store.BookEntry) error {
	if !b.started {
		b.started = true
		_ = b.csv.Write([]string{"entry", "occurred_at", "recorded_at", "account", "currency", "amount", "amount_minor",
			"tenant", "order", "object", "event", "scope"}) // Error tells
	}
	for _, e := range entries {
		// An amount is a number for whoever adds it up: no currency beside it.
		amount, _, _ := strings.Cut(payment.FormatMinor(e.AmountMinor, e.Currency), " ")
		_ = b.csv.Write([]string{count(e.Row), e.OccurredAt.String(), e.RecordedAt.String(), harmless(e.Account), harmless(e.Currency),
			amount, count(e.AmountMinor), harmless(e.Tenant), harmless(e.Order), harmless(e.Object), harmless(e.Event), harmless(e.Scope)})
	}
	b.csv.Flush()
	return b.csv.Error()
}

// harmless makes a text cell one that no spreadsheet takes for a formula: what
// a sender or a buyer named must not run at whoever opens the file. It is not
// for numbers, which may begin with a minus.
func harmless(cell string) string {
	if cell != "" && strings.ContainsRune("=+-@\t\r\n", rune(cell[0])) {
		return "'" + cell
	}
	return cell
}
