package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"paidonce/store"
)

// demoRows are the rows of the failure table (design.md §8).
func demoRows(patience *demoPatience) []demoRow {
	return []demoRow{
		{Situation: "a bad signature, an altered body, a foreign account", Expected: "refused, no row", run: demoForged},
		{Situation: "the same event 50 times at once", Expected: "one row, paid once, one effect", run: demoRepeats},
		{Situation: "stored, but the connection dies before the 200", Expected: "the resend is a duplicate, the row is worked on", run: demoHangUp},
		{Situation: "killed after the order update, before done", Expected: "both roll back, the next claim does it once", run: demoKilledInside},
		{Situation: "a wrong amount, a wrong currency", Expected: "never paid, quarantined", run: demoWrongMoney},
		{Situation: "the order is edited while it is paid", Expected: "paid by the right amount or not at all", run: demoEdited},
		{Situation: "an old event after a newer state, both of one second", Expected: "no step back, the same result", run: demoOrderOfArrival},
		{Situation: "the event never comes", Expected: "reconciliation brings it", run: demoNeverComes},
		{Situation: "the event comes hours late", Expected: "counted by what it says", run: demoLate},
		{Situation: "the event comes before its order is registered", Expected: "paid by the registration", run: demoBeforeOrder},
		{Situation: "the outside call worked, killed before it is recorded", Expected: "the same key again, it happens once", run: demoKilledOutside},
		{Situation: "the receiver answers 429 with Retry-After, then never", Expected: "waits as told, times out, the webhook is still answered at once", run: patience.run},
		{Situation: "the database is locked by another program", Expected: "waits, then 200", run: demoLocked},
		{Situation: "the disk is full", Expected: "503, alive, heals by itself", run: demoDiskFull},
		{Situation: "kill -9 at any moment, 20 times", Expected: "nothing acknowledged is lost, nothing is done twice", run: demoKills},
		{Situation: "a restore from last night's backup", Expected: "effects held, the gap fetched, what happened recognised, then released", run: demoRestore},
	}
}

func demoForged(ctx context.Context, d *demo) (string, bool, error) {
	s, err := d.register(ctx)
	if err != nil {
		return "", false, err
	}
	id, body := s.paid(d)
	bad, err1 := d.postSigned(ctx, body, strings.Replace(d.sign(body), ",v1=", ",v1=00", 1))
	altered, err2 := d.postSigned(ctx, append(body, ' '), d.sign(body))
	foreignID, foreignBody := s.event(d, "succeeded", 1250, func(event, _ map[string]any) { event["account"] = "acct_other" })
	foreign, err3 := d.post(ctx, foreignBody)
	_, known, err4 := d.event(ctx, id)
	_, foreignKnown, err5 := d.event(ctx, foreignID)
	o, err6 := d.order(ctx, s.order)
	rows := 0
	for _, k := range []bool{known, foreignKnown} {
		if k {
			rows++
		}
	}
	return fmt.Sprintf("%s, %s, %s; %d rows, order %s", bad, altered, foreign, rows, o.Status),
		bad.code == 401 && altered.code == 401 && foreign.code == 403 && rows == 0 && o.Status == "awaiting_payment",
		errors.Join(err1, err2, err3, err4, err5, err6)
}

func demoRepeats(ctx context.Context, d *demo) (string, bool, error) {
	s, err := d.register(ctx)
	if err != nil {
		return "", false, err
	}
	id, body := s.paid(d)
	var wg sync.WaitGroup
	replies, errs := make([]reply, 50), make([]error, 50)
	start := make(chan struct{})
	for i := range replies {
		wg.Go(func() {
			<-start
			replies[i], errs[i] = d.post(ctx, body)
		})
	}
	close(start)
	wg.Wait()
	ok200, accepted := 0, 0
	for _, r := range replies {
		if r.code == 200 {
			ok200++
		}
		if r.status == "accepted" {
			accepted++
		}
	}
	e, err := d.settled(ctx, id)
	o, err2 := d.order(ctx, s.order)
	_, err3 := d.effectsDone(ctx, s.order, 1)
	calls, _, err4 := d.world.app.took(ctx, s.order, 1)
	return fmt.Sprintf("%d × 200, %d accepted, 1 row with %d deliveries, order %s, order.paid %d×, the app called %d×", ok200, accepted, e.Deliveries, o.Status, o.paidTimes(), len(calls)),
		ok200 == 50 && accepted == 1 && e.Deliveries == 50 && o.Status == "paid" && o.paidTimes() == 1 && len(o.Entries) == 1 && len(calls) == 1,
		errors.Join(append(errs, err, err2, err3, err4)...)
}

func demoHangUp(ctx context.Context, d *demo) (string, bool, error) {
	s, err := d.register(ctx)
	if err != nil {
		return "", false, err
	}
	id, body := s.paid(d)
	if err := d.postAndHangUp(ctx, body); err != nil {
		return "", false, err
	}
	e, err := d.settled(ctx, id)
	if err != nil {
		return "", false, err
	}
	again, err := d.post(ctx, body)
	o, err2 := d.order(ctx, s.order)
	return fmt.Sprintf("row %s, resend %s, order %s", e.Verdict, again, o.Status),
		again.status == "duplicate" && o.Status == "paid" && o.paidTimes() == 1, errors.Join(err, err2)
}

func demoKilledInside(ctx context.Context, d *demo) (string, bool, error) {
	s, err := d.register(ctx)
	if err != nil {
		return "", false, err
	}
	if err := d.restart(ctx, demoChild{DieAt: "apply:order-updated"}); err != nil {
		return "", false, err
	}
	id, body := s.paid(d)
	first, err := d.post(ctx, body)
	if err != nil {
		return "", false, fmt.Errorf("the answer was lost although the event was stored first: %w", err)
	}
	<-d.gone // it died with the order updated and not committed
	d.kills++
	if err := d.start(ctx, demoChild{}); err != nil {
		return "", false, err
	}
	e, err := d.settled(ctx, id)
	o, err2 := d.order(ctx, s.order)
	return fmt.Sprintf("%s, died, after the restart: event %s, order %s, order.paid %d×, entries %d", first, e.Verdict, o.Status, o.paidTimes(), len(o.Entries)),
		first.status == "accepted" && e.Verdict == "applied" && o.Status == "paid" && o.paidTimes() == 1 && len(o.Entries) == 1,
		errors.Join(err, err2)
}

func demoWrongMoney(ctx context.Context, d *demo) (string, bool, error) {
	var said []string
	all := true
	for _, c := range []struct {
		verdict  string
		received int64
		currency string
	}{{"amount_mismatch", 50, "eur"}, {"currency_mismatch", 1250, "usd"}} {
		s, err := d.register(ctx)
		if err != nil {
			return "", false, err
		}
		id, body := s.event(d, "succeeded", c.received, func(_, object map[string]any) { object["currency"] = c.currency })
		if _, err := d.post(ctx, body); err != nil {
			return "", false, err
		}
		e, err := d.settled(ctx, id)
		if err != nil {
			return "", false, err
		}
		o, err := d.order(ctx, s.order)
		if err != nil {
			return "", false, err
		}
		said = append(said, fmt.Sprintf("%s %s, order %s", e.Status, e.Verdict, o.Status))
		all = all && e.Status == "quarantined" && e.Verdict == c.verdict && o.Status == "awaiting_payment" && o.paidTimes() == 0
	}
	return strings.Join(said, "; "), all, nil
}

func demoEdited(ctx context.Context, d *demo) (string, bool, error) {
	paid, held := 0, 0
	for range 10 {
		s, err := d.register(ctx)
		if err != nil {
			return "", false, err
		}
		id, body := s.paid(d)
		var wg sync.WaitGroup
		var err1, err2 error
		wg.Go(func() { _, err1 = d.post(ctx, body) })
		wg.Go(func() {
			<-time.After(rand.N(5 * time.Millisecond)) // so that either may win
			_, err2 = d.api(ctx, http.MethodPatch, "/v1/orders/"+s.order, map[string]any{"total_minor": 9900}, nil)
		})
		wg.Wait()
		e, err3 := d.settled(ctx, id)
		o, err4 := d.order(ctx, s.order)
		if err := errors.Join(err1, err2, err3, err4); err != nil {
			return "", false, err
		}
		switch {
		case o.Status == "paid" && o.ReceivedMinor == 1250 && e.Verdict == "applied":
			paid++
		case o.Status == "awaiting_payment" && o.SuspenseMinor == 1250 && e.Verdict == "amount_mismatch" && o.paidTimes() == 0:
			held++
		}
	}
	return fmt.Sprintf("10 races: %d paid before the edit (which was refused), %d edited first and quarantined", paid, held), paid+held == 10, nil
}

func demoOrderOfArrival(ctx context.Context, d *demo) (string, bool, error) {
	var said []string
	all := true
	for _, swapped := range []bool{false, true} {
		s, err := d.register(ctx)
		if err != nil {
			return "", false, err
		}
		_, processing := s.event(d, "processing", 0)
		_, paid := s.paid(d)
		first, second := processing, paid
		if swapped {
			first, second = paid, processing
		}
		for _, body := range [][]byte{first, second, processing} {
			if _, err := d.post(ctx, body); err != nil {
				return "", false, err
			}
		}
		for n := 1; n <= 2; n++ {
			if _, err := d.settled(ctx, fmt.Sprintf("evt_%s_%d", s.order, n)); err != nil {
				return "", false, err
			}
		}
		o, err := d.order(ctx, s.order)
		if err != nil {
			return "", false, err
		}
		said = append(said, o.Status)
		all = all && o.Status == "paid" && o.ReceivedMinor == 1250 && o.paidTimes() == 1
	}
	return "in order: " + said[0] + "; the other way round: " + said[1], all, nil
}

func demoLate(ctx context.Context, d *demo) (string, bool, error) {
	s, err := d.register(ctx)
	if err != nil {
		return "", false, err
	}
	then := d.app.now().Add(-7 * time.Hour).UTC().Truncate(time.Second)
	id, body := s.event(d, "succeeded", 1250, func(event, _ map[string]any) { event["created"] = then.Unix() })
	if _, err := d.post(ctx, body); err != nil {
		return "", false, err
	}
	if _, err := d.settled(ctx, id); err != nil {
		return "", false, err
	}
	o, err := d.order(ctx, s.order)
	return fmt.Sprintf("order %s, paid_at %s ago", o.Status, d.app.now().Sub(o.PaidAt).Round(time.Hour)), o.Status == "paid" && o.PaidAt.Equal(then), err
}

func demoBeforeOrder(ctx context.Context, d *demo) (string, bool, error) {
	n := d.number()
	s := &sale{order: fmt.Sprintf("demo-%d", n), intent: fmt.Sprintf("pi_demo%d", n)}
	id, body := s.paid(d)
	if _, err := d.post(ctx, body); err != nil {
		return "", false, err
	}
	before, err := d.settled(ctx, id)
	if err != nil {
		return "", false, err
	}
	var o demoOrder
	if _, err := d.api(ctx, http.MethodPost, "/v1/orders", map[string]any{"id": s.order, "total_minor": 1250, "currency": "eur"}, &o); err != nil {
		return "", false, err
	}
	after, _, err := d.event(ctx, id)
	return fmt.Sprintf("event %s, registration answers %s, event %s", before.Verdict, o.Status, after.Verdict),
		before.Verdict == "unlinked" && o.Status == "paid" && after.Verdict == "applied", err
}

func demoLocked(ctx context.Context, d *demo) (string, bool, error) {
	s, err := d.register(ctx)
	if err != nil {
		return "", false, err
	}
	id, body := s.paid(d)
	release, err := store.HoldLock(ctx, filepath.Join(d.dir, defaultDB))
	if err != nil {
		return "", false, err
	}
	answer := make(chan error, 1)
	var got reply
	go func() {
		var err error
		got, err = d.post(ctx, body)
		answer <- err
	}()
	early := false
	select {
	case <-answer:
		early = true
	case <-time.After(500 * time.Millisecond):
	}
	if err := release(); err != nil || early {
		return "answered while it was locked", false, err
	}
	if err := <-answer; err != nil {
		return "", false, err
	}
	_, err = d.settled(ctx, id)
	o, err2 := d.order(ctx, s.order)
	return fmt.Sprintf("no answer for 500 ms of lock, then %s, order %s", got, o.Status), got.status == "accepted" && o.Status == "paid", errors.Join(err, err2)
}

func demoDiskFull(ctx context.Context, d *demo) (string, bool, error) {
	s, err := d.register(ctx)
	if err != nil {
		return "", false, err
	}
	if err := d.limitPages(1); err != nil { // no more than there are
		return "", false, err
	}
	_, big := s.event(d, "processing", 0, func(event, _ map[string]any) { event["padding"] = strings.Repeat("x", 200<<10) })
	full, err := d.post(ctx, big)
	if err != nil {
		return "", false, err
	}
	resp, err := d.client.Get("http://" + d.public + "/healthz")
	if err != nil {
		return "", false, err
	}
	if err := resp.Body.Close(); err != nil {
		return "", false, err
	}
	if err := d.limitPages(0); err != nil {
		return "", false, err
	}
	again, err := d.post(ctx, big)
	return fmt.Sprintf("%s, /healthz %d; with room again %s", full, resp.StatusCode, again),
		full.code == 503 && resp.StatusCode == 200 && again.status == "accepted", err
}

func demoKills(ctx context.Context, d *demo) (string, bool, error) {
	const rounds, senders = 20, 8
	var mu sync.Mutex
	acked := map[string]string{} // event → order
	for range rounds {
		round, cancel := context.WithCancel(ctx)
		var wg sync.WaitGroup
		for range senders {
			wg.Go(func() {
				for round.Err() == nil {
					s, err := d.register(round)
					if err != nil {
						return // it is dead
					}
					id, body := s.paid(d)
					if r, err := d.post(round, body); err == nil && r.code == 200 {
						mu.Lock()
						acked[id] = s.order
						mu.Unlock()
					}
				}
			})
		}
		select {
		case <-time.After(time.Duration(20+rand.IntN(80)) * time.Millisecond):
		case <-ctx.Done():
		}
		d.kill()
		cancel()
		wg.Wait()
		if err := d.start(ctx, demoChild{}); err != nil {
			return "", false, err
		}
	}
	lost, twice := 0, 0
	for id, order := range acked {
		e, err := d.settled(ctx, id)
		if err != nil {
			lost++
			continue
		}
		o, err := d.order(ctx, order)
		if err != nil {
			return "", false, err
		}
		switch {
		case e.Verdict != "applied" || o.Status != "paid":
			lost++
		case o.paidTimes() != 1 || o.ReceivedMinor != 1250 || len(o.Entries) != 1:
			twice++
		}
	}
	return fmt.Sprintf("%d events got a 200 before a kill: %d lost, %d done twice", len(acked), lost, twice), lost == 0 && twice == 0 && len(acked) > 0, nil
}
