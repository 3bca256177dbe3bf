// Package send carries one effect out: a signed HTTP call, one mail, one
// program. Each sender is configured for one target and has one method,
//
//	Send(ctx context.Context, c store.EffectClaim) store.Answer
//
// which makes exactly one call with the frozen body of the claim and says what
// is known of it afterwards.
//
// The rule that makes it safe: an Outcome never says more than is known. Done
// is said only on the other side's own word, Refused and Again only where
// nothing has happened or where the same key may go out twice, and Unknown
// whenever it may have happened.
//
// It never retries, follows, redirects or stores anything; what happens next is
// decided by the store, from the kind of the effect and the Outcome. No text of
// an Answer but its Body holds a secret, a path, a query, or a customer's data.
package send

import (
	"errors"
	"strings"
	"unicode/utf8"

	"paidonce/store"
)

// maxErrorText is the longest Answer.Error and Answer.Ref, in bytes
// (store.Answer).
const maxErrorText = 200

var errNoClock = errors.New("send: Now is not set")

// failed is the answer of a call that did not come to a proper end.
func failed(outcome store.Outcome, text string) store.Answer {
	return store.Answer{Outcome: outcome, Error: cutText(text)}
}

// cutText cuts s at maxErrorText bytes, between characters.
func cutText(s string) string {
	if len(s) <= maxErrorText {
		return s
	}
	n := maxErrorText
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// hasControl reports whether s holds a control character: what ends a line, a
// field or a string somewhere else.
func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}
