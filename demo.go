package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
)

// demoCommand shows what the program promises: it stops the real thing at the
// points of the failure table (design.md §8) and tells what became of it.
func (a *app) demoCommand() *cobra.Command {
	var once bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show what happens when things go wrong",
		Long: `Starts the real service on a temporary file with a secret of its own, registers
orders, and makes go wrong what goes wrong: forged events, repeats, lost
answers, kills in the middle of a transaction and in the middle of a call,
wrong amounts, events out of order, a receiver that makes one wait, a locked
file, a full disk. All of it through real HTTP and with real kills; Stripe's API
and the shop's app are small servers beside it. One line tells what was expected
and what happened.

It needs no account, no key and no network, and leaves nothing behind. It exits
with 1 if anything came out otherwise than expected.`,
		Example: `  paidonce demo
  paidonce demo --once --json`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.demo(cmd.Context()) },
	}
	// There are no pages to stay up for yet: with and without it the demo ends
	// when the table is done.
	cmd.Flags().BoolVar(&once, "once", false, "exit when the table is done, also on a terminal")
	return cmd
}

// demoRow is one row of the failure table and what became of it.
type demoRow struct {
	Situation string `json:"situation"`
	Expected  string `json:"expected"`
	Happened  string `json:"happened"`
	OK        bool   `json:"ok"`
	MS        int64  `json:"ms"`

	run func(ctx context.Context, d *demo) (happened string, ok bool, err error)
}

// demo runs the table.
func (a *app) demo(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "paidonce-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	d, err := newDemo(a, dir)
	if err != nil {
		return err
	}
	defer d.stop()
	if d.world, err = newDemoWorld(a.now); err != nil {
		return err
	}
	defer d.world.end()
	if err := d.world.use(d); err != nil {
		return err
	}
	if err := d.start(ctx, demoChild{}); err != nil {
		return fmt.Errorf("start the service: %w", err)
	}
	patience := &demoPatience{}
	patienceCtx, giveUp := context.WithCancel(ctx)
	patience.begin(patienceCtx, a, dir)
	defer func() {
		giveUp()
		<-patience.ended
	}()
	if !a.json {
		fmt.Fprintf(a.stdout, "The real service on a temporary file, events signed as Stripe signs them, real kills;\nStripe's API and the shop's app are small servers beside it.\n\n")
	}
	failed := 0
	rows := demoRows(patience)
	for i := range rows {
		r := &rows[i]
		start := a.now()
		r.Happened, r.OK, err = r.run(ctx, d)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			r.Happened, r.OK = err.Error(), false
		}
		r.MS = a.now().Sub(start).Milliseconds()
		if !r.OK {
			failed++
		}
		if !a.json {
			mark := "ok  "
			if !r.OK {
				mark = "FAIL"
			}
			fmt.Fprintf(a.stdout, "%s %5s  %s: %s → %s\n", mark, (time.Duration(r.MS) * time.Millisecond).Round(10*time.Millisecond), r.Situation, r.Expected, r.Happened)
		}
	}
	err = a.print(rows, func(w *bytes.Buffer) {
		fmt.Fprintf(w, "\n%d of %d as expected. %d kills, and the books still say what was paid.\n", len(rows)-failed, len(rows), d.kills)
	})
	if failed > 0 {
		err = errors.Join(err, fmt.Errorf("demo: %d of %d rows came out otherwise than expected", failed, len(rows)))
	}
	return err
}
