package stripefake

import "slices"

// Life is what happens to a shop's orders at Stripe: the steps that people and
// banks take, and with them all events and the truth about the money. The same
// Seed, World, Orders and Steps always give the same life.
type Life struct {
	Seed   uint64
	World  Config
	Orders []Order
	Steps  []Step
	Lost   []string // ids of events that never arrive

	// What follows from the steps; Replay fills it in.
	Account *Account
	Events  []Event // those that arrive
	Ledger  Ledger
}

// Order is the shop's side: what it registers, if it ever does. Fields are those
// of a registration.
type Order struct {
	ID, Currency, Policy string
	Total                int64
	AllowDiscount        bool
	PaymentIntent        string
	Refs                 []string
	Unregistered         bool  // the shop forgets about it
	Closed               int64 // when the shop closed it, in seconds; 0 is never
}

// Act is one kind of step.
type Act string

const (
	ActOpenSession    Act = "open session"
	ActCreateIntent   Act = "create intent"
	ActChargeDirectly Act = "charge directly"
	ActSubscribe      Act = "subscribe"
	ActRenew          Act = "renew"
	ActAskBuyer       Act = "ask the buyer"
	ActDecline        Act = "decline"
	ActPay            Act = "pay"
	ActSettle         Act = "settle"
	ActBounce         Act = "bounce"
	ActCapture        Act = "capture"
	ActCancel         Act = "cancel"
	ActHoldExpires    Act = "hold expires"
	ActExpireSession  Act = "expire session"
	ActRefund         Act = "refund"
	ActRefundLater    Act = "refund, pending"
	ActRefundWaits    Act = "refund needs action"
	ActRefundArrives  Act = "refund arrives"
	ActRefundFails    Act = "refund fails"
	ActRefundReturned Act = "refund is returned"
	ActRefundCanceled Act = "refund is canceled"
	ActInquire        Act = "inquire"
	ActChargeBack     Act = "charge back"
	ActAnswer         Act = "answer the bank"
	ActEscalate       Act = "escalate"
	ActCloseInquiry   Act = "close the inquiry"
	ActPrevent        Act = "prevent"
	ActWin            Act = "win"
	ActLose           Act = "lose"
	ActReinstate      Act = "reinstate"
	ActTurn           Act = "turn"
	ActTouch          Act = "touch"
	ActRepeat         Act = "send again as another event"
)

// Step is one thing that somebody does. On is the number of the step that made
// what it is done to: a payment, a refund or a dispute.
type Step struct {
	N       int
	Wait    int64 // seconds that pass before it
	Act     Act
	On      int
	Amount  int64
	Gap     int64    // ActPay: seconds until the session completes
	Lag     int64    // ActPay by debit: how late its event's created is
	Opening *Opening // the acts that begin a payment
}

// Opening is how a payment begins, and which order it names where.
type Opening struct {
	Pricing  Pricing
	Currency string
	Method   Method
	Manual   bool
	Link     string // the Payment Link that the session is of

	Reference string // client_reference_id
	OnSession string // metadata.order_id of the session
	OnIntent  string // metadata.order_id of the payment intent, or of a direct charge
}

func (o Opening) names(id string) map[string]string {
	if id == "" {
		return nil
	}
	return map[string]string{"order_id": id}
}

// Replay lives the life again. Steps that Stripe refuses by now, because what
// they were done to is gone, are left out of the result.
func (l Life) Replay() Life {
	s := newStage(l.Seed, l.World)
	var steps []Step
	for _, step := range l.Steps {
		if s.do(step) == nil {
			steps = append(steps, step)
		}
	}
	l.Steps = steps
	l.setTruth(s.account)
	return l
}

// setTruth takes over what follows from the steps.
func (l *Life) setTruth(a *Account) {
	l.Account, l.Ledger = a, a.Ledger()
	l.Events = slices.DeleteFunc(slices.Clone(a.Events()), func(e Event) bool { return slices.Contains(l.Lost, e.ID) })
}
