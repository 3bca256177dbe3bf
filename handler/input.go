package handler

import (
	"bytes"
	"fmt"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"paidonce/store"
)

// input is one value of a request's JSON and where it stands. It is read
// strictly: a name that is not known, one that stands there twice, and a value
// of another type are problems of that field, and all of them are gathered.
// encoding/json would take the last of two, any case, and null for anything.
type input struct {
	path string
	raw  jsontext.Value
	bad  *[]store.FieldProblem
}

// members are the names an object may have, and what reads each.
type members map[string]func(input)

// readObject reads body, which must be one JSON object with no members but
// those of want. The error is 400 if it is no such thing, and 422 with every
// problem otherwise.
func readObject(body []byte, want members) error {
	raw := jsontext.Value(body)
	if !raw.IsValid(jsontext.AllowDuplicateNames(true)) {
		return malformed("the body is not JSON")
	}
	if raw.Kind() != '{' {
		return malformed("the body must be one JSON object")
	}
	var bad []store.FieldProblem
	input{raw: raw, bad: &bad}.object(want)
	if len(bad) > 0 {
		return invalid(bad)
	}
	return nil
}

// noFields reads the body of a request that needs none: nothing, or an object
// that holds nothing.
func noFields(body []byte) error {
	if len(body) == 0 {
		return nil
	}
	return readObject(body, members{})
}

func (in input) wrong(format string, args ...any) {
	*in.bad = append(*in.bad, store.FieldProblem{Field: in.path, Problem: fmt.Sprintf(format, args...)})
}

// child is a value inside in.
func (in input) child(path string, raw jsontext.Value) input {
	return input{path: path, raw: raw, bad: in.bad}
}

// maxEchoed bounds how much of a name that we do not know is said back.
const maxEchoed = 64

// object reads each member of in that want knows, in order.
func (in input) object(want members) {
	seen := map[string]bool{}
	in.each(func(name string, value jsontext.Value) {
		path := name
		if len(path) > maxEchoed {
			path = shorten(path, maxEchoed)
		}
		if in.path != "" {
			path = in.path + "." + path
		}
		member := in.child(path, value)
		read, known := want[name]
		switch {
		case seen[name]:
			member.wrong("stands there twice")
		case !known:
			member.wrong("is not a field that this request knows")
		default:
			read(member)
		}
		seen[name] = true
	})
}

// each calls fn for each member of the object in.
func (in input) each(fn func(name string, value jsontext.Value)) {
	if in.raw.Kind() != '{' {
		in.wrong("must be an object")
		return
	}
	dec := in.open()
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil { // readObject has checked all of it
			return
		}
		text := name.String() // before the next read, which reuses its bytes
		value, err := dec.ReadValue()
		if err != nil {
			return
		}
		fn(text, value.Clone())
	}
}

// list calls fn for each element of the array in.
func (in input) list(fn func(input)) {
	if in.raw.Kind() != '[' {
		in.wrong("must be a list")
		return
	}
	dec := in.open()
	for i := 0; dec.PeekKind() != ']'; i++ {
		value, err := dec.ReadValue()
		if err != nil {
			return
		}
		fn(in.child(fmt.Sprintf("%s[%d]", in.path, i), value.Clone()))
	}
}

// open returns a decoder behind the first token of in.
func (in input) open() *jsontext.Decoder {
	dec := jsontext.NewDecoder(bytes.NewReader(in.raw), jsontext.AllowDuplicateNames(true))
	_, _ = dec.ReadToken() // its kind is known
	return dec
}

func (in input) text(to *string) {
	if in.raw.Kind() != '"' {
		in.wrong("must be a string")
		return
	}
	text, err := jsontext.AppendUnquote(nil, in.raw)
	if err != nil {
		in.wrong("must be a string")
		return
	}
	*to = string(text)
}

// integer reads a whole number that is written as one. 1e3 and 12.0 are whole
// numbers too, but who writes money that way means something else or rounds.
func (in input) integer(to *int64) {
	text := string(in.raw)
	n, err := strconv.ParseInt(text, 10, 64)
	if in.raw.Kind() != '0' || err != nil || strconv.FormatInt(n, 10) != text {
		in.wrong("must be a whole number, written in digits alone, of at most %d", math.MaxInt64)
		return
	}
	*to = n
}

func (in input) boolean(to *bool) {
	switch in.raw.Kind() {
	case 't', 'f':
		*to = in.raw.Kind() == 't'
	default:
		in.wrong("must be true or false")
	}
}

// strings reads an object of strings under any names.
func (in input) strings() map[string]string {
	m := map[string]string{}
	in.each(func(name string, value jsontext.Value) {
		// The names are the shop's data: they are not said back.
		if _, twice := m[name]; twice {
			in.wrong("holds a key twice")
			return
		}
		m[name] = ""
		var text string
		if value.Kind() != '"' {
			in.wrong("must hold strings alone")
			return
		}
		in.child(in.path, value).text(&text)
		m[name] = text
	})
	return m
}

// set returns a reader into a new T that to then points to: a nil pointer is a
// field that was not given.
func set[T any](to **T, read func(input, *T)) func(input) {
	return func(in input) {
		var v T
		read(in, &v)
		*to = &v
	}
}

// shorten cuts text to n bytes without splitting a character.
func shorten(text string, n int) string {
	for n > 0 && text[n]&0xc0 == 0x80 {
		n--
	}
	return text[:n] + "…"
}
