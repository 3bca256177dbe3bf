package stripefake

import (
	"maps"
	"slices"
	"strings"
)

// endpoint is a webhook_endpoint.
type endpoint struct {
	id, url, description string
	apiVersion           string // "" is the account's
	secrets              []string
	types                []string
	created              int64
	disabled             bool
	metadata             map[string]string
}

// wants reports whether events of a type go to the endpoint.
func (e *endpoint) wants(eventType string) bool {
	return !e.disabled && (slices.Contains(e.types, "*") || slices.Contains(e.types, eventType))
}

func (e *endpoint) render(a *Account) map[string]any {
	status := "enabled"
	if e.disabled {
		status = "disabled"
	}
	return map[string]any{
		"id": e.id, "object": "webhook_endpoint", "livemode": a.cfg.Livemode, "created": e.created, "url": e.url, "status": status,
		"enabled_events": e.types, "api_version": text(e.apiVersion), "description": text(e.description), "metadata": labels(e.metadata),
		"application": nil,
	}
}

// configured is the id of the endpoint that SetWebhook is about.
const configured = "we_configured"

// SetWebhook points the configured webhook endpoint to a URL, for all events;
// it is made at the first call. With several secrets, as while one is rolled,
// every delivery has a signature by each. Events of before have been sent to
// nobody; what is still to be delivered goes to the new URL. What is no URL
// panics.
func (s *Server) SetWebhook(url string, secrets ...string) {
	if f := (&form{}); f.link("url", url) == "" || f.wrong != nil {
		panic("stripefake: no URL of a webhook endpoint")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.endpoint(configured)
	if e == nil {
		e = &endpoint{id: configured, types: []string{"*"}, created: s.account.now}
		s.endpoints = append(s.endpoints, e)
	}
	e.url, e.secrets = url, slices.Clone(secrets)
}

// endpoint finds a webhook endpoint; nil is none.
func (s *Server) endpoint(id string) *endpoint {
	for _, e := range s.endpoints {
		if e.id == id {
			return e
		}
	}
	return nil
}

const endpointKind = "webhook endpoint"

// maxEndpoints is how many webhook endpoints an account can have.
const maxEndpoints = 16

var (
	endpointParams       = []string{"url", "enabled_events[#]", "api_version", "description", "metadata[*]", "connect"}
	endpointUpdateParams = []string{"url", "enabled_events[#]", "description", "metadata[*]", "disabled"}
)

func (c *call) createEndpoint() work {
	f := &c.form
	e := &endpoint{
		url: f.link("url", f.need("url")), types: f.list("enabled_events"), apiVersion: f.text("api_version"),
		description: f.text("description"), metadata: f.labels("metadata"),
	}
	f.flag("connect") // the fake has one account, and tells of that
	if len(e.types) == 0 {
		f.refuse("parameter_missing", "enabled_events", "Missing required param: enabled_events.")
	}
	c.checkURL(e.url)
	if v := c.server.account.cfg.APIVersion; e.apiVersion != "" && e.apiVersion != v {
		f.refuse("", "api_version", "Invalid API version: this account renders its events as of "+v+" only.")
	}
	return func(a *Account) (any, error) {
		s := c.server
		if len(s.endpoints) == maxEndpoints {
			return nil, &apiError{status: 400, kind: kindInvalid, message: "You have reached the maximum of 16 webhook endpoints."}
		}
		e.id, e.created = a.newID("we_"), a.now
		e.secrets = []string{a.newID("whsec_")}
		s.endpoints = append(s.endpoints, e)
		o := e.render(a)
		o["secret"] = e.secrets[0] // shown this once
		return o, nil
	}
}

// checkURL holds a live endpoint to https.
func (c *call) checkURL(url string) {
	if c.server.account.cfg.Livemode && strings.HasPrefix(url, "http://") {
		c.form.refuse("url_invalid", "url", "Invalid URL: The URL must be https in live mode")
	}
}

// oneEndpoint is a call about one endpoint.
func (c *call) oneEndpoint(act func(a *Account, e *endpoint) any) work {
	return func(a *Account) (any, error) {
		e := c.server.endpoint(c.id)
		if e == nil {
			return nil, missing(endpointKind, c.id, "id")
		}
		return act(a, e), nil
	}
}

func (c *call) retrieveEndpoint() work {
	return c.oneEndpoint(func(a *Account, e *endpoint) any { return e.render(a) })
}

func (c *call) updateEndpoint() work {
	f := &c.form
	url, types, description := f.link("url", f.text("url")), f.list("enabled_events"), f.text("description")
	metadata, unset := f.labels("metadata"), f.unset("metadata")
	disabled, switched := f.flag("disabled")
	c.checkURL(url)
	return c.oneEndpoint(func(a *Account, e *endpoint) any {
		if url != "" {
			e.url = url
		}
		if len(types) > 0 {
			e.types = types
		}
		if description != "" {
			e.description = description
		}
		if switched {
			e.disabled = disabled
		}
		e.metadata = maps.Clone(labels(e.metadata))
		maps.Copy(e.metadata, metadata)
		for _, name := range unset {
			delete(e.metadata, name)
		}
		return e.render(a)
	})
}

func (c *call) deleteEndpoint() work {
	return c.oneEndpoint(func(a *Account, e *endpoint) any {
		c.server.endpoints = slices.DeleteFunc(c.server.endpoints, func(x *endpoint) bool { return x == e })
		c.server.post.forget(e.id)
		return map[string]any{"id": e.id, "object": "webhook_endpoint", "deleted": true}
	})
}

func (c *call) listEndpoints() work {
	p := c.form.paging()
	return func(a *Account) (any, error) {
		var ids []string
		for _, e := range slices.Backward(c.server.endpoints) {
			ids = append(ids, e.id)
		}
		page, more, err := p.cut(endpointKind, ids, ids)
		if err != nil {
			return nil, err
		}
		data := []any{}
		for _, id := range page {
			data = append(data, c.server.endpoint(id).render(a))
		}
		return c.list(data, more), nil
	}
}
