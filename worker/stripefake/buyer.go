package stripefake

import "slices"

// The buyer's side of a session, as whole visits: what one person does on the
// page, from "pay" to the end.

// PaySession is a buyer who pays in a session by one of its methods. A card is
// charged at once, or held where the session says so; a debit leaves the
// session complete and unpaid until [Account.Succeed] or [Account.Fail] is the
// bank's word. A free session is completed without paying.
func (a *Account) PaySession(id string, m Method) (Session, error) {
	s, err := find(a.sessions, id)
	if err != nil {
		return Session{}, err
	}
	if s.PaymentStatus == SessionFree {
		err := a.CompleteSession(id)
		return *s, err
	}
	pi, err := a.begin(s, m)
	switch {
	case err != nil:
		return Session{}, err
	case pi.manual:
		err = a.Authorize(pi.ID)
	case pi.method == Debit:
		err = a.Process(pi.ID)
	default:
		err = a.Succeed(pi.ID)
	}
	if err != nil {
		return Session{}, err
	}
	err = a.CompleteSession(id)
	return *s, err
}

// DeclineSession is a buyer whose card is declined, with Stripe's decline code
// ("generic_decline"). The session stays open for another attempt.
func (a *Account) DeclineSession(id, code string) (Session, error) {
	s, err := find(a.sessions, id)
	if err != nil {
		return Session{}, err
	}
	pi, err := a.begin(s, Card)
	if err != nil {
		return Session{}, err
	}
	err = a.Fail(pi.ID, code)
	return *s, err
}

// AskBuyerIn is a bank that wants to see the buyer (3D Secure) before a session
// goes on. [Account.PaySession] or [Account.DeclineSession] is how it ends.
func (a *Account) AskBuyerIn(id string) (Session, error) {
	s, err := find(a.sessions, id)
	if err != nil {
		return Session{}, err
	}
	pi, err := a.begin(s, Card)
	if err != nil {
		return Session{}, err
	}
	err = a.RequireAction(pi.ID)
	return *s, err
}

// begin is an attempt in a session by a method. A refusal changes nothing.
func (a *Account) begin(s *Session, m Method) (*Intent, error) {
	if m != s.method && !slices.Contains(s.methods, m) || s.manual && m == Debit {
		return nil, refuse("payment_intent_incompatible_payment_method", "nobody can pay by %s in %s", m.name(), s.ID)
	}
	if s.Intent != "" && s.Status == SessionOpen {
		if _, err := a.awaitsBuyer(s.Intent); err != nil {
			return nil, err
		}
	}
	before := s.method
	s.method = m // an intent made now is made for it
	pi, err := a.ConfirmSession(s.ID)
	if err != nil {
		s.method = before
		return nil, err
	}
	made := a.intents[pi.ID]
	made.method = m
	return made, nil
}

// ExpireDue ends every open session whose time has passed, oldest first.
func (a *Account) ExpireDue() {
	for _, id := range a.order {
		if s := a.sessions[id]; s != nil && s.Status == SessionOpen && s.ExpiresAt <= a.now {
			// One whose money is on its way is refused, and completes.
			_ = a.ExpireSession(id)
		}
	}
}
