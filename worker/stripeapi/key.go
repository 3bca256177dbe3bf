package stripeapi

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
)

// Key is an API key. It never prints itself, however it is asked. The zero Key
// is none: New refuses it.
type Key struct {
	// A function, as fmt shows the unexported fields of a struct that holds a
	// Key without asking it. Of a function it shows the address.
	reveal func() string
}

const hidden = "[secret]"

// NewKey makes a Key of its text as configured. White space around it is cut
// off: files end with a newline. The error says what is wrong with the key and
// never what it is.
func NewKey(text string) (Key, error) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return Key{}, errors.New("the Stripe key is empty")
	case strings.HasPrefix(text, "pk_"):
		return Key{}, errors.New("the Stripe key is a publishable one, which may do nothing: a secret (sk_…) or restricted (rk_…) one is needed")
	case strings.HasPrefix(text, "whsec_"):
		return Key{}, errors.New("the Stripe key is the signing secret of a webhook endpoint: a secret (sk_…) or restricted (rk_…) key is needed")
	case strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return Key{}, errors.New("the Stripe key holds blanks, control characters or letters that no key has")
	}
	return Key{reveal: func() string { return text }}, nil
}

// String does not return the key.
func (Key) String() string { return hidden }

// GoString does not return the key.
func (Key) GoString() string { return hidden }

// Format prints the same for every verb.
func (Key) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(hidden)) }

// LogValue does not return the key.
func (Key) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText does not return the key.
func (Key) MarshalText() ([]byte, error) { return []byte(hidden), nil }
