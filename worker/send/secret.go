package send

import (
	"encoding/base64"
	"errors"
	"strings"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// The size of a key, decoded, in bytes (Standard Webhooks, "Signature scheme").
const (
	minSecret = 24
	maxSecret = 64
)

// newSigner reads a secret of Standard Webhooks, "whsec_" and base64. It is
// stricter than the library, whose v0.0.1 signs with an empty key and reads
// past line breaks in the base64. No error holds a part of the secret.
func newSigner(secret string) (*standardwebhooks.Webhook, error) {
	encoded, ok := strings.CutPrefix(secret, "whsec_")
	if !ok {
		return nil, errors.New("the secret does not begin with whsec_")
	}
	if strings.ContainsAny(encoded, " \t\r\n") {
		return nil, errors.New("the secret holds blanks or line breaks")
	}
	key, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil {
		return nil, errors.New("the secret is not base64 after whsec_")
	}
	if len(key) < minSecret || len(key) > maxSecret {
		return nil, errors.New("the secret must be 24 to 64 bytes, as base64 after whsec_")
	}
	signer, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		return nil, errors.New("the secret is not one of Standard Webhooks")
	}
	return signer, nil
}
