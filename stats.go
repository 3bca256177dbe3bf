package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"paidonce/store"
)

func (a *app) statsCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "stats",
		Short:   "Where everything stands",
		Long:    "Counts the events by what came of them and the effects by how they stand, and says how long answers and work took in the last hour.",
		Example: "  paidonce stats\n  paidonce stats --json",
		Args:    takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withStore(cmd.Context(), func(s *store.Store) error {
				st, err := s.Stats(cmd.Context())
				if err != nil {
					return err
				}
				return a.print(st, func(w *bytes.Buffer) { statsLines(w, st) })
			})
		},
	}
}

func statsLines(w *bytes.Buffer, st store.Stats) {
	byVerdict := func(status string) string {
		var parts []string
		total := int64(0)
		for _, v := range slices.Sorted(maps.Keys(st.Events[status])) {
			if n := st.Events[status][v]; n > 0 {
				total += n
				parts = append(parts, fmt.Sprintf("%s %d", v, n))
			}
		}
		if total == 0 {
			return "0"
		}
		return fmt.Sprintf("%d: %s", total, strings.Join(parts, ", "))
	}
	oldest := ""
	if st.OldestPendingSeconds > 0 {
		oldest = fmt.Sprintf("%.1f s", st.OldestPendingSeconds)
	}
	last := func(t *store.Time) string {
		if t == nil {
			return "never"
		}
		return clock(*t)
	}
	took := func(p store.Percentiles) string {
		return fmt.Sprintf("half within %.1f ms, 99 %% within %.1f ms, longest %.1f ms", p.P50, p.P99, p.Max)
	}
	pairs(w,
		"pending", byVerdict("pending"),
		"oldest pending", oldest,
		"done", byVerdict("done"),
		"quarantined", byVerdict("quarantined"),
		"answers (last hour)", took(st.AckMS),
		"receipt to done (last hour)", took(st.ReceiptToDoneMS),
		"effects", effectCounts(st.Effects),
		"last webhook", last(st.LastWebhookAt),
		"last reconcile", last(st.LastReconcile),
	)
}

// effectCounts tells how many effects stand where, in the sequence of their
// life.
func effectCounts(counts map[string]int64) string {
	var parts []string
	total := int64(0)
	for _, status := range effectStatuses {
		if n := counts[status]; n > 0 {
			total += n
			parts = append(parts, fmt.Sprintf("%s %d", status, n))
		}
	}
	if total == 0 {
		return "0"
	}
	return fmt.Sprintf("%d: %s", total, strings.Join(parts, ", "))
}
