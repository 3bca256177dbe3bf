package handler

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"paidonce/store"
)

// retryAfter is what a 503 asks a caller to wait, in seconds. Senders have a
// schedule of their own; it is for scripts and proxies.
const retryAfter = "5"

// answer is a whole response, rendered before the first byte is written.
type answer struct {
	status int
	header [][2]string
	body   []byte
}

// reply renders v. It has the results of an endpoint.
func reply(status int, v any) (answer, error) {
	body, err := render(v)
	if err != nil {
		return answer{}, err
	}
	return answer{status: status, body: body}, nil
}

// render is v as JSON and a newline. Texts stand as they are, without the
// escapes that only HTML needs.
func render(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("render answer: %w", err)
	}
	return b.Bytes(), nil
}

// errorBody is the shape of every error (design.md §7).
type errorBody struct {
	Error struct {
		Code    string               `json:"code"`
		Message string               `json:"message"`
		Fields  []store.FieldProblem `json:"fields,omitempty"`
	} `json:"error"`
}

// answer renders what the caller may see of f.
func (f *failure) answer() answer {
	var v errorBody
	v.Error.Code, v.Error.Message, v.Error.Fields = f.code, f.message, f.fields
	a, err := reply(f.status, v)
	if err != nil { // strings alone: cannot happen
		a = answer{status: http.StatusInternalServerError}
	}
	switch f.status {
	case http.StatusMethodNotAllowed:
		a.set("Allow", f.allow)
	case http.StatusServiceUnavailable:
		a.set("Retry-After", retryAfter)
	}
	if f.code == codeUnauthorized {
		a.set("WWW-Authenticate", "Bearer")
	}
	return a
}

func (a *answer) set(name, value string) { a.header = append(a.header, [2]string{name, value}) }

// write sends the answer. Its error would mean that the client has left, which
// changes nothing.
func (a answer) write(w http.ResponseWriter) {
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(a.body)))
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	for _, h := range a.header {
		header.Set(h[0], h[1])
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body)
}
