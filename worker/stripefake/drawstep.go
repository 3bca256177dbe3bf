package stripefake

// next draws a step that goes on from where things stand. Most of what it draws
// is legal; what is not is refused, and then nothing has happened.
func (d *drawing) next() Step {
	switch {
	case d.one(10):
		return d.opening()
	case d.one(14):
		return Step{Act: ActRepeat, On: d.life.Steps[d.rng.IntN(len(d.life.Steps))].N}
	case len(d.disputes) > 0 && d.one(2):
		return d.disputeStep(pick(d, d.disputes...))
	case len(d.refunds) > 0 && d.one(2):
		return d.refundStep(pick(d, d.refunds...))
	case len(d.openings) > 0:
		return d.paymentStep(pick(d, d.openings...))
	}
	return d.opening()
}

// paymentStep goes on with a payment.
func (d *drawing) paymentStep(on int) Step {
	a := d.stage.account
	step := Step{On: on}
	if c := a.charges[d.stage.charge(on)]; c != nil && c.Captured {
		return d.moneyStep(on, c)
	}
	pi := a.intents[d.stage.intent(on)]
	switch {
	case pi != nil && pi.Status == IntentProcessing:
		step.Act = pick(d, ActSettle, ActSettle, ActSettle, ActBounce)
	case pi != nil && pi.Status == IntentHold:
		step.Act = pick(d, ActCapture, ActCapture, ActCapture, ActCancel, ActHoldExpires)
		step.Amount = pi.Capturable
		if d.one(2) {
			step.Amount = d.amount(pi.Capturable)
		}
	default:
		step.Act = pick(d, ActPay, ActPay, ActPay, ActPay, ActPay, ActDecline, ActAskBuyer, ActExpireSession, ActCancel)
	}
	if step.Act == ActPay {
		step.Gap = pick[int64](d, 0, 0, 0, 1, 5)
		step.Lag = pick[int64](d, 0, 0, 1)
	}
	return step
}

// moneyStep is something about money that has come.
func (d *drawing) moneyStep(on int, c *Charge) Step {
	a := d.stage.account
	step := Step{On: on, Act: pick(d, ActRefund, ActRefund, ActRefundLater, ActRefundLater, ActChargeBack, ActChargeBack, ActInquire, ActTouch, ActRenew)}
	switch step.Act {
	case ActRefund, ActRefundLater:
		if !a.basil() && d.refundWentWrong(c) {
			return Step{}
		}
		step.Amount = a.Refundable(c.ID)
		if d.one(2) {
			step.Amount = d.amount(step.Amount)
		}
	case ActChargeBack, ActInquire:
		step.Amount = c.AmountCaptured
		switch {
		case d.one(3):
			step.Amount = d.amount(step.Amount)
		case d.one(6): // exchange rates moved
			step.Amount += step.Amount / 30 / d.unit * d.unit
		}
	}
	return step
}

// refundWentWrong reports whether a refund of the charge came to nothing. A
// Classic account tells of that one by itself and of later ones only in
// amount_refunded, which may or may not hold it still: nobody can tell.
func (d *drawing) refundWentWrong(c *Charge) bool {
	for _, id := range c.Refunds {
		if !d.stage.account.refunds[id].active() {
			return true
		}
	}
	return false
}

func (d *drawing) refundStep(on int) Step {
	step := Step{On: on}
	switch r := d.stage.account.refunds[d.stage.refunds[on]]; r.Status {
	case RefundPending:
		step.Act = pick(d, ActRefundArrives, ActRefundArrives, ActRefundFails, ActRefundWaits, ActRefundCanceled)
	case RefundNeedsAction:
		step.Act = pick(d, ActRefundArrives, ActRefundFails, ActRefundCanceled, ActTouch)
	case RefundSucceeded:
		step.Act = pick(d, ActRefundFails, ActRefundReturned, ActTouch)
	default: // over
		if !d.one(4) {
			return d.paymentStep(pick(d, d.openings...))
		}
		step.Act = ActTouch
	}
	return step
}

func (d *drawing) disputeStep(on int) Step {
	step := Step{On: on}
	switch dispute := d.stage.account.disputes[d.stage.disputes[on]]; dispute.Status {
	case InquiryNeedsResponse, InquiryUnderReview:
		step.Act = pick(d, ActAnswer, ActEscalate, ActEscalate, ActCloseInquiry, ActPrevent)
	case DisputeNeedsResponse, DisputeUnderReview:
		step.Act = pick(d, ActAnswer, ActWin, ActLose, ActLose, ActReinstate, ActTouch)
	case DisputeLost:
		step.Act = pick(d, ActTurn, ActReinstate, ActTouch)
	default: // over
		if !d.one(4) {
			return d.paymentStep(pick(d, d.openings...))
		}
		step.Act = ActTouch
	}
	return step
}
