package stripefake

import (
	"net/http"
	"slices"
)

// paging is what a list call asks for.
type paging struct {
	limit         int
	after, before string // ids: the page begins behind after, or ends ahead of before
}

const maxPage = 100

// paging reads the parameters of a list.
func (f *form) paging() paging {
	p := paging{limit: 10, after: f.text("starting_after"), before: f.text("ending_before")}
	if n, given := f.integer("limit"); given {
		if n < 1 || n > maxPage {
			f.refuse("parameter_invalid_integer", "limit", "Invalid integer: limit must be between 1 and 100")
		}
		p.limit = int(n)
	}
	if p.after != "" && p.before != "" {
		f.refuse("parameters_exclusive", "ending_before", "You cannot parameterize both starting_after and ending_before.")
	}
	return p
}

// cut takes the page out of ids, which are all that the filters allow, newest
// first. A cursor must be among all, the ids of that kind whatever the filters,
// also newest first.
func (p paging) cut(kind string, all, ids []string) (page []string, more bool, err error) {
	cursor, param := p.after, "starting_after"
	if p.before != "" {
		cursor, param = p.before, "ending_before"
	}
	if cursor != "" {
		at := slices.Index(all, cursor)
		if at < 0 {
			e := missing(kind, cursor, param)
			e.status = http.StatusBadRequest
			return nil, false, e
		}
		place := make(map[string]int, len(all))
		for i, id := range all {
			place[id] = i
		}
		ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
			if p.before != "" {
				return place[id] >= at
			}
			return place[id] <= at
		})
	}
	if len(ids) <= p.limit {
		return ids, false, nil
	}
	if p.before != "" { // the page that touches the cursor
		return ids[len(ids)-p.limit:], true, nil
	}
	return ids[:p.limit], true, nil
}

// newest are the ids of one kind of object, newest first.
func newest[T any](a *Account, objects map[string]*T) []string {
	var ids []string
	for _, id := range slices.Backward(a.order) {
		if objects[id] != nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// listOf is the answer of a list call over one kind of object.
func listOf[T any](c *call, kind string, objects func(a *Account) map[string]*T, wanted func(o *T) bool, show func(a *Account, o *T) map[string]any) work {
	p := c.form.paging()
	expand := c.form.list("expand")
	return func(a *Account) (any, error) {
		found := objects(a)
		all := newest(a, found)
		page, more, err := p.cut(kind, all, slices.DeleteFunc(slices.Clone(all), func(id string) bool { return !wanted(found[id]) }))
		if err != nil {
			return nil, err
		}
		data := []any{}
		for _, id := range page {
			o, err := c.expanded(a, show(a, found[id]), expand, "data.")
			if err != nil {
				return nil, err
			}
			data = append(data, o)
		}
		return c.list(data, more), nil
	}
}

// list is a list object.
func (c *call) list(data []any, more bool) map[string]any {
	return map[string]any{"object": "list", "url": c.path, "has_more": more, "data": data}
}

// one is the answer of a call about the object that the path names, after what
// act does to it; nil does nothing.
func one[T any](c *call, kind string, objects func(a *Account) map[string]*T, act func(a *Account) error, show func(a *Account, o *T) map[string]any) work {
	expand := c.form.list("expand")
	return func(a *Account) (any, error) {
		o := objects(a)[c.id]
		if o == nil {
			return nil, missing(kind, c.id, "id")
		}
		if act != nil {
			if err := act(a); err != nil {
				return nil, err
			}
		}
		return c.expanded(a, show(a, o), expand, "")
	}
}
