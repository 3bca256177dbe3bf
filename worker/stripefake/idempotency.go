package stripefake

import (
	"net/http"
	"strings"
)

// keyLife is how long the answer to an idempotency key is kept, in seconds.
// Stripe keeps one for "at least 24 hours"; this is the worst of what it allows.
const keyLife = 24 * 3600

// maxKey is the longest idempotency key, in characters.
const maxKey = 255

// keyring holds what was answered to each idempotency key. A key is taken by
// the first request that uses it, kept with the answer once execution began,
// given back when the request never came to that, and forgotten by prune, which
// the clock calls.
type keyring map[string]*keyed

// keyed is what is known of one key.
type keyed struct {
	path, params string // of its first request
	created      int64
	running      bool
	requestID    string
	reply        reply
}

// take begins a request with a key. It returns the stored answer if there is
// one, or an error; with neither, the key is the caller's until keep or drop.
func (k keyring) take(c *call, now int64) (*keyed, *apiError) {
	if len([]rune(c.key)) > maxKey {
		return nil, &apiError{status: http.StatusBadRequest, kind: kindInvalid, message: "Idempotency keys can have up to 255 characters."}
	}
	params := c.form.values.Encode()
	old := k[c.key]
	switch {
	case old == nil:
		k[c.key] = &keyed{path: c.method + " " + c.path, params: params, created: now, running: true, requestID: c.requestID}
		return nil, nil
	case old.path != c.method+" "+c.path:
		return nil, &apiError{status: http.StatusBadRequest, kind: kindIdempotency, message: "Keys for idempotent requests can only be used for the same endpoint they were first used for (" +
			quotePath(c.path) + " vs " + quotePath(old.path) + "). Try using a key other than '" + c.key + "' if you meant to execute a different request."}
	case old.params != params:
		return nil, &apiError{status: http.StatusBadRequest, kind: kindIdempotency, message: "Keys for idempotent requests can only be used with the same parameters they were first used with. Try using a key other than '" +
			c.key + "' if you meant to execute a different request."}
	case old.running:
		return nil, &apiError{status: http.StatusConflict, kind: kindInvalid, code: "idempotency_key_in_use",
			message: "There is currently another in-progress request using this Idempotent Key (that probably means you submitted twice, and the other request is still going through). Please try again later."}
	}
	return old, nil
}

func quotePath(p string) string {
	_, path, found := strings.Cut(p, " ")
	if !found {
		path = p
	}
	return "'" + path + "'"
}

// keep stores the answer of the request that took the key.
func (k keyring) keep(key string, r reply) {
	k[key].reply, k[key].running = r, false
}

// drop gives the key back: nothing was executed.
func (k keyring) drop(key string) { delete(k, key) }

// prune forgets the answers that are too old.
func (k keyring) prune(now int64) {
	for key, old := range k {
		if !old.running && now-old.created >= keyLife {
			delete(k, key)
		}
	}
}
