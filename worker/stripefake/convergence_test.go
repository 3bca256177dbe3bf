package stripefake_test

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"paidonce/store/payment"
	"paidonce/worker/stripefake"
)

var lifeSeed = flag.Uint64("life.seed", 0, "live this one life in the convergence tests, and print it")

const scope = "stripe:self:test"

// drawLife is the life of a seed.
func drawLife(seed uint64, steps int) stripefake.Life {
	return stripefake.DrawLife(rand.New(rand.NewPCG(seed, 0x5eed)), stripefake.LifeOptions{Seed: seed, Steps: steps})
}

// seeds are the lives that a test lives: n of them, or the one asked for.
func seeds(n int) []uint64 {
	if *lifeSeed != 0 {
		return []uint64{*lifeSeed}
	}
	list := make([]uint64, n)
	for i := range list {
		list[i] = uint64(i + 1)
	}
	return list
}

// arrival is something that reaches the shop: a delivery of an event, or the
// registration of an order, by their indices.
type arrival struct {
	event, order int // the other one is -1
	place        uint64
}

// arrivals is one way in which everything arrives: in any order, some events
// again and again. Where a thing stands depends on nothing but itself, so that
// a life from which a part is taken away has the rest in the same order.
func arrivals(l stripefake.Life, permutation int) []arrival {
	place := func(id string, copy int) uint64 {
		sum := sha256.Sum256(fmt.Appendf(nil, "%d/%d/%s/%d", l.Seed, permutation, id, copy))
		return binary.BigEndian.Uint64(sum[:])
	}
	var list []arrival
	for i, e := range l.Events {
		first := place(e.ID, 0)
		for copy := range 1 + []int{0, 0, 0, 1, 2}[first%5] {
			list = append(list, arrival{event: i, order: -1, place: place(e.ID, copy)})
		}
	}
	for i, o := range l.Orders {
		list = append(list, arrival{event: -1, order: i, place: place(o.ID, 0)})
	}
	slices.SortFunc(list, func(a, b arrival) int { return cmp.Compare(a.place, b.place) })
	return list
}

// inOrder are the events of a life as they come about, each once.
func inOrder(l stripefake.Life) []arrival {
	list := make([]arrival, len(l.Events))
	for i := range list {
		list[i].event = i
	}
	return list
}

// result is what one permutation came to.
type result struct {
	orders map[string]payment.Outcome
	rest   payment.Outcome // what no order claims
}

// live applies the events in an order through merge and derive, as the store
// does.
func live(l stripefake.Life, seen []payment.Event, order []arrival) result {
	facts := map[string]payment.Fact{}
	for _, arrived := range order {
		if arrived.event < 0 || seen[arrived.event].Verdict != "" {
			continue
		}
		ev := seen[arrived.event]
		var stored *payment.Fact
		if f, ok := facts[ev.Fact.ID]; ok {
			stored = &f
		}
		facts[ev.Fact.ID], _, _ = payment.MergeEvent(stored, ev.Fact)
	}
	all := slices.Collect(maps.Values(facts))
	slices.SortFunc(all, func(a, b payment.Fact) int { return strings.Compare(a.ID, b.ID) })

	linked, conflicted := map[string][]payment.Fact{}, map[string][]payment.Fact{}
	var rest []payment.Fact
	for _, group := range payment.Group(all) {
		var ids, names []string
		for _, f := range group {
			ids = append(ids, f.ID, f.PaymentIntent(), f.Charge())
		}
		for _, n := range payment.Names(group) {
			names = append(names, n.Order)
		}
		switch orders := claims(l, ids, names); len(orders) {
		case 0:
			rest = append(rest, group...)
		case 1:
			linked[orders[0]] = append(linked[orders[0]], group...)
		default:
			rest = append(rest, group...)
			for _, o := range orders {
				conflicted[o] = append(conflicted[o], group...)
			}
		}
	}
	r := result{orders: map[string]payment.Outcome{}, rest: payment.Derive(nil, rest, nil)}
	for _, o := range registered(l) {
		r.orders[o.ID] = payment.Derive(&payment.Order{
			Tenant: "main", ID: o.ID, TotalMinor: o.Total, Currency: o.Currency, Policy: payment.Policy(o.Policy),
			AllowDiscount: o.AllowDiscount, PaymentIntent: o.PaymentIntent, ClosedAt: o.Closed * 1000,
		}, linked[o.ID], conflicted[o.ID])
	}
	return r
}

// decode reads every event's body, and says which are no use to the rules.
func decode(l stripefake.Life) ([]payment.Event, error) {
	seen := make([]payment.Event, len(l.Events))
	for i, e := range l.Events {
		seen[i] = payment.Decode(e.Body(1))
		seen[i].Fact.Scope = scope
		if seen[i].Verdict == payment.VerdictMalformed {
			return nil, fmt.Errorf("%s is malformed: %s", e, seen[i].Reason)
		}
	}
	return seen, nil
}

// broken lives a life in several permutations and says what is wrong; "" is
// nothing.
func broken(l stripefake.Life, permutations int) string {
	if err := l.Account.Check(); err != nil {
		return "the model: " + err.Error()
	}
	seen, err := decode(l)
	if err != nil {
		return err.Error()
	}
	first := live(l, seen, inOrder(l))
	want := describe(first)
	for permutation := range permutations - 1 {
		if got := describe(live(l, seen, arrivals(l, permutation))); got != want {
			return "two permutations differ:\n" + difference(want, got)
		}
	}
	wrong := inconsistent(l, first)
	if len(l.Lost) == 0 { // otherwise the truth cannot be known
		wrong = slices.Concat(wrong, untrueMoney(l, first), untrueOrders(l, first))
	}
	return strings.Join(wrong, "\n")
}

// inconsistent holds a result against itself: what must be true whatever part
// of the events has arrived.
func inconsistent(l stripefake.Life, r result) []string {
	var wrong []string
	for _, o := range registered(l) {
		out := r.orders[o.ID]
		sums := map[payment.Account]int64{}
		for _, b := range out.Balances {
			if b.Currency == o.Currency {
				sums[b.Account] += b.AmountMinor
			} else if b.Account != payment.AccountSuspense {
				wrong = append(wrong, fmt.Sprintf("order %s counts money in %s", o.ID, b.Currency))
			}
		}
		if sums[payment.AccountSales] != out.ReceivedMinor || sums[payment.AccountRefunds] != -out.RefundedMinor ||
			sums[payment.AccountDisputes] != -out.ChargedBackMinor || sums[payment.AccountSuspense] != out.SuspenseMinor {
			wrong = append(wrong, fmt.Sprintf("order %s: the books say %v", o.ID, sums))
		}
		if out.RefundedMinor > out.ReceivedMinor || out.ChargedBackMinor > out.ReceivedMinor || out.RefundedMinor < 0 || out.ChargedBackMinor < 0 {
			wrong = append(wrong, fmt.Sprintf("order %s: %d refunded, %d charged back of %d", o.ID, out.RefundedMinor, out.ChargedBackMinor, out.ReceivedMinor))
		}
		for _, op := range out.Operations {
			if op.Name == "order.paid" && (out.Status == payment.StatusRefunded || out.Status == payment.StatusDisputed ||
				out.Status == payment.StatusChargedBack || out.ReceivedMinor < out.DueMinor) {
				wrong = append(wrong, fmt.Sprintf("order %s is %s with %d of %d, and paid", o.ID, out.Status, out.ReceivedMinor, out.DueMinor))
			}
		}
	}
	return wrong
}

// describe writes everything of a result that must not depend on arrival.
func describe(r result) string {
	var b strings.Builder
	for _, id := range slices.Sorted(maps.Keys(r.orders)) {
		fmt.Fprintf(&b, "%s\n", id)
		write(&b, r.orders[id])
	}
	b.WriteString("unlinked\n")
	write(&b, r.rest)
	return b.String()
}

func write(b *strings.Builder, o payment.Outcome) {
	fmt.Fprintf(b, "%s received %d refunded %d pending %d charged back %d suspense %d due %d paid at %d by %s, due received %t, fully refunded %t\n",
		o.Status, o.ReceivedMinor, o.RefundedMinor, o.RefundPendingMinor, o.ChargedBackMinor, o.SuspenseMinor, o.DueMinor, o.PaidAt,
		o.ProviderPayment, o.DueReceived, o.FullyRefunded)
	for _, a := range o.Attention {
		fmt.Fprintf(b, "attention %+v\n", a)
	}
	for _, x := range o.Balances {
		fmt.Fprintf(b, "balance %+v\n", x)
	}
	for _, op := range o.Operations {
		fmt.Fprintf(b, "operation %+v\n", op)
	}
	for _, p := range o.Payments {
		fmt.Fprintf(b, "payment %+v\n", p)
	}
}

// difference shows the lines that only one of two texts has.
func difference(want, got string) string {
	x, y := strings.Split(want, "\n"), strings.Split(got, "\n")
	var b strings.Builder
	for _, line := range x {
		if !slices.Contains(y, line) {
			b.WriteString("- " + line + "\n")
		}
	}
	for _, line := range y {
		if !slices.Contains(x, line) {
			b.WriteString("+ " + line + "\n")
		}
	}
	return b.String()
}

// untrueMoney holds the books against the ledger: per payment, and all
// accounts together.
func untrueMoney(l stripefake.Life, r result) []string {
	var wrong []string
	books := map[string]int64{}
	ledger := map[string]int64{}
	seen := map[string]bool{}
	outcomes := append(slices.Collect(maps.Values(r.orders)), r.rest)
	for _, o := range outcomes {
		for _, b := range o.Balances {
			books[b.Currency] += b.AmountMinor
		}
	}
	for _, p := range truths(l) {
		ledger[p.currency()] += p.money.Received - p.money.Refunded - p.money.Taken
		for _, o := range outcomes {
			for _, got := range o.Payments {
				if got.Key.Object != p.key {
					continue
				}
				seen[p.key] = true
				if got.ReceivedMinor != p.money.Received || got.RefundedMinor != p.money.Refunded ||
					got.RefundPendingMinor != p.money.Pending || got.ChargedBackMinor != p.back() {
					wrong = append(wrong, fmt.Sprintf("payment %s: received %d, refunded %d, pending %d, charged back %d; truly %d, %d, %d, %d",
						p.key, got.ReceivedMinor, got.RefundedMinor, got.RefundPendingMinor, got.ChargedBackMinor,
						p.money.Received, p.money.Refunded, p.money.Pending, p.back()))
				}
			}
		}
		if !seen[p.key] {
			wrong = append(wrong, "payment "+p.key+" is in no outcome")
		}
	}
	for _, currency := range slices.Sorted(maps.Keys(ledger)) {
		if books[currency] != ledger[currency] {
			wrong = append(wrong, fmt.Sprintf("the accounts sum up to %d %s, the ledger to %d", books[currency], currency, ledger[currency]))
		}
	}
	return wrong
}

// untrueOrders holds what the orders come to against what they ought to.
func untrueOrders(l stripefake.Life, r result) []string {
	var wrong []string
	blame := func(id, what string, got, want any) {
		if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
			wrong = append(wrong, fmt.Sprintf("order %s: %s is %s, truly %s", id, what, g, w))
		}
	}
	for id, want := range expect(l) {
		got := r.orders[id]
		if !want.ambiguous {
			blame(id, "status", got.Status, want.Status)
		}
		blame(id, "received", got.ReceivedMinor, want.Received)
		blame(id, "refunded", got.RefundedMinor, want.Refunded)
		blame(id, "pending", got.RefundPendingMinor, want.Pending)
		blame(id, "charged back", got.ChargedBackMinor, want.ChargedBack)
		blame(id, "suspense", got.SuspenseMinor, want.Suspense)
		blame(id, "paid at", got.PaidAt, want.PaidAt*1000)
		blame(id, "due received", got.DueReceived, want.DueReceived)
		blame(id, "fully refunded", got.FullyRefunded, want.FullyRefunded)
		var attention, ops []string
		for _, a := range got.Attention {
			attention = append(attention, a.Word+" "+a.Cause)
		}
		for _, op := range got.Operations {
			if op.Name == "order.paid" || strings.HasPrefix(op.Name, "refund.") || strings.HasPrefix(op.Name, "dispute.") {
				ops = append(ops, op.Name)
			}
		}
		slices.Sort(attention)
		slices.Sort(ops)
		blame(id, "attention", attention, want.Attention)
		blame(id, "operations", ops, want.Operations)
	}
	slices.Sort(wrong)
	return wrong
}

// fail shrinks a life for which what says something, and prints it small.
func fail(t *testing.T, l stripefake.Life, what func(stripefake.Life) string) {
	t.Helper()
	// The same kind of failure, so that shrinking does not wander to another.
	want := kind(what(l))
	small := stripefake.Shrink(l, func(c stripefake.Life) bool {
		got := what(c)
		return got != "" && kind(got) == want
	})
	t.Errorf("%s\n%s\nagain: go test ./worker/stripefake -run Convergence -life.seed=%d", small, what(small), l.Seed)
}

// kind is how a complaint begins, without ids and numbers.
func kind(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	words := slices.DeleteFunc(strings.Fields(line), func(word string) bool { return strings.ContainsAny(word, "0123456789") })
	return strings.Join(words[:min(3, len(words))], " ")
}

func TestConvergenceOfRandomLives(t *testing.T) {
	t.Parallel()
	n, permutations := 2000, 10
	if testing.Short() {
		n, permutations = 100, 4
	}
	failures := 0
	for _, seed := range seeds(n) {
		l := drawLife(seed, 0)
		if *lifeSeed != 0 {
			t.Log(l)
		}
		if broken(l, permutations) == "" {
			continue
		}
		fail(t, l, func(c stripefake.Life) string { return broken(c, permutations) })
		if failures++; failures == 3 {
			t.Fatal("three lives are enough")
		}
	}
}
