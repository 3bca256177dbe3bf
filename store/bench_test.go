package store

import (
	"fmt"
	"testing"

	"paidonce/store/payment"
)

// BenchmarkClaim claims and finishes 64 events on a file with many done ones: a
// claim must cost the same at any number.
func BenchmarkClaim(b *testing.B) {
	for _, done := range []int{1_000, 100_000} {
		b.Run(fmt.Sprintf("%d done", done), func(b *testing.B) {
			s := openTest(b)
			for from := 0; from < done; from += 1000 {
				err := s.w.write(b.Context(), "fill", func(t *Tx) error {
					for i := range 1000 {
						e := newEvent(fmt.Sprintf("evt_done_%d", from+i))
						e.Ignored = "done"
						if _, err := addEvent(t, e); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
			}
			n := 0
			for b.Loop() {
				b.StopTimer()
				for range 64 {
					n++
					mustAdd(b, s, fmt.Sprintf("evt_%d", n))
				}
				b.StartTimer()
				for _, c := range mustClaim(b, s, 64) {
					b.StopTimer()
					if err := end(s, c); err != nil {
						b.Fatal(err)
					}
					b.StartTimer()
				}
			}
		})
	}
}

// BenchmarkDrain works off a backlog of paid orders, decode and all.
func BenchmarkDrain(b *testing.B) {
	s := openTest(b)
	total, currency := int64(1250), "eur"
	b.StopTimer()
	for i := range b.N {
		id := fmt.Sprintf("ORD-%d", i)
		if _, _, err := s.RegisterOrder(b.Context(), NewOrder{ID: id, TotalMinor: &total, Currency: &currency}); err != nil {
			b.Fatal(err)
		}
		e := newEvent(fmt.Sprintf("evt_%d", i))
		e.Body = fmt.Appendf(nil, `{"id":%q,"object":"event","created":1750000000,"livemode":false,"type":"payment_intent.succeeded",
			"data":{"object":{"id":"pi_%d","object":"payment_intent","amount":1250,"amount_received":1250,"currency":"eur",
			"status":"succeeded","metadata":{"order_id":%q}}}}`, e.ID, i, id)
		if _, err := s.AddEvent(b.Context(), e); err != nil {
			b.Fatal(err)
		}
	}
	b.StartTimer()
	for done := 0; done < b.N; {
		claims, err := s.ClaimEvents(b.Context(), 64)
		if err != nil || len(claims) == 0 {
			b.Fatal(len(claims), err)
		}
		events := make([]Decoded, len(claims))
		for i, c := range claims {
			events[i] = Decoded{Claim: c, Event: payment.Decode(c.Body)}
		}
		for _, err := range s.ApplyEvents(b.Context(), events) {
			if err != nil {
				b.Fatal(err)
			}
		}
		done += len(claims)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkClaimEffects claims and finishes 64 effects on a file with many done
// ones, and with many that wait behind one that is put off: a claim must cost
// the same beside any number of the former, and bear the latter.
func BenchmarkClaimEffects(b *testing.B) {
	for _, size := range []struct{ done, blocked int }{{1_000, 0}, {100_000, 0}, {1_000, 10_000}} {
		b.Run(fmt.Sprintf("%d done, %d blocked", size.done, size.blocked), func(b *testing.B) {
			s := openTest(b)
			n := 0
			fill := func(count int, subject func(i int) string, status string, due any) {
				for from := 0; from < count; from += 1000 {
					err := s.w.write(b.Context(), "fill", func(t *Tx) error {
						for i := from; i < min(from+1000, count); i++ {
							n++
							doneAt := any(nil)
							if status == "done" {
								doneAt = t.now
							}
							if _, err := t.insert(`INSERT INTO effects (subject, operation, target, kind, key, body, status, reason, due_at, occurred_at, created_at, done_at)
								VALUES (?, ?, 'app', 'http', ?, x'7b7d', ?, 'a benchmark', ?, ?, ?, ?)`,
								subject(i), fmt.Sprint("alert.", n), fmt.Sprint(n), status, due, t.now, t.now, doneAt); err != nil {
								return err
							}
						}
						return nil
					})
					if err != nil {
						b.Fatal(err)
					}
				}
			}
			own := func(i int) string { return fmt.Sprint("alert:", n) }
			fill(size.done, own, "done", nil)
			fill(min(size.blocked, 10), func(i int) string { return fmt.Sprint("alert:lane", i) }, "pending", At(s.opt.Now())+3_600_000)
			fill(size.blocked, func(i int) string { return fmt.Sprint("alert:lane", i%10) }, "pending", At(s.opt.Now())-1)
			for b.Loop() {
				b.StopTimer()
				fill(64, own, "pending", At(s.opt.Now()))
				b.StartTimer()
				claims, err := s.ClaimEffects(b.Context(), "app", 64)
				if err != nil || len(claims) != 64 {
					b.Fatal(len(claims), err)
				}
				b.StopTimer()
				for _, c := range claims {
					if err := s.FinishEffect(b.Context(), c, Answer{Outcome: OutcomeDone}); err != nil {
						b.Fatal(err)
					}
				}
				b.StartTimer()
			}
		})
	}
}
