package handler

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"time"

	"paidonce/store"
)

// github verifies GitHub's scheme, `X-Hub-Signature-256: sha256=HEX` over the
// raw bytes, whatever their content type (a form is stored as a form). The
// older SHA-1 header is not looked at: to accept it would be a downgrade.
//
// Nothing but the body is signed, so a replay can carry a new delivery id: the
// hash of the body is unique too (design.md §2).
type github struct {
	scope string
	keys  [][]byte
}

func (g *github) accept(header http.Header, body []byte, now time.Time) (store.NewEvent, error) {
	line, ok := firstLine(header, "X-Hub-Signature-256")
	if !ok {
		return store.NewEvent{}, missingSignature("no X-Hub-Signature-256 header")
	}
	text, ok := strings.CutPrefix(line, "sha256=")
	if !ok {
		return store.NewEvent{}, badSignature("X-Hub-Signature-256 header without sha256=")
	}
	signature, err := hex.DecodeString(text)
	if err != nil {
		return store.NewEvent{}, badSignature("unreadable X-Hub-Signature-256 header")
	}
	if !signedBy(g.keys, signature, body) {
		return store.NewEvent{}, badSignature("signature mismatch")
	}
	e := store.NewEvent{
		Scope: g.scope, Tenant: mainTenant, BodyHash: hexSum(body),
		OccurredAt: store.At(now), // it does not say
	}
	if e.ID = header.Get("X-GitHub-Delivery"); !usable(e.ID) {
		e.ID = "sha256:" + e.BodyHash
	}
	if e.Type = header.Get("X-GitHub-Event"); !usable(e.Type) {
		e.Type = ""
	}
	return e, nil
}

// signedBy reports whether signature is the HMAC-SHA256 of the parts, one
// after the other, by any of the keys.
func signedBy(keys [][]byte, signature []byte, parts ...[]byte) bool {
	for _, key := range keys {
		if hmac.Equal(signature, sign(key, parts...)) {
			return true
		}
	}
	return false
}

func sign(key []byte, parts ...[]byte) []byte {
	mac := hmac.New(sha256.New, key)
	for _, part := range parts {
		mac.Write(part)
	}
	return mac.Sum(nil)
}
