package main

import (
	"testing"
	"time"
)

func TestTimesAreReadInEveryForm(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct{ in, want string }{
		{"2026-02-28T10:00:00+01:00", "2026-02-28T09:00:00Z"}, {"2026-02-28", "2026-02-28T00:00:00Z"},
		{"36h", "2026-02-28T00:00:00Z"}, {"30d", "2026-01-30T12:00:00Z"}, {"0s", "2026-03-01T12:00:00Z"},
		{"", ""}, {"-1h", ""}, {"-1d", ""}, {"d", ""}, {"1.5d", ""}, {"yesterday", ""}, {"2026-02-30", ""}, {"1969-01-01", ""},
	} {
		got, ok := parseTime(tt.in, now)
		if ok != (tt.want != "") || ok && got.UTC().Format(time.RFC3339) != tt.want {
			t.Errorf("parseTime(%q) = %s, %v; want %q", tt.in, got, ok, tt.want)
		}
	}
}
