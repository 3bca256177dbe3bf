package stripefake

import (
	"sync"
	"testing"
	"time"
)

func TestTheBackoffOfDeliveriesDoublesToFiveSeconds(t *testing.T) {
	var p post
	p.init(&sync.Mutex{}, DeliveryConfig{})
	for attempt, want := range map[int]time.Duration{
		1: 100 * time.Millisecond, 2: 200 * time.Millisecond, 6: 3200 * time.Millisecond, 7: 5 * time.Second, 1000: 5 * time.Second,
	} {
		if got := p.cfg.Backoff(attempt); got != want {
			t.Errorf("after attempt %d: %s, want %s", attempt, got, want)
		}
	}
}

func TestMajorUnits(t *testing.T) {
	for _, tt := range []struct {
		name     string
		minor    int64
		currency string
		want     string
	}{
		{"two decimals", 1205, "eur", "12.05 EUR"},
		{"none", 500, "jpy", "500 JPY"},
		{"three", 12340, "kwd", "12.340 KWD"},
		{"krona are sent with two", 500, "isk", "5.00 ISK"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := majorUnits(tt.minor, tt.currency); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}
