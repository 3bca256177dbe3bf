package store_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"paidonce/store"
	"paidonce/store/storetest"
)

// newYear is the first second of 2026, UTC.
const newYear = 1767225600

func ms(seconds int64) store.Time { return store.Time(seconds * 1000) }

// sums writes a line of the books in short.
func sums(s store.BookSum) string {
	return fmt.Sprintf("%s %d %d %d = %d, %d", s.Currency, s.SalesMinor, s.RefundsMinor, s.DisputesMinor, s.NetMinor, s.SuspenseMinor)
}

func fillBooks(t *testing.T, s *store.Store) {
	t.Helper()
	storetest.Register(t, s, "ORD-1", 1250, "eur")
	storetest.Register(t, s, "ORD-2", 500, "jpy")
	storetest.Deliver(t, s,
		intent("evt_1", "pi_1", "succeeded", newYear-1, 1250, ""), // the last second of 2025
		of("evt_2", "payment_intent", "pi_2", newYear, `,"amount":700,"amount_received":700,"status":"succeeded"`),
		of("evt_3", "refund", "re_1", newYear+86399, `,"amount":250,"status":"succeeded","payment_intent":"pi_1"`),
		of("evt_4", "dispute", "dp_1", newYear+86400, `,"amount":1000,"status":"needs_response","payment_intent":"pi_1",
			"balance_transactions":[{"id":"txn_1","amount":-1000,"currency":"eur"}]`),
		`{"id":"evt_5","object":"event","created":`+fmt.Sprint(newYear+86400)+`,"livemode":false,"type":"payment_intent.succeeded","data":{"object":
			{"id":"pi_3","object":"payment_intent","amount":500,"amount_received":500,"currency":"jpy","status":"succeeded","metadata":{"order_id":"ORD-2"}}}}`)
}

func TestTheBooksAreSummedByDayAndCurrency(t *testing.T) {
	ctx := context.Background()
	s, _ := storetest.Open(t)
	fillBooks(t, s)
	for _, tt := range []struct {
		name                   string
		since, until           store.Time
		opening, days, closing []string
	}{
		{"all", 0, 0, nil,
			[]string{"2025-12-31 eur 1250 0 0 = 1250, 0", "2026-01-01 eur 0 -250 0 = -250, 700", "2026-01-02 eur 0 0 -1000 = -1000, 0", "2026-01-02 jpy 500 0 0 = 500, 0"},
			[]string{"eur 1250 -250 -1000 = 0, 700", "jpy 500 0 0 = 500, 0"}},
		{"the new year's first day", ms(newYear), ms(newYear + 86400),
			[]string{"eur 1250 0 0 = 1250, 0"}, []string{"2026-01-01 eur 0 -250 0 = -250, 700"}, []string{"eur 1250 -250 0 = 1000, 700"}},
		{"from its second day", ms(newYear + 86400), 0,
			[]string{"eur 1250 -250 0 = 1000, 700"}, []string{"2026-01-02 eur 0 0 -1000 = -1000, 0", "2026-01-02 jpy 500 0 0 = 500, 0"},
			[]string{"eur 1250 -250 -1000 = 0, 700", "jpy 500 0 0 = 500, 0"}},
		{"before everything", 0, ms(newYear - 1), nil, nil, nil},
		{"after everything", ms(newYear + 90000), 0,
			[]string{"eur 1250 -250 -1000 = 0, 700", "jpy 500 0 0 = 500, 0"}, nil, []string{"eur 1250 -250 -1000 = 0, 700", "jpy 500 0 0 = 500, 0"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, err := s.Books(ctx, tt.since, tt.until)
			if err != nil {
				t.Fatal(err)
			}
			var opening, days, closing []string
			for _, x := range b.Opening {
				opening = append(opening, sums(x))
			}
			for _, x := range b.Days {
				days = append(days, x.Date+" "+sums(x.BookSum))
			}
			for _, x := range b.Closing {
				closing = append(closing, sums(x))
			}
			if !slices.Equal(opening, tt.opening) || !slices.Equal(days, tt.days) || !slices.Equal(closing, tt.closing) {
				t.Errorf("opening %q\ndays %q\nclosing %q\nwant\n%q\n%q\n%q", opening, days, closing, tt.opening, tt.days, tt.closing)
			}
		})
	}
}

func TestMoneyThatIsLinkedMovesOutOfSuspense(t *testing.T) {
	s, clock := storetest.Open(t)
	storetest.Deliver(t, s, loose("evt_1", "pi_1", ""))
	clock.Advance(48 * time.Hour)
	storetest.Register(t, s, "ORD-1", 700, "eur", func(n *store.NewOrder) { n.Refs = []string{"pi_1"} })
	b, err := s.Books(context.Background(), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Days) != 2 || sums(b.Days[0].BookSum) != "eur 0 0 0 = 0, 700" || sums(b.Days[1].BookSum) != "eur 700 0 0 = 700, -700" || sums(b.Closing[0]) != "eur 700 0 0 = 700, 0" {
		t.Errorf("days %+v, closing %+v", b.Days, b.Closing)
	}
}

func TestEntriesPageThroughTheBooksAsTheyStoodAtFirst(t *testing.T) {
	ctx := context.Background()
	s, _ := storetest.Open(t)
	fillBooks(t, s)
	var got []string
	for f := (store.EntryFilter{Limit: 2}); ; {
		page, err := s.ListEntries(ctx, f)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Items {
			got = append(got, fmt.Sprintf("%s %s %s %d %s %s", e.Account, e.Object, e.Order, e.AmountMinor, e.Currency, e.Event))
		}
		if f.Cursor == "" { // written while the list is read: older and newer than its place
			storetest.Deliver(t, s, loose("evt_old", "pi_old", ""), of("evt_new", "payment_intent", "pi_new", newYear+99999, `,"amount":1,"amount_received":1,"status":"succeeded"`))
		}
		if f.Cursor = page.NextCursor; f.Cursor == "" {
			break
		}
	}
	want := []string{"sales pi_1 ORD-1 1250 eur evt_1", "suspense pi_2  700 eur evt_2", "refunds re_1 ORD-1 -250 eur evt_3",
		"disputes dp_1 ORD-1 -1000 eur evt_4", "sales pi_3 ORD-2 500 jpy evt_5"}
	if !slices.Equal(got, want) {
		t.Errorf("entries %q; want %q", got, want)
	}
	page, err := s.ListEntries(ctx, store.EntryFilter{Since: ms(newYear), Until: ms(newYear + 86399)})
	if err != nil || len(page.Items) != 1 || page.Items[0].Event != "evt_2" {
		t.Errorf("of one day less a second: %+v, %v; want evt_2", page.Items, err)
	}
	for _, f := range []store.EntryFilter{{Limit: -1}, {Limit: 1001}, {Cursor: "x"}, {Cursor: "MS4y"}, {Cursor: "YS5iLmM"}} {
		_, err := s.ListEntries(ctx, f)
		wantProblem(t, fmt.Sprintf("%+v", f), err, store.CodeInvalid)
	}
}
