package handler

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v82/webhook"

	"paidonce/store"
	"paidonce/store/payment"
)

// stripe verifies Stripe's own scheme, `Stripe-Signature: t=…,v1=…`.
type stripe struct {
	source  Source
	secrets []string
	ignore  bool // foreign = "ignore"
}

func newStripe(s Source, keys [][]byte) (*stripe, error) {
	v := &stripe{source: s, ignore: s.Foreign == ForeignIgnore || s.Foreign == "" && s.Account == accountAny}
	if s.Foreign != "" && s.Foreign != ForeignReject && s.Foreign != ForeignIgnore {
		return nil, errors.New("foreign must be reject or ignore")
	}
	switch s.Account {
	case "", accountSelf, accountAny:
	default:
		if !accountID.MatchString(s.Account) {
			return nil, errors.New(`account must be self, acct_… or "*"`)
		}
	}
	for _, key := range keys {
		v.secrets = append(v.secrets, string(key))
	}
	return v, nil
}

func (s *stripe) accept(header http.Header, body []byte, now time.Time) (store.NewEvent, error) {
	if err := s.verify(header, body, now); err != nil {
		return store.NewEvent{}, err
	}
	return s.event(body)
}

// verify checks the signature with every secret, and then the timestamp. The
// other way round, as stripe-go has it, a forged header with an old timestamp
// is told that it is too old; and stripe-go takes any time in the future.
//
// Only the first line of the header counts.
func (s *stripe) verify(header http.Header, body []byte, now time.Time) error {
	line, ok := firstLine(header, "Stripe-Signature")
	if !ok {
		return missingSignature("no Stripe-Signature header")
	}
	if err := s.verifyLine(line, body); err != nil {
		return err
	}
	// stripe-go reads a missing t as the year 1 and verifies against that.
	t, ok := stripeTimestamp(line)
	if !ok {
		return badSignature("Stripe-Signature header without a timestamp")
	}
	if !current(t, now) {
		return wrongTimestamp()
	}
	return nil
}

func (s *stripe) verifyLine(line string, body []byte) error {
	var err error
	for _, secret := range s.secrets {
		// The tolerance is checked by our own clock, see verify.
		if err = webhook.ValidatePayloadIgnoringTolerance(body, line, secret); err == nil {
			return nil
		}
	}
	if errors.Is(err, webhook.ErrInvalidHeader) {
		return badSignature("unreadable Stripe-Signature header")
	}
	return badSignature("signature mismatch")
}

// stripeTimestamp reads t from a header that stripe-go has verified, by its
// rules: of two, the last one counts.
func stripeTimestamp(line string) (seconds int64, ok bool) {
	for pair := range strings.SplitSeq(line, ",") {
		text, found := strings.CutPrefix(pair, "t=")
		if !found {
			continue
		}
		var err error
		if seconds, err = strconv.ParseInt(text, 10, 64); err != nil {
			return 0, false
		}
		ok = true
	}
	return seconds, ok
}

// event reads the envelope of a verified body and decides whose event it is.
// Anything but a foreign one is taken, whatever its body is worth: the worker
// quarantines what cannot be used.
func (s *stripe) event(body []byte) (store.NewEvent, error) {
	env := payment.ParseEnvelope(body)
	live := s.source.Live
	if env.HasLivemode {
		live = env.Livemode
	}
	e := store.NewEvent{
		Scope: s.source.Scope(env.Account, live), ID: env.ID, Tenant: s.tenant(env.Account),
		Type: env.Type, APIVersion: env.APIVersion, OccurredAt: store.Time(env.Created),
	}
	var err error
	switch {
	case !s.ours(env.Account):
		// In a tenant where no order can be, for its colon: a person who
		// requeues it one day still cannot let foreign money pay an order (P5).
		e.Tenant = store.ForeignTenant + env.Account
		e.Ignored, err = "it belongs to another account", wrongAccount()
	case live != s.source.Live:
		e.Tenant = store.ForeignTenant + mode(live)
		e.Ignored, err = "it is a "+mode(live)+" event, and this is "+mode(s.source.Live)+" mode", wrongMode()
	}
	if err != nil && !s.ignore {
		return store.NewEvent{}, err
	}
	if e.ID == "" {
		e.ID = hashID(body)
		if e.Ignored == "" {
			e.Scope = s.source.OwnScope()
		}
	}
	return e, nil
}

// ours reports whether an event that names account is for this source. One
// that names none belongs to the source's own account.
func (s *stripe) ours(account string) bool {
	return account == "" || account == s.source.Account ||
		s.source.Account == accountAny && accountID.MatchString(account)
}

// tenant is where the orders of an event are looked up. An order belongs to one
// account: under "*" each connected account is a tenant of its own, so that
// its money, which its own metadata ties to an order id, can never pay an order
// of the platform or of another account that has the same id (P5).
func (s *stripe) tenant(account string) string {
	if s.source.Account == accountAny && account != "" {
		return account
	}
	return mainTenant
}
