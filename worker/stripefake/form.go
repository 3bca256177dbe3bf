package stripefake

import (
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// form is the parameters of one request, as Stripe reads them: names such as
// line_items[0][price_data][currency]. The first thing wrong with them stands
// in wrong; what is read after that is empty.
type form struct {
	values url.Values
	wrong  *apiError
}

// segments takes a parameter's name apart: a[b][0] is a, b, 0.
func segments(name string) []string {
	head, rest, nested := strings.Cut(name, "[")
	if !nested {
		return []string{name}
	}
	return append([]string{head}, strings.Split(strings.TrimSuffix(rest, "]"), "][")...)
}

// checkNames refuses the first parameter that none of the patterns allows. In a
// pattern, # is an index, written or not, and * is any name.
func (f *form) checkNames(patterns []string) {
	for _, name := range slices.Sorted(maps.Keys(f.values)) {
		got := segments(name)
		if !slices.ContainsFunc(patterns, func(p string) bool { return slices.EqualFunc(segments(p), got, segmentFits) }) {
			f.refuse("parameter_unknown", name, "Received unknown parameter: "+name)
			return
		}
		if len(f.values[name]) > 1 && !strings.HasSuffix(name, "[]") {
			f.refuse("parameter_invalid_string_empty", name, "Invalid string: "+name+" was given twice")
			return
		}
	}
}

func segmentFits(pattern, got string) bool {
	switch pattern {
	case "#":
		_, err := strconv.ParseUint(got, 10, 16)
		return got == "" || err == nil
	case "*":
		return got != ""
	}
	return pattern == got
}

// refuse notes what is wrong, unless something was wrong before.
func (f *form) refuse(code, param, message string) {
	if f.wrong == nil {
		f.wrong = &apiError{status: 400, kind: kindInvalid, code: code, param: param, message: message}
	}
}

// text is a string; "" when it is not there.
func (f *form) text(name string) string {
	v, given := f.values[name]
	if !given {
		return ""
	}
	if v[0] == "" {
		f.refuse("parameter_invalid_empty", name, "You passed an empty string for '"+name+"'. We assume empty values are an attempt to unset a parameter; however '"+name+"' cannot be unset.")
	}
	return v[0]
}

// need is a string that must be there.
func (f *form) need(name string) string {
	if _, given := f.values[name]; !given {
		f.refuse("parameter_missing", name, "Missing required param: "+name+".")
	}
	return f.text(name)
}

// integer is a whole number, or absent.
func (f *form) integer(name string) (n int64, given bool) {
	if _, given = f.values[name]; !given {
		return 0, false
	}
	n, err := strconv.ParseInt(f.text(name), 10, 64)
	if err != nil {
		f.refuse("parameter_invalid_integer", name, "Invalid integer: "+name)
	}
	return n, true
}

// flag is true or false, or absent.
func (f *form) flag(name string) (value, given bool) {
	switch v := f.text(name); v {
	case "":
		return false, false
	case "true", "false":
		return v == "true", true
	default:
		f.refuse("", name, "Invalid boolean: "+name)
		return false, false
	}
}

// oneOf is a word of a list; "" when it is not there.
func (f *form) oneOf(name string, words ...string) string {
	v := f.text(name)
	if v != "" && !slices.Contains(words, v) {
		f.refuse("", name, "Invalid "+name+": must be one of "+strings.Join(words, ", "))
	}
	return v
}

// list is the values of name[], name[0], name[1] …
func (f *form) list(name string) []string {
	var out []string
	for _, index := range f.indexes(name) {
		for _, v := range f.values[name+"["+index+"]"] {
			if v == "" {
				f.refuse("parameter_invalid_empty", name, "Invalid array: "+name+" has an empty value")
			}
			out = append(out, v)
		}
	}
	return out
}

// indexes are the indexes of name[…], in order.
func (f *form) indexes(name string) []string {
	found := map[string]bool{}
	for key := range f.values {
		if s := segments(key); len(s) > 1 && s[0] == name {
			found[s[1]] = true
		}
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
}

// Stripe's limits on metadata.
const (
	maxMetadata      = 50
	maxMetadataName  = 40
	maxMetadataValue = 500
)

// labels is the map under a name such as metadata. An empty value unsets.
func (f *form) labels(name string) map[string]string {
	out := map[string]string{}
	for key, v := range f.values {
		under, found := strings.CutPrefix(key, name+"[")
		if !found {
			continue
		}
		under = strings.TrimSuffix(under, "]")
		switch {
		case len([]rune(under)) > maxMetadataName:
			f.refuse("", name, "Metadata keys can have up to 40 characters.")
		case len([]rune(v[0])) > maxMetadataValue:
			f.refuse("", key, "Metadata values can have up to 500 characters.")
		case v[0] != "":
			out[under] = v[0]
		}
	}
	if len(out) > maxMetadata {
		f.refuse("", name, "You can only specify up to 50 metadata keys.")
	}
	return out
}

// unset are the names that labels leaves out because their value is empty.
func (f *form) unset(name string) []string {
	var names []string
	for key, v := range f.values {
		if under, found := strings.CutPrefix(key, name+"["); found && v[0] == "" {
			names = append(names, strings.TrimSuffix(under, "]"))
		}
	}
	return names
}

var currencyWord = regexp.MustCompile(`^[a-z]{3}$`)

// currency is a currency in lower case, as Stripe's reference asks for.
func (f *form) currency(name string) string {
	v := f.need(name)
	if v != "" && !currencyWord.MatchString(v) {
		f.refuse("", name, "Invalid currency: "+name+" must be a three-letter ISO code in lower case")
	}
	return v
}

// link is a URL that a browser or a webhook can be sent to.
func (f *form) link(name string, v string) string {
	if v == "" {
		return ""
	}
	u, err := url.Parse(v)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		f.refuse("url_invalid", name, "Not a valid URL")
	}
	return v
}

// span is a filter on a time in seconds: created, created[gte] and the like.
type span struct{ from, to int64 } // both in it; to 0 is no end

func (f *form) span(name string) span {
	var s span
	if n, given := f.integer(name); given {
		return span{n, n}
	}
	for _, bound := range []struct {
		word string
		set  func(n int64)
	}{
		{"gte", func(n int64) { s.from = max(s.from, n) }},
		{"gt", func(n int64) { s.from = max(s.from, n+1) }},
		{"lte", func(n int64) { s.to = atMost(s.to, n) }},
		{"lt", func(n int64) { s.to = atMost(s.to, n-1) }},
	} {
		if n, given := f.integer(name + "[" + bound.word + "]"); given {
			bound.set(n)
		}
	}
	return s
}

func atMost(old, n int64) int64 {
	if old == 0 {
		return n
	}
	return min(old, n)
}

func (s span) has(t int64) bool { return t >= s.from && (s.to == 0 || t <= s.to) }
