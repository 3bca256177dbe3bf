package stripefake

import (
	"fmt"
	"strconv"
)

var sessionParams = []string{
	"mode", "success_url", "cancel_url", "customer_email", "client_reference_id", "expires_at", "expand[#]", "metadata[*]",
	"payment_method_types[#]", "payment_intent_data[metadata][*]", "payment_intent_data[capture_method]",
	"line_items[#][quantity]", "line_items[#][price_data][currency]", "line_items[#][price_data][unit_amount]",
	"line_items[#][price_data][product_data][name]", "line_items[#][price_data][product_data][description]",
}

// maxAmount is the largest amount that Stripe takes: eight digits.
const maxAmount = 99999999

// smallestUnit is what amounts of a currency must be multiples of.
func smallestUnit(currency string) int64 {
	switch currency {
	case "bhd", "jod", "kwd", "omr", "tnd":
		return 10
	case "isk", "ugx":
		return 100
	}
	return 1
}

// createSession reads what a Checkout Session is to be opened with.
func (c *call) createSession() work {
	f := &c.form
	p := SessionParams{
		SuccessURL: f.link("success_url", f.need("success_url")), CancelURL: f.link("cancel_url", f.text("cancel_url")),
		Email: f.text("customer_email"), Reference: f.text("client_reference_id"),
		Metadata: f.labels("metadata"), IntentMetadata: f.labels("payment_intent_data[metadata]"),
		Manual: f.oneOf("payment_intent_data[capture_method]", "automatic", "automatic_async", "manual") == "manual",
	}
	if mode := f.need("mode"); mode != "" && mode != "payment" {
		f.refuse("", "mode", "This account opens sessions in mode payment only.")
	}
	for _, name := range f.list("payment_method_types") {
		switch name {
		case Card.name():
			p.Methods = append(p.Methods, Card)
		case Debit.name():
			p.Methods = append(p.Methods, Debit)
		default:
			f.refuse("", "payment_method_types", "The payment method type provided: "+name+" is invalid.")
		}
	}
	switch {
	case len(p.Methods) > 0:
		p.Method = p.Methods[0]
	case !p.Manual: // whatever the account has
		p.Methods = []Method{Card, Debit}
	}
	c.readLines(&p)
	expires, chosen := f.integer("expires_at")
	expand := f.list("expand")
	return func(a *Account) (any, error) {
		if chosen && (expires < a.now+30*60 || expires > a.now+24*3600) {
			return nil, &apiError{status: 400, kind: kindInvalid, param: "expires_at",
				message: "The `expires_at` timestamp must be at least 30 minutes and at most 24 hours from Checkout Session creation."}
		}
		p.ExpiresAt = expires
		s, err := a.OpenSession(p)
		if err != nil {
			return nil, err
		}
		return c.expanded(a, c.showSession(a, a.sessions[s.ID]), expand, "")
	}
}

// readLines reads line_items, whose sum is what the session costs.
func (c *call) readLines(p *SessionParams) {
	f := &c.form
	indexes := f.indexes("line_items")
	if len(indexes) == 0 {
		f.refuse("parameter_missing", "line_items", "Missing required param: line_items.")
	}
	for _, index := range indexes {
		at := "line_items[" + index + "]"
		unit, given := f.integer(at + "[price_data][unit_amount]")
		switch currency := f.currency(at + "[price_data][currency]"); {
		case !given:
			f.refuse("parameter_missing", at+"[price_data][unit_amount]", "Missing required param: "+at+"[price_data][unit_amount].")
		case unit < 0:
			f.refuse("parameter_invalid_integer", at+"[price_data][unit_amount]", "This value must be greater than or equal to 0.")
		case unit > maxAmount:
			f.refuse("amount_too_large", at+"[price_data][unit_amount]", "Amount must be no more than 99999999.")
		case p.Currency != "" && currency != p.Currency:
			f.refuse("", at, "All line items must have the same currency.")
		case unit%smallestUnit(currency) != 0:
			f.refuse("parameter_invalid_integer", at+"[price_data][unit_amount]", fmt.Sprintf("Amounts in %s must be a multiple of %d.", currency, smallestUnit(currency)))
		default:
			p.Currency = currency
		}
		number, given := f.integer(at + "[quantity]")
		switch {
		case !given:
			f.refuse("parameter_missing", at+"[quantity]", "Missing required param: "+at+"[quantity].")
		case number < 1 || number > 999999:
			f.refuse("parameter_invalid_integer", at+"[quantity]", "Invalid quantity: must be between 1 and 999999.")
		}
		if f.wrong != nil {
			return
		}
		p.Lines = append(p.Lines, Line{Name: f.need(at + "[price_data][product_data][name]"), Unit: unit, Number: number})
		if p.Pricing.Subtotal += unit * number; p.Pricing.Subtotal > maxAmount {
			f.refuse("amount_too_large", "line_items", "The Checkout Session's total amount must be no more than 99999999.")
			return
		}
	}
}

func (a *Account) allSessions() map[string]*Session { return a.sessions }

// showSession is a session as the API answers it: while it is open, its url is
// the fake's own page.
func (c *call) showSession(a *Account, s *Session) map[string]any {
	o := s.render(a)
	if s.Status == SessionOpen {
		o["url"] = c.base + payPath + s.ID
	}
	return o
}

const sessionKind = "checkout.session"

func (c *call) retrieveSession() work {
	return one(c, sessionKind, (*Account).allSessions, nil, c.showSession)
}

func (c *call) expireSession() work {
	return one(c, sessionKind, (*Account).allSessions, func(a *Account) error { return a.ExpireSession(c.id) }, c.showSession)
}

func (c *call) listSessions() work {
	f := &c.form
	created, intent, link := f.span("created"), f.text("payment_intent"), f.text("payment_link")
	status := f.oneOf("status", SessionOpen, SessionComplete, SessionExpired)
	return listOf(c, sessionKind, (*Account).allSessions, func(s *Session) bool {
		return created.has(s.Created) && fits(intent, s.Intent) && fits(link, s.Link) && fits(status, s.Status)
	}, c.showSession)
}

// fits reports whether a filter, where there is one, is met.
func fits(filter, value string) bool { return filter == "" || filter == value }

// lines are a session's lines as objects. A session of which only the sum is
// known has one.
func (s *Session) lines() []any {
	lines := s.Lines
	if len(lines) == 0 {
		lines = []Line{{Name: "Goods", Unit: s.Pricing.Subtotal, Number: 1}}
	}
	var out []any
	for i, l := range lines {
		amount := l.Unit * l.Number
		out = append(out, map[string]any{
			"id": "li_" + s.ID + strconv.Itoa(i), "object": "item", "description": l.Name, "quantity": l.Number, "currency": s.Currency,
			"amount_subtotal": amount, "amount_total": amount, "amount_discount": int64(0), "amount_tax": int64(0),
			"price": map[string]any{
				"id": "price_" + s.ID + strconv.Itoa(i), "object": "price", "active": false, "currency": s.Currency,
				"type": "one_time", "unit_amount": l.Unit, "metadata": labels(nil),
			},
		})
	}
	return out
}

func (c *call) listLines() work {
	p := c.form.paging()
	return func(a *Account) (any, error) {
		s := a.sessions[c.id]
		if s == nil {
			return nil, missing(sessionKind, c.id, "id")
		}
		byID := map[string]any{}
		var ids []string
		for _, l := range s.lines() {
			id := l.(map[string]any)["id"].(string)
			ids, byID[id] = append(ids, id), l
		}
		page, more, err := p.cut("item", ids, ids)
		if err != nil {
			return nil, err
		}
		data := []any{}
		for _, id := range page {
			data = append(data, byID[id])
		}
		return c.list(data, more), nil
	}
}
