package store

import (
	"math"
	"testing"
	"time"
)

// at is a number of milliseconds after the plan began.
const planStart = Time(1_800_000_000_000)

func after(d time.Duration) Time { return planStart + Time(d.Milliseconds()) }

func TestThePlanIsTheDocumentedOne(t *testing.T) {
	want := []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second,
		5 * time.Minute, 10 * time.Minute, 20 * time.Minute, 40 * time.Minute, time.Hour, time.Hour, time.Hour}
	for i, w := range want {
		if got := retryWait(int64(i + 1)); got != w {
			t.Errorf("after failure %d: %v; want %v", i+1, got, w)
		}
	}
	// cases.md B43: nothing overflows, and nothing becomes a hot loop.
	for _, n := range []int64{0, -1, 33, 40, 63, 64, 65, 200, math.MaxInt64, math.MinInt64} {
		if got := retryWait(n); got < 500*time.Millisecond || got > time.Hour {
			t.Errorf("after failure %d: %v", n, got)
		}
	}
	for range 1000 {
		if got := spread(time.Hour); got < time.Hour || got > 66*time.Minute {
			t.Fatalf("an hour is spread to %v", got)
		}
	}
}

func TestAnAnswerDecidesWhatHappensNext(t *testing.T) {
	hour := time.Hour
	for _, tt := range []struct {
		name    string
		was     effectState
		answer  Answer
		now     time.Duration // after the plan began
		status  string
		due     time.Duration // after now, at least; -1 is none
		most    time.Duration // after now, at most; 0 is due and a tenth
		reason  string
		lookUp  bool
		gen     int64
		failure int64
	}{
		{name: "done is done", was: effectState{kind: KindHTTP, failures: 3, lastError: "timeout"}, answer: Answer{Outcome: OutcomeDone}, status: "done", due: -1},
		{name: "a refusal ends it", was: effectState{kind: KindHTTP}, answer: Answer{Outcome: OutcomeRefused, Code: "gone"}, status: "failed", due: -1, reason: "refused: gone"},
		{name: "the first failure waits half a second", was: effectState{kind: KindHTTP}, answer: Answer{Outcome: OutcomeAgain}, status: "pending", due: 500 * time.Millisecond, failure: 1},
		{name: "the eighth waits five minutes", was: effectState{kind: KindHTTP, failures: 7}, answer: Answer{Outcome: OutcomeAgain}, now: hour, status: "pending", due: 5 * time.Minute, failure: 8},
		{name: "Retry-After wins over a shorter plan", was: effectState{kind: KindHTTP}, answer: Answer{Outcome: OutcomeAgain, RetryAfter: 2 * time.Minute}, status: "pending", due: 2 * time.Minute, failure: 1},
		{name: "and over a longer one", was: effectState{kind: KindHTTP, failures: 12}, answer: Answer{Outcome: OutcomeAgain, RetryAfter: 90 * time.Second}, status: "pending", due: 90 * time.Second, failure: 13},
		{name: "but no receiver makes us wait more than an hour", was: effectState{kind: KindHTTP}, answer: Answer{Outcome: OutcomeAgain, RetryAfter: math.MaxInt64}, status: "pending", due: hour, most: hour, failure: 1},
		{name: "after 72 hours it is given up", was: effectState{kind: KindHTTP, failures: 80}, answer: Answer{Outcome: OutcomeAgain}, now: 72 * hour, status: "failed", due: -1, reason: "given up after 72 hours", failure: 81},
		{name: "and not a second before", was: effectState{kind: KindHTTP, failures: 80}, answer: Answer{Outcome: OutcomeAgain}, now: 72*hour - time.Second, status: "pending", due: hour, failure: 81},
		{name: "an http call of unknown outcome is only another failure", was: effectState{kind: KindHTTP}, answer: Answer{Outcome: OutcomeUnknown}, status: "pending", due: 500 * time.Millisecond, failure: 1},

		{name: "a mail of unknown outcome comes once more after a quarter of an hour", was: effectState{kind: KindEmail, triedAt: planStart}, answer: Answer{Outcome: OutcomeUnknown}, status: "unknown", due: 15 * time.Minute},
		{name: "but no third time", was: effectState{kind: KindEmail, triedAt: planStart, doubts: 1}, answer: Answer{Outcome: OutcomeUnknown}, status: "unknown", due: -1,
			reason: "sent twice with an unknown outcome: `effects retry` sends it once more, `effects resolve` says what became of it"},
		{name: "a mail that was put off is only put off", was: effectState{kind: KindEmail, triedAt: planStart}, answer: Answer{Outcome: OutcomeAgain}, status: "pending", due: 500 * time.Millisecond, failure: 1},
		{name: "a command of unknown outcome waits for a person", was: effectState{kind: KindExec}, answer: Answer{Outcome: OutcomeUnknown}, status: "held", due: -1,
			reason: "the command may have done its work: `effects retry` runs it again, `effects resolve` says what became of it"},

		{name: "Stripe: a lost answer keeps its key", was: effectState{kind: KindStripe, firstTriedAt: planStart}, answer: Answer{Outcome: OutcomeAgain}, status: "pending", due: 500 * time.Millisecond, gen: 1, failure: 1},
		{name: "Stripe: a 500 is looked up", was: effectState{kind: KindStripe, firstTriedAt: planStart}, answer: Answer{Outcome: OutcomeUnknown}, status: "unknown", due: time.Second, lookUp: true, gen: 1, failure: 1},
		{name: "Stripe: a look-up that fails is a look-up again", was: effectState{kind: KindStripe, firstTriedAt: planStart, lookUp: true, failures: 1}, answer: Answer{Outcome: OutcomeAgain}, status: "unknown", due: time.Second, lookUp: true, gen: 1, failure: 2},
		{name: "Stripe: after 23 hours the key is not trusted any more", was: effectState{kind: KindStripe, firstTriedAt: planStart, failures: 30}, answer: Answer{Outcome: OutcomeAgain}, now: 23 * hour, status: "unknown", due: hour, lookUp: true, gen: 1, failure: 31},
		{name: "Stripe: nor when the next try would come after them", was: effectState{kind: KindStripe, firstTriedAt: planStart, failures: 30}, answer: Answer{Outcome: OutcomeAgain}, now: 22*hour + time.Minute, status: "unknown", due: hour, lookUp: true, gen: 1, failure: 31},
		{name: "Stripe: not found once proves nothing", was: effectState{kind: KindStripe, firstTriedAt: planStart, lookUp: true, failures: 1}, answer: Answer{Outcome: OutcomeAbsent}, status: "unknown", due: 10 * time.Second, lookUp: true, gen: 1},
		{name: "Stripe: not found twice is the next generation, at once", was: effectState{kind: KindStripe, firstTriedAt: planStart, lookUp: true, doubts: 1}, answer: Answer{Outcome: OutcomeAbsent}, status: "pending", due: 0, gen: 2},
		{name: "Stripe: what cannot be looked up for 72 hours waits for a person", was: effectState{kind: KindStripe, firstTriedAt: planStart, lookUp: true, failures: 90}, answer: Answer{Outcome: OutcomeAgain}, now: 72 * hour, status: "held", due: -1, lookUp: true, gen: 1, failure: 91,
			reason: "its outcome is unknown, and could not be looked up for 72 hours"},
		{name: "an outcome that no rule knows is in doubt", was: effectState{kind: KindExec}, answer: Answer{Outcome: "other"}, status: "held", due: -1,
			reason: "the command may have done its work: `effects retry` runs it again, `effects resolve` says what became of it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.was.status, tt.was.planFrom = "sending", planStart
			if tt.was.generation = 1; tt.gen == 0 {
				tt.gen = 1
			}
			now := after(tt.now)
			got := tt.was.settle(tt.answer, now)
			if got.status != tt.status || got.reason != tt.reason || got.lookUp != tt.lookUp || got.generation != tt.gen || got.failures != tt.failure {
				t.Errorf("%+v; want status %s, reason %q, look-up %v, generation %d, failures %d", got, tt.status, tt.reason, tt.lookUp, tt.gen, tt.failure)
			}
			most := tt.most
			if most == 0 {
				most = tt.due + tt.due/10
			}
			switch due := time.Duration(got.dueAt-now) * time.Millisecond; {
			case tt.due < 0 && got.dueAt != 0:
				t.Errorf("due at %s; want never", got.dueAt)
			case tt.due >= 0 && (due < tt.due || due > most):
				t.Errorf("due in %v; want %v to %v", due, tt.due, most)
			}
			if ended := got.status == "done" || got.status == "failed"; ended != (got.doneAt != 0) {
				t.Errorf("%s, and done at %s", got.status, got.doneAt)
			}
		})
	}
}

func TestAnEffectWhoseProcessDiedIsInDoubt(t *testing.T) {
	hour := time.Hour
	for _, tt := range []struct {
		name   string
		was    effectState
		now    time.Duration
		status string
		due    time.Duration // after the plan began; -1 is none
		lookUp bool
	}{
		{"http: the same key again at once", effectState{kind: KindHTTP}, hour, "unknown", hour, false},
		{"mail: once more, a quarter of an hour after the last", effectState{kind: KindEmail, triedAt: planStart}, time.Second, "unknown", 15 * time.Minute, false},
		{"mail: a person, if that was the second", effectState{kind: KindEmail, triedAt: planStart, doubts: 1}, time.Second, "unknown", -1, false},
		{"exec: a person", effectState{kind: KindExec}, time.Second, "held", -1, false},
		{"Stripe: the same key while it is kept", effectState{kind: KindStripe, firstTriedAt: planStart}, 23*hour - 1, "unknown", 23*hour - 1, false},
		{"Stripe: else a look-up", effectState{kind: KindStripe, firstTriedAt: planStart}, 23 * hour, "unknown", 23 * hour, true},
		{"Stripe: a look-up stays one", effectState{kind: KindStripe, firstTriedAt: planStart, lookUp: true}, hour, "unknown", hour, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.was.status = "sending"
			got := tt.was.doubt(after(tt.now), "the process ended")
			want := Time(0)
			if tt.due >= 0 {
				want = after(tt.due)
			}
			if got.status != tt.status || got.dueAt != want || got.lookUp != tt.lookUp || got.lastError == "" {
				t.Errorf("%+v; want %s due %s, look-up %v, and an error", got, tt.status, want, tt.lookUp)
			}
		})
	}
}

func TestAKeyIsAFunctionOfWhatItStandsFor(t *testing.T) {
	base := effectKey("main", "order:main/ORD-1", "order.paid", "app")
	if again := effectKey("main", "order:main/ORD-1", "order.paid", "app"); again != base {
		t.Errorf("%s and %s", base, again)
	}
	seen := map[string]string{base: "the first"}
	for _, parts := range [][4]string{
		{"other", "order:main/ORD-1", "order.paid", "app"}, {"main", "order:main/ORD-2", "order.paid", "app"},
		{"main", "order:main/ORD-1", "order.refunded", "app"}, {"main", "order:main/ORD-1", "order.paid", "app2"},
		{"main", "order:main/ORD-1", "order.paida", "pp"}, {"mainorder:", "main/ORD-1", "order.paid", "app"}, // no part runs into the next
	} {
		k := effectKey(parts[0], parts[1], parts[2], parts[3])
		if seen[k] != "" {
			t.Errorf("%q has the key of %s", parts, seen[k])
		}
		seen[k] = parts[3]
	}
	if g1, g2 := generationKey(base, 1), generationKey(base, 2); g1 != base || g2 == base {
		t.Errorf("generations %s and %s of %s", g1, g2, base)
	}
}
