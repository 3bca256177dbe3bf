package stripefake

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

// sign is the Stripe-Signature of a body sent at t, in seconds: one v1 for each
// secret, and the v0 that test mode adds for nobody to trust.
func sign(body []byte, t int64, livemode bool, secrets ...string) string {
	header := "t=" + strconv.FormatInt(t, 10)
	for _, secret := range secrets {
		header += ",v1=" + mac(body, t, secret)
	}
	if !livemode {
		header += ",v0=" + mac(body, t, "v0")
	}
	return header
}

func mac(body []byte, t int64, secret string) string {
	h := hmac.New(sha256.New, []byte(secret)) // whsec_ is part of the key
	h.Write(strconv.AppendInt(nil, t, 10))
	h.Write([]byte("."))
	h.Write(body)
	return hex.EncodeToString(h.Sum(nil))
}
