package store

import (
	"cmp"
	"math/rand/v2"
	"time"
)

// The plan of retries (design.md §6): at once, then after these waits, an
// alert, then 5 minutes doubling to an hour, for 72 hours in all.
var quickRetries = []time.Duration{
	500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second,
}

const (
	slowRetry    = 5 * time.Minute
	slowestRetry = time.Hour
	planLength   = 72 * time.Hour
	// retryAfterMost is the longest that a receiver may make us wait.
	retryAfterMost = time.Hour
	// stripeKeyLife: Stripe may forget a key after 24 hours (stripe.md §2);
	// past this nothing is sent under it any more.
	stripeKeyLife = 23 * time.Hour
	// mailPause lies between the two mails that an unknown outcome may cost,
	// and mailDoubts is how many there are.
	mailPause  = 15 * time.Minute
	mailDoubts = 2
	// lookUpPause is the least between two look-ups, and lookUps how many must
	// find nothing before the call is proven to have come to nothing.
	lookUpPause = 10 * time.Second
	lookUps     = 2
	// lateAfter: an operation proven that long before it was learned waits for
	// a person.
	lateAfter = 72 * time.Hour
	// installedMargin is how far our clock may be ahead of the sender's without
	// making its first events historic: as far as a signature may be old.
	installedMargin = 5 * time.Minute
)

// EffectTimeout is how long one attempt of a kind may take.
func EffectTimeout(kind string) time.Duration {
	switch kind {
	case KindHTTP:
		return 10 * time.Second
	case KindStripe:
		return 20 * time.Second
	case KindEmail:
		return 30 * time.Second
	default:
		return 60 * time.Second
	}
}

// EffectLease is how long a claim of a kind is good for: three times what an
// attempt may take, so that no second one begins while the first may still be
// under way (cases.md B38).
func EffectLease(kind string) time.Duration { return 3 * EffectTimeout(kind) }

// retryWait is the wait after the given number of failures in a row, from 1,
// before jitter. It cannot overflow (cases.md B43).
func retryWait(failures int64) time.Duration {
	n := failures - 1
	if n < int64(len(quickRetries)) {
		return quickRetries[max(n, 0)]
	}
	n -= int64(len(quickRetries))
	if n > 10 {
		return slowestRetry
	}
	return min(slowRetry<<n, slowestRetry)
}

// spread lengthens d by up to a tenth, so that effects which failed together
// do not come back together, and none comes back too early.
func spread(d time.Duration) time.Duration { return d + rand.N(d/10+1) }

// effectState is the part of an effect that an answer moves.
type effectState struct {
	kind         string
	status       string
	reason       string
	generation   int64
	attempts     int64
	failures     int64
	doubts       int64
	lookUp       bool
	dueAt        Time // 0 is none
	planFrom     Time
	firstTriedAt Time
	triedAt      Time
	doneAt       Time
	lastError    string
}

// settle is what an effect comes to by the answer of an attempt. It is the one
// place where the policy of design.md §6 and of the table in stripe.md §2
// stands.
func (e effectState) settle(a Answer, now Time) effectState {
	wait := func(d time.Duration) Time { return now + Time(spread(d).Milliseconds()) }
	if a.Error != "" {
		e.lastError = cut(a.Error)
	}
	if a.Outcome == OutcomeUnknown && e.kind == KindHTTP {
		a.Outcome = OutcomeAgain // the key is the receiver's to tell them apart
	}
	e.dueAt = 0
	switch a.Outcome {
	case OutcomeDone:
		e.status, e.reason, e.doneAt = "done", "", now
		e.failures, e.doubts, e.lookUp, e.lastError = 0, 0, false, ""
	case OutcomeRefused:
		e.status, e.doneAt = "failed", now
		e.reason = "refused"
		if why := cmp.Or(a.Code, a.Error); why != "" {
			e.reason = cut("refused: " + why)
		}
	case OutcomeAgain:
		e.failures++
		due := wait(retryWait(e.failures))
		if a.RetryAfter > 0 {
			due = now + Time(min(a.RetryAfter, retryAfterMost).Milliseconds())
		}
		e = e.comeAgain(due, now)
	case OutcomeAbsent:
		e.doubts++
		e.failures = 0
		if e.doubts < lookUps {
			e.status, e.dueAt = "unknown", wait(lookUpPause)
			break
		}
		// Proven to have come to nothing: the next generation of the key.
		e.status, e.generation, e.lookUp, e.doubts, e.firstTriedAt, e.dueAt = "pending", e.generation+1, false, 0, 0, now
	default: // OutcomeUnknown, and whatever else would be: it may have happened
		e = e.doubt(now, "its outcome is unknown")
		if e.kind == KindStripe && e.status == "unknown" {
			e.failures++
			e.lookUp = true
			e.dueAt = wait(max(retryWait(e.failures), time.Second))
		}
	}
	return e
}

// comeAgain plans the next attempt, if the plan has one left.
func (e effectState) comeAgain(due, now Time) effectState {
	e.status = "pending"
	if e.kind == KindStripe {
		if e.lookUp {
			e.status = "unknown" // it is the look-up that failed
		} else if e.firstTriedAt != 0 && due-e.firstTriedAt >= Time(stripeKeyLife.Milliseconds()) {
			// By then Stripe may have forgotten the key: find out first.
			e.status, e.lookUp = "unknown", true
		}
	}
	e.dueAt = due
	if now-e.planFrom < Time(planLength.Milliseconds()) {
		return e
	}
	e.dueAt = 0
	if e.status == "unknown" {
		e.status, e.reason = "held", "its outcome is unknown, and could not be looked up for 72 hours"
		return e
	}
	e.status, e.reason, e.doneAt = "failed", "given up after 72 hours", now
	return e
}

// doubt is what becomes of an effect of which nobody knows whether it happened:
// its process died between the call and the record, its lease ran out, or the
// answer was lost after the point of no return.
func (e effectState) doubt(now Time, why string) effectState {
	e.status, e.dueAt = "unknown", now
	if e.lastError == "" {
		e.lastError = why
	}
	switch e.kind {
	case KindEmail: // at most one more, with the same Message-ID
		e.doubts++
		e.dueAt = e.triedAt + Time(mailPause.Milliseconds())
		if e.doubts >= mailDoubts {
			e.dueAt = 0
			e.reason = "sent twice with an unknown outcome: `effects retry` sends it once more, `effects resolve` says what became of it"
		}
	case KindExec:
		e.status, e.dueAt = "held", 0
		e.reason = "the command may have done its work: `effects retry` runs it again, `effects resolve` says what became of it"
	case KindStripe: // the same key again, while Stripe keeps it
		if e.firstTriedAt != 0 && now-e.firstTriedAt >= Time(stripeKeyLife.Milliseconds()) {
			e.lookUp = true
		}
	}
	return e
}

// alarmed reports whether the effect has failed so often that people are told:
// it is past its quick retries.
func (e effectState) alarmed() bool { return e.failures > int64(len(quickRetries)) }
