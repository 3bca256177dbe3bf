package stripefake

import (
	"net/http"
	"strings"
)

// expanded puts the objects themselves where their ids stand, as far as expand
// asks for it: one level deep, which is all that this fake does.
func (c *call) expanded(a *Account, o map[string]any, expand []string, prefix string) (map[string]any, error) {
	for _, path := range expand {
		field, found := strings.CutPrefix(path, prefix)
		value, known := o[field]
		_, isID := value.(string)
		switch {
		case !found || !known && field != "line_items" || strings.Contains(field, "."):
			return nil, notExpandable(path)
		case field == "line_items":
			s := a.sessions[o["id"].(string)]
			if s == nil {
				return nil, notExpandable(path)
			}
			o[field] = list("/v1/checkout/sessions/"+s.ID+"/line_items", s.lines())
		case value == nil: // nothing there yet
		case !isID || a.object(value.(string)) == nil:
			return nil, notExpandable(path)
		default:
			o[field] = a.object(value.(string)).render(a)
		}
	}
	return o, nil
}

// object is any object that has an id of its own; nil is none.
func (a *Account) object(id string) object {
	switch {
	case a.sessions[id] != nil:
		return a.sessions[id]
	case a.intents[id] != nil:
		return a.intents[id]
	case a.charges[id] != nil:
		return a.charges[id]
	case a.refunds[id] != nil:
		return a.refunds[id]
	case a.disputes[id] != nil:
		return a.disputes[id]
	}
	return nil
}

func notExpandable(path string) *apiError {
	return &apiError{
		status: http.StatusBadRequest, kind: kindInvalid, param: "expand",
		message: "This property cannot be expanded (" + path + ").",
	}
}
