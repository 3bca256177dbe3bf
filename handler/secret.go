package handler

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"unicode"
)

// Secret is the key of a sender, or the admin token. It never prints itself,
// however it is asked. The zero Secret is no secret: New refuses it.
type Secret struct {
	// A function, as fmt shows the unexported fields of a struct that holds a
	// Secret without asking it. Of a function it shows the address, under every
	// verb; a pointer it follows under the wrong ones.
	key func() []byte
}

const hidden = "[secret]"

// NewSecret makes the Secret of a source of that provider out of its text as
// configured. White space around it is cut off: files end with a newline. The
// error says what is wrong with it and never what it is.
func NewSecret(provider, text string) (Secret, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return Secret{}, errors.New("the secret is empty: anybody could sign with it")
	}
	key := []byte(text)
	switch provider {
	case ProviderStripe:
		for _, prefix := range []string{"sk_", "pk_", "rk_"} {
			if strings.HasPrefix(text, prefix) {
				return Secret{}, fmt.Errorf("the secret begins with %s: this is an API key, not the signing secret of a webhook endpoint (whsec_…)", prefix)
			}
		}
		if text == "whsec_" {
			return Secret{}, errors.New("the secret is empty after whsec_: anybody could sign with it")
		}
	case ProviderStandard:
		var err error
		if key, err = base64.RawStdEncoding.DecodeString(strings.TrimRight(strings.TrimPrefix(text, "whsec_"), "=")); err != nil {
			return Secret{}, errors.New("the secret is not base64, with or without whsec_ in front")
		}
		if len(key) == 0 {
			return Secret{}, errors.New("the secret is empty after whsec_: anybody could sign with it")
		}
	case ProviderGitHub, ProviderHMAC:
	default:
		return Secret{}, fmt.Errorf("unknown provider %q", provider)
	}
	return keep(key), nil
}

func keep(key []byte) Secret { return Secret{func() []byte { return key }} }

// NewToken makes the admin token out of its text as configured.
func NewToken(text string) (Secret, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return Secret{}, errors.New("the admin token is empty")
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII || unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return Secret{}, errors.New("the admin token holds characters that no Authorization header can carry")
	}
	return keep([]byte(text)), nil
}

func (s Secret) empty() bool { return len(s.bytes()) == 0 }

// bytes returns the key; nil for the zero Secret.
func (s Secret) bytes() []byte {
	if s.key == nil {
		return nil
	}
	return s.key()
}

// sum is what a token is compared by: a fixed length tells nothing about it.
func (s Secret) sum() [32]byte { return sha256.Sum256(s.bytes()) }

// String implements fmt.Stringer without telling the secret.
func (Secret) String() string { return hidden }

// GoString implements fmt.GoStringer without telling the secret.
func (Secret) GoString() string { return hidden }

// Format implements fmt.Formatter: every verb, also %d, which asks no Stringer.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, hidden) }

// LogValue implements slog.LogValuer without telling the secret.
func (Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText implements encoding.TextMarshaler, and so JSON's, without telling
// the secret.
func (Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// MarshalJSON implements json.Marshaler without telling the secret.
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + hidden + `"`), nil }
