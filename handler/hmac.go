package handler

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"time"

	"paidonce/store"
)

// plainHMAC verifies an HMAC-SHA256 as the operator describes it: of the body,
// or of `timestamp.body` where a timestamp header is named. An id from a header
// is not signed, so the hash of the body is unique too (design.md §2).
type plainHMAC struct {
	scope                         string
	keys                          [][]byte
	signatureHeader, prefix       string
	idHeader, timestampHeader     string
	missing, noPrefix, unreadable string // reasons, which are built once
	missingTime, unreadableTime   string
	decode                        func(string) ([]byte, error)
}

func newHMAC(s Source, keys [][]byte) (*plainHMAC, error) {
	if s.SignatureHeader == "" {
		return nil, errors.New("signature_header is missing")
	}
	p := &plainHMAC{
		scope: s.OwnScope(), keys: keys,
		signatureHeader: s.SignatureHeader, prefix: s.Prefix, idHeader: s.IDHeader, timestampHeader: s.TimestampHeader,
		missing:        "no " + s.SignatureHeader + " header",
		noPrefix:       s.SignatureHeader + " header without its prefix",
		unreadable:     "unreadable " + s.SignatureHeader + " header",
		missingTime:    "no " + s.TimestampHeader + " header",
		unreadableTime: "unreadable " + s.TimestampHeader + " header",
	}
	switch s.Encoding {
	case "", "hex":
		p.decode = hex.DecodeString
	case "base64":
		p.decode = base64.StdEncoding.Strict().DecodeString
	default:
		return nil, errors.New("encoding must be hex or base64")
	}
	return p, nil
}

func (p *plainHMAC) accept(header http.Header, body []byte, now time.Time) (store.NewEvent, error) {
	line, ok := firstLine(header, p.signatureHeader)
	if !ok {
		return store.NewEvent{}, missingSignature(p.missing)
	}
	at, head, err := p.signedTime(header, now)
	if err != nil {
		return store.NewEvent{}, err
	}
	text, ok := strings.CutPrefix(line, p.prefix)
	if !ok {
		return store.NewEvent{}, badSignature(p.noPrefix)
	}
	signature, err := p.decode(text)
	if err != nil {
		return store.NewEvent{}, badSignature(p.unreadable)
	}
	if !signedBy(p.keys, signature, head, body) {
		return store.NewEvent{}, badSignature("signature mismatch")
	}
	if p.timestampHeader != "" && !current(at.Unix(), now) {
		return store.NewEvent{}, wrongTimestamp()
	}
	e := store.NewEvent{
		Scope: p.scope, Tenant: mainTenant, BodyHash: hexSum(body), Type: bodyType(body), OccurredAt: store.At(at),
	}
	if p.idHeader != "" {
		e.ID = header.Get(p.idHeader)
	}
	if !usable(e.ID) {
		e.ID = "sha256:" + e.BodyHash
	}
	return e, nil
}

// signedTime reads the timestamp header and what it puts in front of the body.
// Without one, the time of the event is now.
func (p *plainHMAC) signedTime(header http.Header, now time.Time) (time.Time, []byte, error) {
	if p.timestampHeader == "" {
		return now, nil, nil
	}
	line, ok := firstLine(header, p.timestampHeader)
	if !ok {
		return time.Time{}, nil, missingSignature(p.missingTime)
	}
	seconds, ok := plainSeconds(line)
	if !ok {
		return time.Time{}, nil, badSignature(p.unreadableTime)
	}
	return time.Unix(seconds, 0), []byte(line + "."), nil
}
