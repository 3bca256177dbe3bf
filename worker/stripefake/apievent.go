package stripefake

import (
	"encoding/json"
	"slices"
	"strings"
)

// eventLife is how far back events are listed, in seconds.
const eventLife = 30 * 24 * 3600

// maxTypes is how many names a list of events can be filtered by.
const maxTypes = 20

// showEvent is the API's copy of an event: the delivery's body, with the
// pending_webhooks of now.
func (c *call) showEvent(e Event) any { return json.RawMessage(e.Body(c.server.post.pending(e.ID))) }

func (c *call) retrieveEvent() work {
	return func(a *Account) (any, error) {
		i, known := c.server.events[c.id]
		if !known || a.events[i].Created < a.now-eventLife {
			return nil, missing("event", c.id, "id")
		}
		return c.showEvent(a.events[i]), nil
	}
}

// isOf reports whether a filter names the event's type. A "*" at the end of type
// stands for a group of them.
func (e Event) isOf(filter string) bool {
	prefix, group := strings.CutSuffix(filter, "*")
	return filter == e.Type || group && strings.HasPrefix(e.Type, prefix)
}

func (c *call) listEvents() work {
	f := &c.form
	p, created, types := f.paging(), f.span("created"), f.list("types")
	delivered, byDelivery := f.flag("delivery_success")
	if one := f.text("type"); one != "" {
		if len(types) > 0 {
			f.refuse("parameters_exclusive", "type", "You may only specify one of these parameters: type, types.")
		}
		types = []string{one}
	}
	if len(types) > maxTypes {
		f.refuse("", "types", "You can filter by up to 20 event types.")
	}
	return func(a *Account) (any, error) {
		var all, ids []string
		for _, e := range slices.Backward(a.events) {
			if e.Created < a.now-eventLife {
				continue
			}
			all = append(all, e.ID)
			if created.has(e.Created) && (len(types) == 0 || slices.ContainsFunc(types, e.isOf)) &&
				(!byDelivery || delivered == (c.server.post.pending(e.ID) == 0)) {
				ids = append(ids, e.ID)
			}
		}
		page, more, err := p.cut("event", all, ids)
		if err != nil {
			return nil, err
		}
		data := []any{}
		for _, id := range page {
			data = append(data, c.showEvent(a.events[c.server.events[id]]))
		}
		return c.list(data, more), nil
	}
}
