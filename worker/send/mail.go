package send

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	netmail "net/mail"
	"strings"
	"unicode/utf8"

	gomail "github.com/wneessen/go-mail"

	"paidonce/store"
)

// letter is a mail as it goes over the wire. For one effect it is the same
// bytes on every attempt, so that a copy can be seen to be one.
type letter struct {
	from, to      string   // envelope, each in angle brackets
	addresses     []string // as bare text, to be kept out of what is shown
	international bool     // an address is not ASCII: the server needs SMTPUTF8
	bytes         []byte
}

// maxLine is the longest line of a mail, without its end (RFC 5322 §2.1.1).
const maxLine = 998

// compose makes the mail of an effect. Its errors are for the operator and hold
// none of the mail.
func compose(c store.EffectClaim) (letter, error) {
	var m store.MailCall
	if err := json.Unmarshal(c.Body, &m); err != nil {
		return letter{}, errors.New("the body of the effect is not a mail")
	}
	from, err := oneAddress("from", m.From)
	if err != nil {
		return letter{}, err
	}
	to, err := oneAddress("to", m.To)
	if err != nil {
		return letter{}, err
	}
	if hasControl(m.Subject) {
		return letter{}, errors.New("the subject holds a line break or another control character")
	}
	if m.Text == "" && m.HTML == "" {
		return letter{}, errors.New("the mail has neither text nor html")
	}
	raw, err := write(c, m, from, to)
	if err != nil {
		return letter{}, err
	}
	return letter{
		from:          envelope(from),
		to:            envelope(to),
		addresses:     []string{from.Address, to.Address},
		international: !isASCII(from.Address) || !isASCII(to.Address),
		bytes:         raw,
	}, nil
}

func write(c store.EffectClaim, m store.MailCall, from, to *netmail.Address) ([]byte, error) {
	msg := gomail.NewMsg(gomail.WithNoDefaultUserAgent(), gomail.WithBoundary(boundary(c)))
	msg.FromMailAddress(from)
	msg.ToMailAddress(to)
	msg.Subject(m.Subject)
	msg.SetDateWithValue(c.CreatedAt.Std())
	msg.SetMessageIDWithValue(messageID(c.Key, from.Address))
	msg.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: no out-of-office replies
	switch {
	case m.HTML == "":
		msg.SetBodyString(gomail.TypeTextPlain, m.Text)
	case m.Text == "":
		msg.SetBodyString(gomail.TypeTextHTML, m.HTML)
	default: // the last part is the one that is preferred (RFC 2046 §5.1.4)
		msg.SetBodyString(gomail.TypeTextPlain, m.Text)
		msg.AddAlternativeString(gomail.TypeTextHTML, m.HTML)
	}
	var b bytes.Buffer
	if _, err := msg.WriteTo(&b); err != nil {
		return nil, errors.New("the mail cannot be written")
	}
	for line := range bytes.SplitSeq(b.Bytes(), []byte("\r\n")) {
		if len(line) > maxLine {
			return nil, errors.New("the subject or an address is too long for a line of mail")
		}
	}
	return b.Bytes(), nil
}

// oneAddress reads exactly one RFC 5322 address.
func oneAddress(field, value string) (*netmail.Address, error) {
	if hasControl(value) {
		return nil, fmt.Errorf("%s holds a line break or another control character", field)
	}
	a, err := netmail.ParseAddress(value)
	if err != nil || hasControl(a.Address) || hasControl(a.Name) {
		return nil, fmt.Errorf("%s is not exactly one mail address", field)
	}
	return a, nil
}

// envelope is <address> as MAIL and RCPT take it, with a local part quoted
// where it needs that.
func envelope(a *netmail.Address) string {
	return (&netmail.Address{Address: a.Address}).String()
}

// messageID is KEY@DOMAIN, where DOMAIN is that of the sender's address.
func messageID(key, from string) string {
	return dotAtom(key) + "@" + dotAtom(from[strings.LastIndexByte(from, '@')+1:])
}

// dotAtom writes s with the characters that a Message-ID may hold (RFC 5322
// §3.2.3), others as =XX. Different texts stay different.
func dotAtom(s string) string {
	const atext = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-/?^_`{|}~" // but for =
	if len(s) > 200 {
		sum := sha256.Sum256([]byte(s))
		return hex.EncodeToString(sum[:])
	}
	var b strings.Builder
	for i := range len(s) {
		inner := s[i] == '.' && i > 0 && i < len(s)-1 && s[i-1] != '.'
		if inner || strings.IndexByte(atext, s[i]) >= 0 {
			b.WriteByte(s[i])
		} else {
			fmt.Fprintf(&b, "=%02X", s[i])
		}
	}
	return b.String()
}

// boundary separates the parts of one mail. It is a hash of what the parts hold
// among other things, so none of them can hold it.
func boundary(c store.EffectClaim) string {
	h := sha256.New()
	fmt.Fprintf(h, "%d %s", len(c.Key), c.Key)
	h.Write(c.Body)
	return "paidonce-" + hex.EncodeToString(h.Sum(nil)[:20])
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}
