// Package stripefake is a model of Stripe: an account in memory with its
// objects, the ways they may change, the events that each change sends, and a
// ledger of what truly happened to the money.
//
// It is written from what Stripe documents and from recorded event bodies. It
// knows nothing of the rules in store/payment and must not come to: a test that
// holds the two against each other is to compare two opinions, not one with
// itself.
//
// The model is deterministic. It has no clock but the one its caller advances,
// in whole seconds, so that several events in one second are the normal case;
// ids depend on a seed alone. A change that Stripe would refuse returns a
// *Refusal and changes nothing; [Account.Check] looks for states that Stripe
// cannot be in. Where Stripe's behaviour is not documented, [Config] has both.
//
// Objects and their changes are in one file per kind; how they look in JSON is
// in render*.go, what is sent when in events.go. An Account is not safe for
// concurrent use.
//
// # Over HTTP
//
// [Server] is that account as a program meets it: the API with its errors and
// idempotency keys, the page on which a buyer pays, and signed webhook
// deliveries. Calls and deliveries go wrong on demand: [Server.Fault],
// [DeliveryConfig]. It decides nothing about money; every call becomes a change
// of the one Account, under one lock, or a refusal that changes nothing. It
// refuses parameters that it does not model, rather than to overlook them. It
// never leaves the machine by itself: it serves whom its caller lets in, and
// posts only to the endpoints it was given. A test uses it like this:
//
//	fake := stripefake.NewServer(stripefake.ServerConfig{Now: clock.Now, Key: "sk_test_x"})
//	api := httptest.NewServer(fake)
//	defer api.Close()
//	defer fake.Close() // before api.Close: it lets go of calls that a fault holds
//	// … the program under test runs with api.URL as its Stripe; then
//	fake.SetWebhook(shop.URL+"/webhooks/stripe", "whsec_x")
//	fake.Start(ctx)
//
//	fake.FaultNext("POST /v1/refunds", stripefake.Fault{Kind: stripefake.ClosedAfter})
//	fake.Pay(session)                                   // the buyer
//	fake.Do(func(a *stripefake.Account) error { … })    // banks, and whatever else
//	fake.Drain(ctx)                                     // all is delivered
//	fake.Ledger().Sums()                                // what truly happened,
//	fake.RefundsWith("paidonce_operation", key)         // and how often
//
// The server's clock is ServerConfig.Now, or stands still until Account.Advance:
// with it sessions run out, keys are forgotten after 24 hours, and events leave
// the list after 30 days.
package stripefake

import (
	"fmt"
	"hash/fnv"
	"strconv"
)

// The shapes in which Stripe renders objects, by the API version of the
// account. Between the two, a payment intent's list of charges became
// latest_charge, a charge lost its list of refunds and its invoice, every
// refund got events of its own, and Checkout began to make its payment intent
// only when the buyer confirms.
const (
	Classic = "2020-08-27"
	Basil   = "2025-08-27.basil"
)

// Release is how the part of a hold that was never captured shows on its
// charge. Third parties have seen all three.
type Release int

const (
	ReleaseHidden Release = iota // nowhere: amount and amount_captured differ
	ReleaseAmount                // in amount_refunded
	ReleaseRefund                // in amount_refunded, and as a refund of its own, reason expired_uncaptured_charge
)

// Config is what an account is like for good.
type Config struct {
	Seed       uint64 // of all ids
	APIVersion string // Classic or Basil; "" is Basil
	Livemode   bool
	Connected  string // the acct_ that events name, for a platform's endpoint; "" is none
	Start      int64  // the clock at first, in seconds
	Settlement string // the currency of the balance; "" is the charge's own

	Release Release
	// FailureLowers: a charge's amount_refunded goes down again when a refund
	// fails. Otherwise it never goes down.
	FailureLowers bool
	// BareDisputes: charge.dispute.created is rendered before the withdrawal
	// is booked, so that its balance_transactions are empty.
	BareDisputes bool
}

// Account is one Stripe account.
type Account struct {
	cfg Config
	now int64

	chapter int // see Chapter
	serial  map[string]int
	late    struct { // see Lag
		eventType string
		seconds   int64
	}

	sessions map[string]*Session
	intents  map[string]*Intent
	charges  map[string]*Charge
	refunds  map[string]*Refund
	disputes map[string]*Dispute
	invoices map[string]*Invoice
	order    []string // every object's id, in order of creation

	events  []Event
	ledger  Ledger
	request request
}

// New opens an account.
func New(cfg Config) *Account {
	if cfg.APIVersion == "" {
		cfg.APIVersion = Basil
	}
	if cfg.Start == 0 {
		cfg.Start = 1750000000
	}
	return &Account{
		cfg: cfg, now: cfg.Start, serial: make(map[string]int),
		sessions: make(map[string]*Session), intents: make(map[string]*Intent), charges: make(map[string]*Charge),
		refunds: make(map[string]*Refund), disputes: make(map[string]*Dispute), invoices: make(map[string]*Invoice),
	}
}

// Now is the model's clock, in seconds.
func (a *Account) Now() int64 { return a.now }

// Advance moves the clock.
func (a *Account) Advance(seconds int64) { a.now += max(seconds, 0) }

// Chapter begins a numbered part of the account's history: the ids made in it
// depend on the seed and the number alone. So a history from which a part is
// taken away keeps the ids of the other parts.
func (a *Account) Chapter(n int) {
	a.chapter = n
	clear(a.serial)
}

// newID makes an id. Ids do not sort in the order in which they are made, as
// they do not at Stripe either.
func (a *Account) newID(prefix string) string {
	a.serial[prefix]++
	n := a.serial[prefix]
	h := fnv.New64a()
	fmt.Fprintf(h, "%d/%d/%s/%d", a.cfg.Seed, a.chapter, prefix, n)
	name := fmt.Sprintf("%s%03s", prefix, strconv.FormatUint(h.Sum64()%46656, 36))
	if prefix == "evt_" { // many in a chapter, and never read by people
		return prefix + strconv.FormatUint(h.Sum64(), 36) + strconv.FormatUint(a.cfg.Seed, 36)
	}
	letter := 'a' + rune((n-1)%26)
	if n > 26 { // a server's account has all its objects in one chapter
		return fmt.Sprintf("%s%c%dx%dn%d", name, letter, a.chapter, a.cfg.Seed, n)
	}
	return fmt.Sprintf("%s%c%dx%d", name, letter, a.chapter, a.cfg.Seed)
}

// created notes a new object.
func (a *Account) created(id string) string {
	a.order = append(a.order, id)
	return id
}

func (a *Account) basil() bool { return a.cfg.APIVersion == Basil }

// Refusal is Stripe's no. Code is one of Stripe's error codes or, where Stripe
// has none, a word of the model's own, which the API leaves out (ownCodes).
type Refusal struct{ Code, Message string }

func (r *Refusal) Error() string { return r.Message }

// refuse says that the object cannot do this in its state.
func refuse(code, format string, args ...any) error {
	return &Refusal{Code: code, Message: fmt.Sprintf(format, args...)}
}

// find looks an object up.
func find[T any](objects map[string]*T, id string) (*T, error) {
	if o, ok := objects[id]; ok {
		return o, nil
	}
	return nil, refuse("resource_missing", "no such object: %s", id)
}

// copyOf returns the object as it is now.
func copyOf[T any](objects map[string]*T, id string) (T, bool) {
	if o, ok := objects[id]; ok {
		return *o, true
	}
	var none T
	return none, false
}

// FindSession returns a Checkout Session as it is now.
func (a *Account) FindSession(id string) (Session, bool) { return copyOf(a.sessions, id) }

// FindIntent returns a payment intent as it is now.
func (a *Account) FindIntent(id string) (Intent, bool) { return copyOf(a.intents, id) }

// FindCharge returns a charge as it is now.
func (a *Account) FindCharge(id string) (Charge, bool) { return copyOf(a.charges, id) }

// FindRefund returns a refund as it is now.
func (a *Account) FindRefund(id string) (Refund, bool) { return copyOf(a.refunds, id) }

// FindDispute returns a dispute as it is now.
func (a *Account) FindDispute(id string) (Dispute, bool) { return copyOf(a.disputes, id) }

// FindInvoice returns an invoice as it is now.
func (a *Account) FindInvoice(id string) (Invoice, bool) { return copyOf(a.invoices, id) }
