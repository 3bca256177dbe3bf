package stripefake_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"paidonce/store"
	"paidonce/store/storetest"
	"paidonce/worker/stripefake"
)

// plan is how one life reaches a store: what arrives in which round, and when
// the shop registers its orders.
type plan struct {
	life   stripefake.Life
	rounds [][]byte
	at     map[int][]stripefake.Order // registrations before a round
}

func newPlan(l stripefake.Life, permutation int) plan {
	p := plan{life: l, at: map[int][]stripefake.Order{}}
	for _, arrived := range arrivals(l, permutation) {
		switch {
		case arrived.event >= 0:
			// Two deliveries of one event differ in pending_webhooks.
			p.rounds = append(p.rounds, l.Events[arrived.event].Body(1+int(arrived.place%3)))
		case !l.Orders[arrived.order].Unregistered:
			p.at[len(p.rounds)] = append(p.at[len(p.rounds)], l.Orders[arrived.order])
		}
	}
	return p
}

// adopts reports whether the store adopts the Payment Links of a life.
func adopts(l stripefake.Life) bool { return l.Seed%2 == 0 }

func link(l stripefake.Life) string { return fmt.Sprintf("plink_%d", l.Seed) }

// forStore takes away what a store cannot be told: that the shop closed an
// order, which it does only after asking Stripe.
func forStore(l stripefake.Life) stripefake.Life {
	l.Orders = slices.Clone(l.Orders)
	for i := range l.Orders {
		l.Orders[i].Closed = 0
	}
	return l
}

// adopted are the orders that a store makes of a life's Payment Links: those of
// completed sessions, at Stripe's price. One whose payment a registered order
// claims by an id may be there, if the session came first, and is then as empty
// as one that nobody paid.
func adopted(l stripefake.Life) []stripefake.Order {
	var orders []stripefake.Order
	for _, p := range truths(l) {
		s := p.session
		if s != nil && s.Link != "" && s.Status == stripefake.SessionComplete && adopts(l) && len(claims(l, p.ids, p.names)) == 0 {
			orders = append(orders, stripefake.Order{ID: s.ID, Currency: s.Currency, Total: s.Pricing.Total(), Policy: "exact", Refs: []string{s.ID}})
		}
	}
	return orders
}

// liveInStore carries plans out in one store, round by round, each life's next
// event beside those of the others. It also returns the promises that it found
// broken on the way; one life alone is looked at after every event.
func liveInStore(t *testing.T, plans []plan) (*store.Store, []string) {
	t.Helper()
	every := 40
	if len(plans) == 1 {
		every = 1
	}
	var broken []string
	s, _ := storetest.Open(t, func(o *store.Options) {
		for _, p := range plans {
			if adopts(p.life) {
				o.Adopt = append(o.Adopt, link(p.life))
			}
		}
		o.StockReturn = true
	})
	fillStock(t, s, plans)
	rounds := 0
	for _, p := range plans {
		rounds = max(rounds, len(p.rounds))
	}
	for round := range rounds + 1 {
		var arriving [][]byte
		for _, p := range plans {
			for _, o := range p.at[round] {
				register(t, s, o)
			}
			if round < len(p.rounds) {
				arriving = append(arriving, p.rounds[round])
			}
		}
		deliverTogether(t, s, arriving)
		storetest.Work(t, s)
		if round%every == 0 || round == rounds {
			lines, err := s.CheckInvariants(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range lines {
				if !slices.Contains(broken, line) {
					broken = append(broken, line)
				}
			}
		}
	}
	return s, broken
}

func register(t *testing.T, s *store.Store, o stripefake.Order) {
	t.Helper()
	storetest.Register(t, s, o.ID, o.Total, o.Currency, func(n *store.NewOrder) {
		n.AmountPolicy, n.AllowDiscount, n.Refs = &o.Policy, &o.AllowDiscount, o.Refs
		n.Items = []store.Item{{SKU: o.ID, Quantity: sold}}
		if o.PaymentIntent != "" {
			n.PaymentIntent = &o.PaymentIntent
		}
	})
}

// sold is how much of a thing of its own an order sells.
const sold = 2

// fillStock puts more than enough of everything in stock.
func fillStock(t *testing.T, s *store.Store, plans []plan) {
	t.Helper()
	var fill []func() error
	for _, p := range plans {
		for _, o := range registered(p.life) {
			fill = append(fill, func() error {
				_, err := s.SetStock(t.Context(), "", o.ID, 10)
				return err
			})
		}
	}
	together(t, fill)
}

// deliverTogether stores bodies as so many deliveries at once.
func deliverTogether(t *testing.T, s *store.Store, bodies [][]byte) {
	t.Helper()
	var deliver []func() error
	for _, body := range bodies {
		deliver = append(deliver, func() error {
			_, err := s.AddEvent(t.Context(), storetest.NewEvent(string(body)))
			return err
		})
	}
	together(t, deliver)
}

// together does things at once, so that they share their commits.
func together(t *testing.T, things []func() error) {
	t.Helper()
	errs := make([]error, len(things))
	var wg sync.WaitGroup
	for i, do := range things {
		wg.Go(func() { errs[i] = do() })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// kept is what a store has of one life.
type kept struct {
	orders map[string]store.OrderDetail
	taken  map[string]int64 // of each order's own thing
	books  map[string]int64 // sums by order, object, account and currency; no order is unlinked
	money  map[string]int64 // sums over all accounts, by currency
	broken []string         // promises that name one of the orders
}

// keep reads what a store has of each life.
func keep(t *testing.T, s *store.Store, lives []stripefake.Life, broken []string) map[uint64]kept {
	t.Helper()
	all := map[uint64]kept{}
	taken := map[string]int64{}
	lines, err := s.ListStock(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		taken[line.SKU] = line.Taken
	}
	for _, l := range lives {
		k := kept{orders: map[string]store.OrderDetail{}, taken: map[string]int64{}, books: map[string]int64{}, money: map[string]int64{}}
		for _, o := range registered(l) {
			k.orders[o.ID] = storetest.Order(t, s, o.ID)
			k.taken[o.ID] = taken[o.ID]
			for _, line := range broken {
				if strings.Contains(line, o.ID) {
					k.broken = append(k.broken, line)
				}
			}
		}
		all[l.Seed] = k
	}
	for f := (store.EntryFilter{}); ; {
		page, err := s.ListEntries(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Items {
			k := all[seedOf(t, e.Object)]
			k.books[fmt.Sprintf("%s of %q: %s %s", e.Object, e.Order, e.Account, e.Currency)] += e.AmountMinor
			k.money[e.Currency] += e.AmountMinor
		}
		if f.Cursor = page.NextCursor; f.Cursor == "" {
			return all
		}
	}
}

// seedOf is the life that an id belongs to.
func seedOf(t *testing.T, id string) uint64 {
	t.Helper()
	seed, err := strconv.ParseUint(id[strings.LastIndexByte(id, 'x')+1:], 10, 64)
	if err != nil {
		t.Fatalf("%s is no life's: %v", id, err)
	}
	return seed
}

// String writes what must not depend on the order of arrival.
func (k kept) String() string {
	var b strings.Builder
	for _, id := range slices.Sorted(maps.Keys(k.orders)) {
		o := k.orders[id]
		fmt.Fprintf(&b, "order %s: %s received %d refunded %d pending %d charged back %d suspense %d paid at %d, holds %d\n", id, o.Status,
			o.ReceivedMinor, o.RefundedMinor, o.RefundPendingMinor, o.ChargedBackMinor, o.SuspenseMinor, o.PaidAt, k.taken[id])
		fmt.Fprintf(&b, "order %s: attention %v\n", id, attentionOf(o))
	}
	for _, at := range slices.Sorted(maps.Keys(k.books)) {
		if k.books[at] != 0 {
			fmt.Fprintf(&b, "books %s %d\n", at, k.books[at])
		}
	}
	return b.String()
}

func attentionOf(o store.OrderDetail) []string {
	var list []string
	for _, a := range o.AttentionDetail {
		if a.Word != "oversold" { // whether there was enough depends on who came first
			list = append(list, a.Word+" "+a.Cause)
		}
	}
	slices.Sort(list)
	return list
}

// untrueStored holds what a store has of a life's orders against what they ought
// to have come to.
func untrueStored(l stripefake.Life, have kept) []string {
	var wrong []string
	blame := func(id, what string, got, want any) {
		if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
			wrong = append(wrong, fmt.Sprintf("order %s: %s is %s, truly %s", id, what, g, w))
		}
	}
	for _, line := range have.broken {
		wrong = append(wrong, "broken: "+line)
	}
	want := expect(l)
	for _, id := range slices.Sorted(maps.Keys(have.orders)) {
		got, want := have.orders[id], want[id]
		names := map[string]int{}
		for _, op := range got.Operations {
			if names[op.Name]++; names[op.Name] > 1 {
				wrong = append(wrong, fmt.Sprintf("order %s: %s was recorded twice", id, op.Name))
			}
		}
		if len(l.Lost) > 0 {
			continue // the truth cannot be known
		}
		for _, op := range want.Operations {
			if names[op] == 0 {
				wrong = append(wrong, fmt.Sprintf("order %s: %s was not recorded", id, op))
			}
		}
		if !want.ambiguous {
			blame(id, "status", got.Status, want.Status)
		}
		blame(id, "money", []int64{got.ReceivedMinor, got.RefundedMinor, got.RefundPendingMinor, got.ChargedBackMinor, got.SuspenseMinor},
			[]int64{want.Received, want.Refunded, want.Pending, want.ChargedBack, want.Suspense})
		blame(id, "paid at", int64(got.PaidAt), want.PaidAt*1000)
		blame(id, "attention", attentionOf(got), want.Attention)
		holds := 0
		if want.DueReceived && !want.FullyRefunded && len(got.Items) > 0 {
			holds = sold
		}
		blame(id, "stock", have.taken[id], holds)
	}
	if len(l.Lost) == 0 {
		ledger := map[string]int64{}
		for _, p := range truths(l) {
			ledger[p.currency()] += p.money.Received - p.money.Refunded - p.money.Taken
		}
		for currency, n := range ledger {
			if have.money[currency] != n {
				wrong = append(wrong, fmt.Sprintf("the accounts sum up to %d %s, the ledger to %d", have.money[currency], currency, n))
			}
		}
	}
	return wrong
}

// brokenInStore lives lives in one store for each permutation, and says for each
// seed what is wrong.
func brokenInStore(t *testing.T, lives []stripefake.Life, permutations int) map[uint64]string {
	t.Helper()
	all := make([]stripefake.Life, len(lives)) // with the orders that the store makes
	for i, l := range lives {
		l.Orders = append(slices.Clone(l.Orders), adopted(l)...)
		all[i] = l
	}
	outcomes := make([]map[uint64]kept, permutations)
	t.Run("permutation", func(t *testing.T) {
		for permutation := range permutations {
			t.Run(fmt.Sprint(permutation), func(t *testing.T) {
				t.Parallel()
				plans := make([]plan, len(lives))
				for i, l := range lives {
					plans[i] = newPlan(l, permutation)
				}
				s, broken := liveInStore(t, plans)
				outcomes[permutation] = keep(t, s, all, broken)
				if len(broken) > 0 {
					t.Errorf("broken: %s", strings.Join(broken, "\n"))
				}
			})
		}
	})
	wrong := map[uint64]string{}
	for _, l := range all {
		first := outcomes[0][l.Seed].String()
		for _, o := range outcomes {
			lines := untrueStored(l, o[l.Seed])
			if text := o[l.Seed].String(); text != first {
				lines = append(lines, "two permutations differ:\n"+difference(first, text))
			}
			if len(lines) > 0 {
				wrong[l.Seed] = strings.Join(lines, "\n")
				break
			}
		}
	}
	return wrong
}

func TestConvergenceInTheStore(t *testing.T) {
	t.Parallel()
	n, permutations := 200, 4
	if testing.Short() {
		n, permutations = 5, 2
	}
	var lives []stripefake.Life
	for _, seed := range seeds(n) {
		lives = append(lives, forStore(drawLife(seed, 0)))
	}
	if *lifeSeed != 0 {
		t.Log(lives[0])
	}
	wrong := brokenInStore(t, lives, permutations)
	failures := 0
	for _, l := range lives {
		if wrong[l.Seed] == "" {
			continue
		}
		if failures++; failures > 1 {
			t.Errorf("life %d too:\n%s", l.Seed, wrong[l.Seed])
			continue
		}
		fail(t, l, func(c stripefake.Life) (text string) {
			// A store of its own for each try. One that fails by itself, be it
			// in the middle, is as good a finding.
			ok := t.Run("shrinking", func(t *testing.T) { text = brokenInStore(t, []stripefake.Life{c}, permutations)[c.Seed] })
			if !ok && text == "" {
				text = "the store failed"
			}
			return text
		})
	}
}
