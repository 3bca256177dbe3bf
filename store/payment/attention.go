package payment

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// The words of Attention that facts can cause (design.md §7); the others are
// the store's, which knows stock and effects.
const (
	AttentionAmountMismatch       = "amount_mismatch"
	AttentionCurrencyMismatch     = "currency_mismatch"
	AttentionOrderConflict        = "order_conflict"
	AttentionContradiction        = "contradiction"
	AttentionDoublePayment        = "double_payment"
	AttentionPaidAfterClose       = "paid_after_close"
	AttentionRefundFailed         = "refund_failed"
	AttentionDisputeInquiry       = "dispute_inquiry"
	AttentionDisputeNeedsResponse = "dispute_needs_response"
	AttentionUnderpaid            = "underpaid"
	AttentionOverpaid             = "overpaid"
)

// attention lists the reasons for a person to look, sorted by word and cause.
func (d *derivation) attention(conflicted [][]Fact) []Attention {
	var list []Attention
	look := func(word, cause, format string, args ...any) {
		list = append(list, Attention{Word: word, Cause: cause, Detail: fmt.Sprintf(format, args...)})
	}
	for _, t := range d.payments {
		if t.Verdict != VerdictApplied {
			look(string(t.Verdict), t.Key.Object, "%s: %s", t.Key.Object, t.Reason)
		}
		switch {
		case t.Verdict != VerdictAmountMismatch:
		case t.difference < 0:
			look(AttentionUnderpaid, t.Key.Object, "%s: %s", t.Key.Object, t.Reason)
		case t.difference > 0:
			look(AttentionOverpaid, t.Key.Object, "%s: %s", t.Key.Object, t.Reason)
		}
		for _, f := range t.refunds {
			if f.Snapshot.Status == refundFailed {
				look(AttentionRefundFailed, f.ID, "%s: the refund of %s failed, the money is back in the Stripe balance",
					f.ID, t.text(f))
			}
		}
		for _, f := range t.disputes {
			if a, ok := d.disputeAttention(t, f); ok {
				list = append(list, a)
			}
		}
	}
	for _, group := range conflicted {
		t := newTally(group)
		look(AttentionOrderConflict, t.Key.Object, "%s: names other orders too, so none counts its %s",
			t.Key.Object, t.receivedText())
	}
	d.doubled(look)
	if d.closed() && d.order.FulfilAt == 0 && len(d.live) > 0 {
		ids, texts := describe(d.live)
		look(AttentionPaidAfterClose, ids, "the shop has closed the order, and there is money: %s", texts)
	}
	slices.SortFunc(list, func(a, b Attention) int {
		return cmp.Or(strings.Compare(a.Word, b.Word), strings.Compare(a.Cause, b.Cause), strings.Compare(a.Detail, b.Detail))
	})
	return slices.CompactFunc(list, func(a, b Attention) bool { return a.Word == b.Word && a.Cause == b.Cause })
}

// doubled looks for money of more than one payment. One whose money went back,
// by refunds or by a lost dispute, is none.
func (d *derivation) doubled(look func(word, cause, format string, args ...any)) {
	var holding []*tally
	for _, t := range d.live {
		if t.left() > 0 {
			holding = append(holding, t)
		}
	}
	if len(holding) > 1 {
		ids, texts := describe(holding)
		look(AttentionDoublePayment, ids, "%d payments hold money: %s", len(holding), texts)
	}
}

// disputeAttention says whether a dispute wants a person. One under review is
// in Stripe's hands and shows in the order's status; only where the status
// speaks of something else, it must be told here.
func (d *derivation) disputeAttention(t *tally, f Fact) (Attention, bool) {
	a := Attention{Cause: f.ID, DueAt: f.Snapshot.DueBy}
	switch {
	case f.isInquiry():
		a.Word = AttentionDisputeInquiry
		a.Detail = fmt.Sprintf("%s: the bank asks about %s; no money has moved", f.ID, t.text(f))
	case f.Snapshot.Status == disputeNeedsResponse:
		a.Word = AttentionDisputeNeedsResponse
		a.Detail = fmt.Sprintf("%s: a dispute over %s must be answered", f.ID, t.text(f))
	case f.Snapshot.Status == disputeUnderReview && d.out.Status != StatusDisputed:
		a.Word = AttentionDisputeNeedsResponse
		a.Detail = fmt.Sprintf("%s: a dispute over %s is under review", f.ID, t.text(f))
		a.DueAt = 0 // it was answered
	default:
		return Attention{}, false
	}
	return a, true
}

// text writes an object's amount; what names no currency is in its payment's.
func (t *tally) text(f Fact) string {
	return FormatMinor(f.Snapshot.Amount.Minor, cmp.Or(f.Snapshot.Currency, t.Currency))
}

// describe names payments and their amounts, and gives their ids as a cause.
func describe(payments []*tally) (cause, texts string) {
	var ids, each []string
	for _, t := range payments {
		ids = append(ids, t.Key.Object)
		each = append(each, t.Key.Object+" ("+t.receivedText()+")")
	}
	slices.Sort(ids)
	slices.Sort(each)
	return strings.Join(ids, ","), strings.Join(each, ", ")
}
