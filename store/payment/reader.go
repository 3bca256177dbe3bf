package payment

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// errNotObject says that a JSON text is valid but no object.
var errNotObject = errors.New("not a JSON object")

// decoders are reused: a decoder's own buffers are most of what a parse costs.
var decoders = sync.Pool{New: func() any {
	return &decoder{dec: jsontext.NewDecoder(new(bytes.Buffer))}
}}

type decoder struct {
	src bytes.Buffer
	dec *jsontext.Decoder
}

// members walks the top level of the one JSON object that raw is, checking the
// syntax of all of it. It calls visit with the name and the raw value of each
// member that want asks for, in order; both alias raw unless the name is
// escaped. Duplicates are passed on: only the caller knows which matter. A lone
// surrogate escape is no error, as fields that nobody uses may hold anything
// that Stripe lets a customer type (cases.md B66).
func members(raw []byte, want func(name []byte) bool, visit func(name, value []byte)) error {
	d := decoders.Get().(*decoder)
	defer func() {
		d.src = bytes.Buffer{} // hold on to no body
		decoders.Put(d)
	}()
	d.src = *bytes.NewBuffer(raw) // the decoder reads a Buffer's bytes in place
	d.dec.Reset(&d.src, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

	if d.dec.PeekKind() != '{' {
		return errNotObject
	}
	if _, err := d.dec.ReadToken(); err != nil {
		return err
	}
	for d.dec.PeekKind() == '"' {
		name, err := d.dec.ReadValue()
		if err != nil {
			return err
		}
		key := raw[int(d.dec.InputOffset())-len(name) : d.dec.InputOffset()]
		key = key[1 : len(key)-1]
		if bytes.IndexByte(key, '\\') >= 0 {
			// An invalid escape leaves U+FFFD in the name: a name nobody wants.
			key, _ = jsontext.AppendUnquote(nil, []byte(name))
		}
		if !want(key) {
			if err := d.dec.SkipValue(); err != nil {
				return err
			}
			continue
		}
		value, err := d.dec.ReadValue()
		if err != nil {
			return err
		}
		end := int(d.dec.InputOffset())
		visit(key, raw[end-len(value):end:end])
	}
	if _, err := d.dec.ReadToken(); err != nil { // '}', or what stands in its place
		return err
	}
	if _, err := d.dec.ReadToken(); err != io.EOF {
		return errors.New("something follows the object")
	}
	return nil
}

// wanted are the names that any of the rules read, of any object. Members with
// other names are passed over.
var wanted = func() map[string]string {
	m := make(map[string]string)
	for _, name := range []string{
		"amount", "amount_captured", "amount_discount", "amount_received", "amount_refunded", "amount_subtotal",
		"amount_total", "balance_transactions", "captured", "charge", "charges", "client_reference_id", "currency",
		"customer_details", "data", "due_by", "email", "evidence_details", "id", "invoice", "last_payment_error",
		"latest_charge", "metadata", "mode", "name", "object", "order_id", "paid", OperationMetadata, "payment", "payment_intent",
		"payment_link", "payment_status", "previous_attributes", "reason", "refunded", "setup_intent", "status",
		"subscription", "total_details",
	} {
		m[name] = name
	}
	return m
}()

// reader reads the members of one object strictly. The first thing that is
// wrong stays in err, as words without the body's data; later reads give zero
// values, so that a decoder reads all its fields and looks at err once.
type reader struct {
	fields []field
	err    string
}

type field struct {
	name  string
	raw   []byte
	twice bool
}

// readObject reads raw, which must be a JSON object.
func readObject(raw []byte) *reader {
	r := &reader{fields: make([]field, 0, 24)}
	err := members(raw, func(name []byte) bool {
		_, ok := wanted[string(name)]
		return ok
	}, func(name, value []byte) {
		known := wanted[string(name)]
		for i := range r.fields {
			if r.fields[i].name == known {
				r.fields[i].twice = true
				return
			}
		}
		r.fields = append(r.fields, field{name: known, raw: value})
	})
	if err != nil {
		r.blame("the object is not a JSON object")
	}
	return r
}

func (r *reader) blame(why string) {
	if r.err == "" {
		r.err = why
	}
}

// raw returns the value of a member, nil when it is absent or null. A member
// that is read and stands there twice is an error (cases.md B77).
func (r *reader) raw(name string) []byte {
	for i := range r.fields {
		if f := &r.fields[i]; f.name == name {
			if f.twice {
				r.blame("the key " + name + " stands there twice")
				return nil
			}
			if absent(f.raw) {
				return nil
			}
			return f.raw
		}
	}
	return nil
}

// text reads a string; absent is "".
func (r *reader) text(name string) string {
	raw := r.raw(name)
	if raw == nil {
		return ""
	}
	text, ok := unquote(raw)
	if !ok {
		r.blame(name + " is not a string")
	}
	return text
}

// amount reads minor units: a plain, non-negative JSON integer. 1e3, 1250.0 and
// "1250" are not, because a reader that takes them for one number and a reader
// that takes them for another would book different money.
func (r *reader) amount(name string) Amount {
	n := r.signed(name)
	if n.Minor < 0 {
		r.blame(name + " is negative")
		return Amount{}
	}
	return n
}

// maxAmountMinor is far beyond Stripe's eight digits and beyond what a float
// holds exactly, and so far below 2^63 that the books of any shop add up in 64
// bits.
const maxAmountMinor = 10_000_000_000_000_000

// signed is amount where money may also go the other way.
func (r *reader) signed(name string) Amount {
	raw := r.raw(name)
	if raw == nil {
		return Amount{}
	}
	n, ok := plainInteger(raw)
	if !ok {
		r.blame(name + " is not a plain JSON integer")
		return Amount{}
	}
	if n > maxAmountMinor || n < -maxAmountMinor {
		r.blame(name + " is more money than there is: sums would overflow")
		return Amount{}
	}
	return Minor(n)
}

// flag reads a boolean, and whether it is there.
func (r *reader) flag(name string) (value, known bool) {
	switch raw := r.raw(name); {
	case raw == nil:
		return false, false
	case string(raw) == "true":
		return true, true
	case string(raw) == "false":
		return false, true
	default:
		r.blame(name + " is not a boolean")
		return false, false
	}
}

// ref reads an expandable field: an id, or an object that has one.
func (r *reader) ref(name string) string {
	raw := r.raw(name)
	if raw == nil {
		return ""
	}
	if raw[0] == '{' {
		inner := readObject(raw)
		raw = inner.raw("id")
		if inner.err != "" {
			r.blame(name + ": " + inner.err)
			return ""
		}
	}
	if string(raw) == `""` {
		return "" // old bodies write it for null
	}
	id, ok := usableID(raw)
	if !ok {
		r.blame(name + " is neither an id nor an object with one")
	}
	return id
}

// object reads a nested object, nil when it is absent. A [] is an absent one:
// programs in PHP write their empty maps so.
func (r *reader) object(name string) *reader {
	raw := r.raw(name)
	if raw == nil || emptyArray(raw) {
		return nil
	}
	if raw[0] != '{' {
		r.blame(name + " is not an object")
		return nil
	}
	return readObject(raw)
}

// within takes over what went wrong in a nested object.
func (r *reader) within(name string, inner *reader) {
	if inner != nil && inner.err != "" {
		r.blame(name + ": " + inner.err)
	}
}

// elements reads an array, and whether it is there.
func (r *reader) elements(name string) (values [][]byte, known bool) {
	raw := r.raw(name)
	if raw == nil {
		return nil, false
	}
	if raw[0] != '[' {
		r.blame(name + " is not a list")
		return nil, false
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	_, err := dec.ReadToken()
	for err == nil && dec.PeekKind() != ']' {
		var value jsontext.Value
		if value, err = dec.ReadValue(); err == nil {
			end := int(dec.InputOffset())
			values = append(values, raw[end-len(value):end:end])
		}
	}
	if err != nil {
		r.blame(name + " is not a list")
		return nil, false
	}
	return values, true
}

// currency reads a three-letter code, folded to lower case; absent is "".
func (r *reader) currency(name string) string {
	code := strings.ToLower(r.text(name))
	if code == "" {
		return ""
	}
	if len(code) != 3 || strings.Trim(code, "abcdefghijklmnopqrstuvwxyz") != "" {
		r.blame(name + " is not a currency")
		return ""
	}
	return code
}

// ours reads what the shop and we ourselves wrote into the metadata: order_id
// and the key of our call. What is no name, like a number or an empty string,
// does not speak; it is no reason to refuse what Stripe says beside it.
func (r *reader) ours() (orderID, operation string) {
	metadata := r.object("metadata")
	if metadata == nil {
		return "", ""
	}
	orderID, _ = usableID(metadata.raw("order_id"))
	operation, _ = usableID(metadata.raw(OperationMetadata))
	r.within("metadata", metadata)
	return orderID, operation
}

// reference reads client_reference_id under the same rule as order_id, but that
// Stripe itself guarantees a string.
func (r *reader) reference() string {
	raw := r.raw("client_reference_id")
	if raw != nil && raw[0] != '"' {
		r.blame("client_reference_id is not a string")
	}
	id, _ := usableID(raw)
	return id
}

func absent(raw []byte) bool { return raw == nil || string(raw) == "null" }

func emptyArray(raw []byte) bool {
	return raw[0] == '[' && len(bytes.TrimSpace(raw[1:len(raw)-1])) == 0
}

// unquote reads a JSON string that is valid text: no raw bytes outside UTF-8
// and no lone surrogates.
func unquote(raw []byte) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	inner := raw[1 : len(raw)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner), utf8.Valid(inner)
	}
	text, err := jsontext.AppendUnquote(nil, raw)
	return string(text), err == nil
}

// usableID reads an id or a name: 1 to 255 bytes of text without control
// characters.
func usableID(raw []byte) (string, bool) {
	text, ok := unquote(raw)
	if !ok || text == "" || len(text) > maxIDBytes {
		return "", false
	}
	for _, c := range text {
		if c < 0x20 || 0x7f <= c && c < 0xa0 {
			return "", false
		}
	}
	return text, true
}

// plainInteger reads an integer written with digits alone and a minus sign at
// most, so that 9007199254740993 survives and 1e3 is refused.
func plainInteger(raw []byte) (int64, bool) {
	digits := bytes.TrimPrefix(raw, []byte("-"))
	if len(digits) == 0 || len(raw) > len(digits) && digits[0] == '0' {
		return 0, false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	return n, err == nil
}
