package stripefake_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"paidonce/worker/stripefake"
)

// expected is what an order ought to have come to, by the truth at Stripe. It
// is worked out from the model's objects and ledger by the words of design.md
// §5, and shares nothing with the code that derives it from events.
type expected struct {
	Status                                             string
	Received, Refunded, Pending, ChargedBack, Suspense int64
	PaidAt                                             int64 // seconds
	DueReceived, FullyRefunded                         bool
	Attention                                          []string // "word cause", sorted
	Operations                                         []string // those that the truth decides, sorted
	ambiguous                                          bool     // the second hides which attempt was the last
}

// registered are the orders that the shop registers.
func registered(l stripefake.Life) []stripefake.Order {
	return slices.DeleteFunc(slices.Clone(l.Orders), func(o stripefake.Order) bool { return o.Unregistered })
}

// claims are the orders that a payment speaks of, by their registered ids and
// by name.
func claims(l stripefake.Life, ids, names []string) []string {
	var orders []string
	for _, o := range registered(l) {
		known := slices.ContainsFunc(ids, func(id string) bool { return id != "" && (id == o.PaymentIntent || slices.Contains(o.Refs, id)) })
		if known || slices.Contains(names, o.ID) {
			orders = append(orders, o.ID)
		}
	}
	return orders
}

// expect works out what every registered order ought to come to.
func expect(l stripefake.Life) map[string]expected {
	all := truths(l)
	result := map[string]expected{}
	for _, o := range registered(l) {
		var mine, conflicted []truth
		for _, p := range all {
			switch orders := claims(l, p.ids, p.names); {
			case len(orders) == 1 && orders[0] == o.ID:
				mine = append(mine, p)
			case slices.Contains(orders, o.ID):
				conflicted = append(conflicted, p)
			}
		}
		result[o.ID] = expectOrder(o, mine, conflicted)
	}
	return result
}

// judgement is whether an order counts a payment; if not, why, and whether that
// is too little (-1) or too much.
type judgement struct {
	accepted   bool
	word       string
	difference int
	due        int64
}

func judge(o stripefake.Order, p truth) judgement {
	got := p.money.Received
	switch {
	case o.PaymentIntent != "" && p.key != o.PaymentIntent && (p.intent != nil || p.settled()):
		return judgement{word: "order_conflict"}
	case !p.settled():
		return judgement{}
	case p.currency() != o.Currency:
		return judgement{word: "currency_mismatch"}
	}
	yes := func(due int64) judgement { return judgement{accepted: true, due: due} }
	no := func(n int64) judgement { return judgement{word: "amount_mismatch", difference: cmp.Compare(n, 0)} }
	switch o.Policy {
	case "at_least":
		if got >= o.Total {
			return yes(o.Total)
		}
		return no(got - o.Total)
	case "any":
		return yes(got)
	case "subtotal":
		if p.session == nil {
			return judgement{} // nobody has said what was sold
		}
		price := p.session.Pricing
		switch {
		case price.Subtotal != o.Total:
			return no(price.Subtotal - o.Total)
		case max(price.Discount, price.Subtotal-price.Total()) > 0 && !o.AllowDiscount:
			return no(-1)
		case got != price.Total():
			return no(got - price.Total())
		}
		return yes(price.Total())
	default:
		if got == o.Total {
			return yes(o.Total)
		}
		return no(got - o.Total)
	}
}

func expectOrder(o stripefake.Order, mine, conflicted []truth) expected {
	var e expected
	look := func(word, cause string) { e.Attention = append(e.Attention, word+" "+cause) }
	should := func(format string, args ...any) { e.Operations = append(e.Operations, fmt.Sprintf(format, args...)) }
	judged := map[string]judgement{}
	var accepted, live []truth
	for _, p := range mine {
		j := judge(o, p)
		judged[p.key] = j
		e.ambiguous = e.ambiguous || p.ambiguous
		if j.word != "" {
			look(j.word, p.key)
		}
		switch {
		case j.difference < 0:
			look("underpaid", p.key)
		case j.difference > 0:
			look("overpaid", p.key)
		}
		if j.accepted {
			accepted = append(accepted, p)
			e.Received += p.money.Received
			e.Refunded += p.money.Refunded
			e.Pending += p.money.Pending
			e.ChargedBack += p.back()
			if p.currency() == o.Currency {
				e.Suspense -= p.money.Taken - p.back()
			}
			if e.PaidAt == 0 || p.paidAt() < e.PaidAt {
				e.PaidAt = p.paidAt()
			}
			if !p.fullyRefunded() {
				live = append(live, p)
			}
		} else if p.currency() == o.Currency {
			e.Suspense += p.money.Received - p.money.Refunded - p.money.Taken
		}
	}
	byProof := func(x, y truth) int { return cmp.Or(cmp.Compare(x.paidAt(), y.paidAt()), cmp.Compare(x.key, y.key)) }
	slices.SortFunc(accepted, byProof)
	slices.SortFunc(live, byProof)
	e.DueReceived = len(accepted) > 0
	e.FullyRefunded = len(accepted) > 0 && len(live) == 0

	due, left := o.Total, int64(0)
	if len(live) > 0 {
		due = judged[live[0].key].due
	}
	open, lost, part, pending := false, false, false, false
	var holding, keys []string
	for _, p := range live {
		left += p.left()
		open = open || p.money.OpenDispute
		lost = lost || p.money.Lost
		part = part || p.money.Refunded > 0
		pending = pending || p.money.Pending > 0
		keys = append(keys, p.key)
		if p.left() > 0 {
			holding = append(holding, p.key)
		}
	}
	slices.Sort(holding)
	slices.Sort(keys)
	closed := o.Closed != 0
	switch {
	case open && !closed:
		e.Status = "disputed"
	case lost && left <= 0:
		e.Status = "charged_back"
	case e.FullyRefunded:
		e.Status = "refunded"
	case part:
		e.Status = "partially_refunded"
	case pending:
		e.Status = "refund_pending"
	case len(live) > 0:
		e.Status = "paid"
	default:
		e.Status = unpaidStatus(o, mine, judged)
	}
	if len(live) > 0 && left >= due && !open && !closed {
		should("order.paid")
	}
	if len(holding) > 1 {
		look("double_payment", strings.Join(holding, ","))
	}
	if closed && len(live) > 0 {
		look("paid_after_close", strings.Join(keys, ","))
	}
	for _, p := range mine {
		for _, r := range p.refunds {
			switch {
			case r.Reason == "expired_uncaptured_charge": // no refund to anybody
			case r.Status == stripefake.RefundFailed:
				look("refund_failed", r.ID)
				should("refund.failed:%s", r.ID)
			case r.Status == stripefake.RefundSucceeded:
				should("refund.succeeded:%s", r.ID)
			}
		}
		for _, d := range p.disputes {
			e.dispute(d, look, should)
		}
	}
	for _, p := range conflicted {
		look("order_conflict", p.key)
	}
	slices.Sort(e.Attention)
	e.Attention = slices.Compact(e.Attention)
	slices.Sort(e.Operations)
	return e
}

func (e *expected) dispute(d stripefake.Dispute, look func(word, cause string), should func(format string, args ...any)) {
	switch d.Status {
	case stripefake.InquiryNeedsResponse, stripefake.InquiryUnderReview:
		look("dispute_inquiry", d.ID)
	case stripefake.DisputeNeedsResponse:
		look("dispute_needs_response", d.ID)
		should("dispute.opened:%s", d.ID)
	case stripefake.DisputeUnderReview:
		if e.Status != "disputed" {
			look("dispute_needs_response", d.ID)
		}
		should("dispute.opened:%s", d.ID)
	case stripefake.DisputeWon, stripefake.DisputeLost:
		should("dispute.opened:%s", d.ID)
		should("dispute.closed:%s:%s", d.ID, d.Status)
	case stripefake.InquiryClosed, stripefake.DisputePrevented:
		should("dispute.closed:%s:%s", d.ID, d.Status)
	}
}

// unpaidStatus is the status of an order that counts no money.
func unpaidStatus(o stripefake.Order, mine []truth, judged map[string]judgement) string {
	hold, processing, failed, alive, sessions, expired := false, false, false, false, 0, 0
	for _, p := range mine {
		if judged[p.key].word == "order_conflict" || p.currency() != o.Currency {
			continue
		}
		if p.session != nil {
			sessions++
			if p.session.Status == stripefake.SessionExpired {
				expired++
			}
		}
		if p.settled() {
			continue
		}
		for _, c := range p.charges {
			failed = failed || c.Status == stripefake.ChargeFailed
		}
		if p.intent == nil {
			continue
		}
		last := stripefake.Charge{}
		for _, c := range p.charges {
			if c.ID == p.intent.LatestCharge() {
				last = c
			}
		}
		switch p.intent.Status {
		case stripefake.IntentHold:
			hold, alive = true, true
		case stripefake.IntentProcessing:
			processing, alive = true, true
		case stripefake.IntentNeedsAction:
			alive = true
		case stripefake.IntentNeedsMethod:
			alive = alive || last.Status != stripefake.ChargeFailed
		}
	}
	switch {
	case hold:
		return "authorized"
	case processing:
		return "processing"
	case o.Closed != 0:
		return "canceled"
	case failed && !alive:
		return "payment_failed"
	case sessions > 0 && expired == sessions:
		return "expired"
	}
	return "awaiting_payment"
}
