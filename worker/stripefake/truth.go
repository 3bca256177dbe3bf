package stripefake

// What truly happened, for tests that hold the shop's books against it.

// Ledger is what happened to the money so far.
func (s *Server) Ledger() Ledger {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.account.Ledger()
}

// Check looks for states that Stripe cannot be in: see [Account.Check].
func (s *Server) Check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.account.Check()
}

// RefundsWith are the refunds with this value of a metadata name, in order of
// creation, whatever has become of them.
func (a *Account) RefundsWith(name, value string) []Refund {
	return having(a, a.refunds, func(r *Refund) bool { return r.Metadata[name] == value })
}

// SessionsWith are the sessions with this value of a metadata name, in order of
// creation.
func (a *Account) SessionsWith(name, value string) []Session {
	return having(a, a.sessions, func(s *Session) bool { return s.Metadata[name] == value })
}

// having are copies of the objects that are wanted, in order of creation.
func having[T any](a *Account, objects map[string]*T, wanted func(o *T) bool) []T {
	var list []T
	for _, id := range a.order {
		if o := objects[id]; o != nil && wanted(o) {
			list = append(list, *o)
		}
	}
	return list
}

// RefundsWith are the refunds with this value of a metadata name: a call that
// must happen once has one.
func (s *Server) RefundsWith(name, value string) []Refund {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.account.RefundsWith(name, value)
}

// SessionsWith are the sessions with this value of a metadata name.
func (s *Server) SessionsWith(name, value string) []Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.account.SessionsWith(name, value)
}

// Events are all events so far, delivered or not, in the order in which they
// came about.
func (s *Server) Events() []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Event(nil), s.account.events...)
}
