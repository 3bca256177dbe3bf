package main

import (
	"bytes"
	"fmt"

	"github.com/spf13/cobra"

	"paidonce/store"
)

// defaultPayloadDays is how long payloads stay once their event is done.
const defaultPayloadDays = 30

func (a *app) purgeCommand() *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "purge",
		Short: "Let go of old payloads",
		Long: `Lets go of the bodies of events that were done with more than payload_days ago, and
of what effects sent and got back. serve does this every hour; this command does
it now. Pending and quarantined events, money that no order claims, and effects
that wait for a person keep theirs.

The rows stay, so that a repeat is known for as long as the database is; so do
facts, orders and books. With --dry-run it only says what would go.`,
		Example: `  paidonce purge --dry-run
  paidonce purge`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.config(overrides{})
			if err != nil {
				return err
			}
			return a.withStore(cmd.Context(), func(s *store.Store) error {
				before := store.PurgeBefore(a.now(), c.payloadDays)
				plan, err := s.PlanPurge(cmd.Context(), before)
				if err != nil {
					return err
				}
				if !dryRun {
					if err := a.purge(cmd, s, before, plan.Payloads+plan.Effects); err != nil {
						return err
					}
				}
				return a.print(plan, func(w *bytes.Buffer) { purgeLines(w, plan, dryRun) })
			})
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only say what would go")
	return cmd
}

func (a *app) purge(cmd *cobra.Command, s *store.Store, before store.Time, total int64) error {
	t := a.tellProgress()
	defer t.end()
	p := s.BeginPurge(before)
	for more := true; more; {
		var err error
		if more, err = p.Step(cmd.Context()); err != nil {
			return fmt.Errorf("purged %d of %d: %w; run it again, it goes on from there", p.Payloads+p.Effects, total, err)
		}
		if t.terminal && !a.json {
			fmt.Fprintf(a.stderr, "\r\x1b[Kpurged %d of %d", p.Payloads+p.Effects, total)
			t.wrote = true
		}
	}
	return nil
}

func purgeLines(w *bytes.Buffer, p store.PurgePlan, dryRun bool) {
	verb := "gone"
	if dryRun {
		verb = "would go"
	}
	oldest := ""
	if p.Oldest != 0 {
		oldest = "the oldest of " + clock(p.Oldest)
	}
	pairs(w, "done before", clock(p.Before),
		"payloads", fmt.Sprintf("%d (%s) %s", p.Payloads, size(p.PayloadBytes), verb), "", oldest,
		"effects' bodies", fmt.Sprintf("%d (%s) %s", p.Effects, size(p.EffectBytes), verb),
		"kept", fmt.Sprintf("%d pending, %d quarantined, %d unlinked, %d done since", p.Kept.Pending, p.Kept.Quarantined, p.Kept.Unlinked, p.Kept.Recent))
	if !p.Shrinks {
		fmt.Fprintln(w, "The file does not shrink: it was made by an older version. Free space in it is used again.")
	}
}
