package handler

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"paidonce/store"
)

// readParams reads a query string that may hold the names in takes, each once.
// A filter that is misspelt or given twice is 422: to ignore it would show more
// than was asked for.
func readParams(query string, takes []string) (url.Values, error) {
	params, err := url.ParseQuery(query)
	if err != nil {
		return nil, malformed("the query string cannot be read")
	}
	var bad []store.FieldProblem
	for _, name := range slices.Sorted(maps.Keys(params)) {
		switch {
		case !slices.Contains(takes, name):
			if len(name) > maxEchoed {
				name = shorten(strings.ToValidUTF8(name, "?"), maxEchoed)
			}
			bad = append(bad, store.FieldProblem{Field: name, Problem: "is not a parameter of this request"})
		case len(params[name]) > 1:
			bad = append(bad, store.FieldProblem{Field: name, Problem: "stands there twice"})
		}
	}
	if len(bad) > 0 {
		return nil, invalid(bad)
	}
	return params, nil
}

// tenant is where the request looks for orders.
func (c call) tenant() string {
	if t := c.params.Get("tenant"); t != "" {
		return t
	}
	return mainTenant
}

// filters gathers what is wrong with the parameters of a list.
type filters struct {
	params url.Values
	bad    []store.FieldProblem
}

// word is a parameter that must be empty or one of the words.
func (f *filters) word(name string, words []string) string {
	v := f.params.Get(name)
	if v != "" && !slices.Contains(words, v) {
		f.bad = append(f.bad, store.FieldProblem{Field: name, Problem: "must be one of " + strings.Join(words, ", ")})
	}
	return v
}

// limit is how many items a page has; 0 is the store's default.
func (f *filters) limit() int {
	text := f.params.Get("limit")
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 200 {
		f.bad = append(f.bad, store.FieldProblem{Field: "limit", Problem: "must be 1 to 200"})
	}
	return n
}

func (f *filters) err() error {
	if len(f.bad) == 0 {
		return nil
	}
	return invalid(f.bad)
}
