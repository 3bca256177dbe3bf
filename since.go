package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"paidonce/store"
)

// span is a time that --since and --until cut out; both ends may be open.
type span struct{ sinceText, untilText string }

func (s *span) register(cmd *cobra.Command, what string) {
	cmd.Flags().StringVar(&s.sinceText, "since", "", "only "+what+" from this `time` on: RFC 3339, a date (UTC), or a duration ago such as 36h or 30d")
	cmd.Flags().StringVar(&s.untilText, "until", "", "only "+what+" before this `time`")
}

// read returns both ends; 0 is open.
func (s *span) read(cmd *cobra.Command, now time.Time) (since, until store.Time, err error) {
	for _, f := range []struct {
		flag, text string
		to         *store.Time
	}{{"since", s.sinceText, &since}, {"until", s.untilText, &until}} {
		if f.text == "" {
			continue
		}
		t, ok := parseTime(f.text, now)
		if !ok {
			return 0, 0, usagef(cmd, "--%s must be a time such as 2026-11-30T12:00:00Z, a date or a duration such as 36h", f.flag)
		}
		*f.to = store.At(t)
	}
	if since != 0 && until != 0 && until <= since {
		return 0, 0, usagef(cmd, "--until must be after --since")
	}
	return since, until, nil
}

// parseTime reads RFC 3339, a date in UTC, or how long before now. A day is 24
// hours, which the clock of no shop changes in UTC.
func parseTime(text string, now time.Time) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, t.UnixMilli() > 0
		}
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		return now.AddDate(0, 0, -int(n)), err == nil
	}
	d, err := time.ParseDuration(text)
	return now.Add(-d), err == nil && d >= 0
}
