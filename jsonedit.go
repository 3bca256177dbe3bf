package main

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// node is a JSON value that can be edited: members keep their sequence and
// numbers their digits, so that an edited body is the old one but for the edit.
type node struct {
	kind   jsontext.Kind // '{', '[', or that of a scalar
	scalar jsontext.Value
	names  []string // of an object's members
	values []*node  // of an object or an array
}

// parseJSON reads one strict JSON value: names are unique, text is UTF-8.
func parseJSON(body []byte) (*node, error) {
	d := jsontext.NewDecoder(bytes.NewReader(body))
	n, err := readNode(d)
	if err != nil {
		return nil, err
	}
	if d.InputOffset() != int64(len(bytes.TrimRight(body, " \t\r\n"))) {
		return nil, fmt.Errorf("more text after the value, at byte %d", d.InputOffset())
	}
	return n, nil
}

func readNode(d *jsontext.Decoder) (*node, error) {
	n := &node{kind: d.PeekKind()}
	if n.kind != '{' && n.kind != '[' {
		v, err := d.ReadValue()
		n.scalar = v.Clone()
		return n, err
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	for end := n.kind + 2; d.PeekKind() != end; { // '}' is '{'+2, ']' is '['+2
		if n.kind == '{' {
			name, err := d.ReadToken()
			if err != nil {
				return nil, err
			}
			n.names = append(n.names, name.String())
		}
		v, err := readNode(d)
		if err != nil {
			return nil, err
		}
		n.values = append(n.values, v)
	}
	_, err := d.ReadToken()
	return n, err
}

// format writes n as Stripe does, two spaces a level.
func (n *node) format() ([]byte, error) {
	var b bytes.Buffer
	e := jsontext.NewEncoder(&b, jsontext.WithIndent("  "))
	if err := n.write(e); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func (n *node) write(e *jsontext.Encoder) error {
	switch n.kind {
	case '{', '[':
		open, end := jsontext.BeginObject, jsontext.EndObject
		if n.kind == '[' {
			open, end = jsontext.BeginArray, jsontext.EndArray
		}
		if err := e.WriteToken(open); err != nil {
			return err
		}
		for i, v := range n.values {
			if n.kind == '{' {
				if err := e.WriteToken(jsontext.String(n.names[i])); err != nil {
					return err
				}
			}
			if err := v.write(e); err != nil {
				return err
			}
		}
		return e.WriteToken(end)
	default:
		return e.WriteValue(n.scalar)
	}
}

// at returns the value at path, or nil. A part of the path is a member's name
// or an element's number.
func (n *node) at(path ...string) *node {
	for _, part := range path {
		if n == nil {
			return nil
		}
		n = n.child(part)
	}
	return n
}

func (n *node) child(part string) *node {
	i := -1
	switch n.kind {
	case '{':
		i = slices.Index(n.names, part)
	case '[':
		if k, err := strconv.Atoi(part); err == nil && k < len(n.values) {
			i = k
		}
	}
	if i < 0 {
		return nil
	}
	return n.values[i]
}

// set puts v at path. Members that are missing on the way are made; an element
// must be there, or be the next one.
func (n *node) set(path []string, v *node) error {
	part, rest := path[0], path[1:]
	next := n.child(part)
	if next != nil && len(rest) > 0 && (next.kind == '{' || next.kind == '[') {
		return next.set(rest, v)
	}
	if len(rest) > 0 { // a scalar or nothing: an object takes its place
		o := &node{kind: '{'}
		if err := o.set(rest, v); err != nil {
			return err
		}
		v = o
	}
	switch {
	case next != nil:
		*next = *v
	case n.kind == '{':
		n.names, n.values = append(n.names, part), append(n.values, v)
	case n.kind == '[' && part == strconv.Itoa(len(n.values)):
		n.values = append(n.values, v)
	default:
		return fmt.Errorf("there is no %q to set", part)
	}
	return nil
}

// text returns the string that n is, or "".
func (n *node) text() string {
	if n == nil || n.kind != '"' {
		return ""
	}
	b, err := jsontext.AppendUnquote(nil, n.scalar)
	if err != nil {
		return ""
	}
	return string(b)
}

// integer returns the whole number that n is.
func (n *node) integer() (int64, bool) {
	if n == nil || n.kind != '0' {
		return 0, false
	}
	i, err := strconv.ParseInt(string(n.scalar), 10, 64)
	return i, err == nil
}

func textNode(s string) *node {
	b, _ := jsontext.AppendQuote(nil, s) // what is not UTF-8 was replaced
	return &node{kind: '"', scalar: b}
}

func integerNode(i int64) *node {
	return &node{kind: '0', scalar: strconv.AppendInt(nil, i, 10)}
}

func boolNode(b bool) *node {
	v := strconv.AppendBool(nil, b)
	return &node{kind: jsontext.Kind(v[0]), scalar: v}
}

func nullNode() *node { return &node{kind: 'n', scalar: jsontext.Value("null")} }
