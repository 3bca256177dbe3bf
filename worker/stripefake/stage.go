package stripefake

// stage is an account, and which step made what in it.
type stage struct {
	account                              *Account
	sessions, intents, charges, invoices map[int]string
	refunds, disputes                    map[int]string
	lastEvent                            map[int]string
}

func newStage(seed uint64, world Config) *stage {
	world.Seed = seed
	return &stage{
		account: New(world), sessions: map[int]string{}, intents: map[int]string{}, charges: map[int]string{},
		invoices: map[int]string{}, refunds: map[int]string{}, disputes: map[int]string{}, lastEvent: map[int]string{},
	}
}

// do takes a step. If Stripe refuses, nothing has happened.
func (s *stage) do(step Step) error {
	a := s.account
	now, sent := a.now, len(a.events)
	a.Chapter(step.N)
	a.Advance(step.Wait)
	if err := s.act(step); err != nil {
		a.now = now
		return err
	}
	if len(a.events) > sent {
		s.lastEvent[step.N] = a.events[len(a.events)-1].ID
	}
	return nil
}

func (s *stage) act(step Step) (err error) {
	a := s.account
	switch step.Act {
	case ActOpenSession, ActCreateIntent, ActChargeDirectly, ActSubscribe, ActRenew:
		return s.open(step)
	case ActAskBuyer, ActDecline, ActPay:
		return s.attempt(step)
	case ActSettle, ActBounce:
		id := s.intent(step.On)
		if pi := a.intents[id]; pi == nil || pi.Status != IntentProcessing {
			return refuse("payment_intent_unexpected_state", "the bank has nothing to decide about")
		}
		if step.Act == ActSettle {
			return a.Succeed(id)
		}
		return a.Fail(id, "insufficient_funds")
	case ActCapture:
		return a.Capture(s.intent(step.On), step.Amount)
	case ActCancel:
		return a.Cancel(s.intent(step.On))
	case ActHoldExpires:
		return a.ExpireHold(s.intent(step.On))
	case ActExpireSession:
		return a.ExpireSession(s.sessions[step.On])
	case ActRefund, ActRefundLater:
		var r Refund
		if r, err = a.Refund(s.charge(step.On), step.Amount, step.Act == ActRefundLater); err == nil {
			s.refunds[step.N] = r.ID
		}
		return err
	case ActInquire, ActChargeBack:
		begin := a.Inquire
		if step.Act == ActChargeBack {
			begin = a.ChargeBack
		}
		var d Dispute
		if d, err = begin(s.charge(step.On), step.Amount); err == nil {
			s.disputes[step.N] = d.ID
		}
		return err
	case ActTouch:
		switch {
		case s.refunds[step.On] != "":
			return a.TouchRefund(s.refunds[step.On])
		case s.disputes[step.On] != "":
			return a.TouchDispute(s.disputes[step.On])
		}
		return a.TouchCharge(s.charge(step.On))
	case ActRepeat:
		return a.Repeat(s.lastEvent[step.On])
	}
	if move, ok := s.refundMoves()[step.Act]; ok {
		return move(s.refunds[step.On])
	}
	if move, ok := s.disputeMoves()[step.Act]; ok {
		return move(s.disputes[step.On])
	}
	return refuse("unknown_act", "nobody can %s", step.Act)
}

func (s *stage) refundMoves() map[Act]func(string) error {
	a := s.account
	return map[Act]func(string) error{
		ActRefundWaits: a.RefundNeedsAction, ActRefundArrives: a.RefundSucceeds, ActRefundFails: a.RefundFails,
		ActRefundReturned: a.RefundReturnedByBank, ActRefundCanceled: a.RefundCanceled,
	}
}

func (s *stage) disputeMoves() map[Act]func(string) error {
	a := s.account
	return map[Act]func(string) error{
		ActAnswer: a.SubmitEvidence, ActEscalate: a.Escalate, ActCloseInquiry: a.CloseInquiry, ActPrevent: a.Prevent,
		ActWin: a.Win, ActLose: a.Lose, ActReinstate: a.ReinstateFunds, ActTurn: a.Turn,
	}
}

// open begins a payment.
func (s *stage) open(step Step) error {
	a, o := s.account, step.Opening
	switch {
	case step.Act == ActRenew:
		in, err := a.Renew(s.invoices[step.On])
		if err == nil {
			s.invoices[step.N], s.intents[step.N] = in.ID, in.Intent
		}
		return err
	case o == nil:
		return refuse("parameter_missing", "nothing says what to open")
	}
	switch step.Act {
	case ActOpenSession:
		session, err := a.OpenSession(SessionParams{
			Pricing: o.Pricing, Currency: o.Currency, Method: o.Method, Manual: o.Manual, Link: o.Link,
			Reference: o.Reference, Metadata: o.names(o.OnSession), IntentMetadata: o.names(o.OnIntent),
		})
		if err == nil {
			s.sessions[step.N] = session.ID
		}
		return err
	case ActCreateIntent:
		pi, err := a.CreateIntent(IntentParams{
			Amount: o.Pricing.Total(), Currency: o.Currency, Method: o.Method, Manual: o.Manual, Metadata: o.names(o.OnIntent),
		})
		if err == nil {
			s.intents[step.N] = pi.ID
		}
		return err
	case ActChargeDirectly:
		c, err := a.ChargeDirectly(o.Pricing.Total(), o.Currency, o.names(o.OnIntent))
		if err == nil {
			s.charges[step.N] = c.ID
		}
		return err
	default:
		in, err := a.Subscribe(o.Pricing.Total(), o.Currency)
		if err == nil {
			s.invoices[step.N], s.intents[step.N] = in.ID, in.Intent
		}
		return err
	}
}

// attempt is a buyer who tries to pay.
func (s *stage) attempt(step Step) error {
	a := s.account
	id := s.intents[step.On]
	session := a.sessions[s.sessions[step.On]]
	if session != nil {
		if session.PaymentStatus == SessionFree && step.Act == ActPay {
			return a.CompleteSession(session.ID)
		}
		if step.Act == ActDecline && session.method == Debit {
			return refuse("payment_intent_unexpected_state", "a bank debit is not declined at once")
		}
		if session.Intent != "" {
			if _, err := a.awaitsBuyer(session.Intent); err != nil {
				return err
			}
		}
		pi, err := a.ConfirmSession(session.ID)
		if err != nil {
			return err
		}
		id = pi.ID
	}
	pi, err := find(a.intents, id)
	if err != nil {
		return err
	}
	switch {
	case step.Act == ActAskBuyer:
		return a.RequireAction(id)
	case step.Act == ActDecline:
		return a.Fail(id, "generic_decline")
	case pi.manual:
		err = a.Authorize(id)
	case pi.method == Debit:
		a.Lag("payment_intent.processing", step.Lag)
		err = a.Process(id)
	default:
		err = a.Succeed(id)
	}
	if err == nil && session != nil {
		a.Advance(step.Gap)
		err = a.CompleteSession(session.ID)
	}
	return err
}

// intent is the payment intent of the payment that a step began.
func (s *stage) intent(step int) string {
	if session := s.account.sessions[s.sessions[step]]; session != nil {
		return session.Intent
	}
	return s.intents[step]
}

// charge is the newest charge of that payment.
func (s *stage) charge(step int) string {
	if id := s.charges[step]; id != "" {
		return id
	}
	if pi := s.account.intents[s.intent(step)]; pi != nil {
		return pi.LatestCharge()
	}
	return ""
}
