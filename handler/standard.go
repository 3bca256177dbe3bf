package handler

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"

	"paidonce/store"
	"paidonce/store/payment"
)

// standard verifies Standard Webhooks 1.0.0: the HMAC of `id.timestamp.body`,
// in a list of `v1,BASE64` with spaces between. Other versions in the list,
// such as v1a, are passed over.
type standard struct {
	scope string
	keys  [][]byte
}

func (s *standard) accept(header http.Header, body []byte, now time.Time) (store.NewEvent, error) {
	id, hasID := firstLine(header, "Webhook-Id")
	timestamp, hasTime := firstLine(header, "Webhook-Timestamp")
	list, hasList := firstLine(header, "Webhook-Signature")
	switch {
	case !hasList:
		return store.NewEvent{}, missingSignature("no webhook-signature header")
	case !hasID:
		return store.NewEvent{}, missingSignature("no webhook-id header")
	case !hasTime:
		return store.NewEvent{}, missingSignature("no webhook-timestamp header")
	}
	seconds, ok := plainSeconds(timestamp)
	if !ok {
		return store.NewEvent{}, badSignature("unreadable webhook-timestamp header")
	}
	if !s.listed(list, []byte(id+"."+timestamp+"."), body) {
		return store.NewEvent{}, badSignature("signature mismatch")
	}
	if !current(seconds, now) {
		return store.NewEvent{}, wrongTimestamp()
	}
	e := store.NewEvent{
		Scope: s.scope, Tenant: mainTenant, ID: id, Type: bodyType(body),
		OccurredAt: store.Time(seconds * 1000), // of this attempt: the nearest to it that is signed
	}
	if !usable(id) {
		e.ID = hashID([]byte(id)) // it is signed, so it still tells events apart
	}
	return e, nil
}

// listed reports whether one of the v1 signatures in list is good.
func (s *standard) listed(list string, head, body []byte) bool {
	for entry := range strings.SplitSeq(list, " ") {
		text, ok := strings.CutPrefix(entry, "v1,")
		if !ok {
			continue
		}
		signature, err := base64.StdEncoding.Strict().DecodeString(text)
		if err == nil && signedBy(s.keys, signature, head, body) {
			return true
		}
	}
	return false
}

// plainSeconds reads a timestamp of digits alone. The text is what was signed:
// a sign or a leading zero would be a second spelling of the same time.
func plainSeconds(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != text {
		return 0, false
	}
	return n, true
}

// bodyType is the `type` of a JSON body from a sender that is not Stripe; "" if
// it has none.
func bodyType(body []byte) string { return payment.ParseEnvelope(body).Type }
