package handler

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"paidonce/store"
)

// The providers: who signs, and how.
const (
	ProviderStripe   = "stripe"
	ProviderGitHub   = "github"
	ProviderStandard = "standard" // Standard Webhooks 1.0.0
	ProviderHMAC     = "hmac"     // any other HMAC-SHA256, as configured
)

// What a Stripe source does with events of another account or mode.
const (
	ForeignReject = "reject" // 403
	ForeignIgnore = "ignore" // 200, recorded as ignored
)

const (
	accountSelf = "self"
	accountAny  = "*"
	// mainTenant is where the orders of the source's own account are.
	mainTenant = "main"

	defaultMaxBody = 1 << 20  // Stripe publishes no limit; its bodies are a few KB
	githubMaxBody  = 25 << 20 // GitHub's own limit
)

// Source is a configured sender with its own URL, /webhooks/{Name}.
type Source struct {
	Name     string
	Provider string
	Secrets  []Secret // several while one is being replaced
	MaxBody  int64    // bytes; 0 is 1 MiB, for github 25 MiB

	// For stripe alone.

	Account string // "self", "acct_…", or "*" for Connect; "" is self
	Foreign string // reject or ignore; "" is reject, and ignore under "*"
	Live    bool   // INTEGRATION_ENV is live: events of the other mode are foreign

	// For hmac alone.

	SignatureHeader string
	Prefix          string // what stands before the signature, such as "sha256="
	Encoding        string // hex or base64; "" is hex
	IDHeader        string // "": the hash of the body is the id
	// TimestampHeader, when set, makes the signed text `timestamp.body`, good
	// for 300 seconds.
	TimestampHeader string
}

// Scope is the namespace of an event's id. account is the connected account
// that a Stripe event names; "" is the source's own. live is the event's mode.
func (s Source) Scope(account string, live bool) string {
	if s.Provider != ProviderStripe {
		return s.Provider + ":" + s.Name + ":-"
	}
	if account == "" {
		account = s.ownAccount()
	}
	return s.Provider + ":" + account + ":" + mode(live)
}

// OwnScope is the scope of the source's own account in its own mode: the one
// that the database remembers.
func (s Source) OwnScope() string { return s.Scope("", s.Live) }

func (s Source) ownAccount() string {
	if s.Account == "" || s.Account == accountAny {
		return accountSelf
	}
	return s.Account
}

func mode(live bool) string {
	if live {
		return "live"
	}
	return "test"
}

// scheme proves that a request comes from the one who knows a secret, and says
// what it is. Source, Via and Body of the event are left to the caller. The
// error is a failure: refused, and why.
type scheme interface {
	accept(header http.Header, body []byte, now time.Time) (store.NewEvent, error)
}

// configured is a Source that has been checked, ready for work.
type configured struct {
	name    string
	maxBody int64
	scheme
}

var (
	sourceName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	accountID  = regexp.MustCompile(`^acct_[A-Za-z0-9_]{1,60}$`)
)

// configure checks s and chooses its scheme.
func (s Source) configure() (*configured, error) {
	if !sourceName.MatchString(s.Name) {
		return nil, errors.New("the name must be 1 to 64 letters, digits, dashes or underscores")
	}
	if len(s.Secrets) == 0 {
		return nil, errors.New("there is no secret")
	}
	keys := make([][]byte, len(s.Secrets))
	for i, secret := range s.Secrets {
		if secret.empty() {
			return nil, errors.New("a secret is empty: anybody could sign with it")
		}
		keys[i] = secret.bytes()
	}
	c := &configured{name: s.Name, maxBody: s.MaxBody}
	switch {
	case s.MaxBody < 0:
		return nil, errors.New("max_body is negative")
	case s.MaxBody == 0 && s.Provider == ProviderGitHub:
		c.maxBody = githubMaxBody
	case s.MaxBody == 0:
		c.maxBody = defaultMaxBody
	}
	var err error
	switch s.Provider {
	case ProviderStripe:
		c.scheme, err = newStripe(s, keys)
	case ProviderGitHub:
		c.scheme = &github{scope: s.OwnScope(), keys: keys}
	case ProviderStandard:
		c.scheme = &standard{scope: s.OwnScope(), keys: keys}
	case ProviderHMAC:
		c.scheme, err = newHMAC(s, keys)
	default:
		err = fmt.Errorf("unknown provider %q", s.Provider)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

const (
	// maxIDBytes is the longest id that is kept as it is (design.md §4).
	maxIDBytes = 255
	// tolerance is how far a signed timestamp may be from now, both ways. The
	// upper side matters too: a signature for next year would be good until
	// then.
	tolerance = 300 * time.Second
)

// usable reports whether text from a header can be kept as an id or a type.
func usable(text string) bool {
	return text != "" && len(text) <= maxIDBytes && utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// hashID is the id of what has no usable one.
func hashID(b []byte) string { return "sha256:" + hexSum(b) }

func hexSum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// current reports whether seconds, a signed timestamp, is near now.
func current(seconds int64, now time.Time) bool {
	if seconds < 0 || seconds > 1<<40 { // beyond the year 36000, and before time.Time overflows
		return false
	}
	d := now.Sub(time.Unix(seconds, 0))
	return -tolerance <= d && d <= tolerance
}

// firstLine returns the first line of a header, and whether there is any. A
// repeated header is not joined: only one line could have been signed for, and
// the choice must not depend on which proxy stands in front.
func firstLine(header http.Header, name string) (string, bool) {
	lines := header[textproto.CanonicalMIMEHeaderKey(name)]
	if len(lines) == 0 || lines[0] == "" {
		return "", false
	}
	return lines[0], true
}
