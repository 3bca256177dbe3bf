package compose

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"paidonce/store"
)

func TestMailIsWrittenFromItsTemplates(t *testing.T) {
	for _, tt := range []struct {
		name     string
		target   Target
		occasion store.Occasion
		want     store.MailCall
	}{
		{"the example of the design", mailTarget(), paid(),
			store.MailCall{From: "Shop <shop@example.org>", To: "ann@example.org", Subject: "Thank you for order A1", Text: "We got 12.50 EUR.\n"}},
		{"amounts in the currency's own decimals", mailTarget(func(t *Target) {
			t.Text.Text = `{{.Amount}}, {{money .Order.RefundedMinor .Order.Currency}}, {{money 5 "jpy"}}`
		}), paid(func(o *store.Order) { o.Currency = "kwd" }),
			store.MailCall{From: "Shop <shop@example.org>", To: "ann@example.org", Subject: "Thank you for order A1", Text: "1.250 KWD, 0.300 KWD, 5 JPY"}},
		{"text is not escaped and html is", mailTarget(func(t *Target) {
			t.Text.Text, t.HTML = "{{.Order.Customer.Name}}", Template{"mail/paid.html", `<p title="{{.Amount}}">{{.Order.Customer.Name}}</p>`}
		}), paid(), store.MailCall{From: "Shop <shop@example.org>", To: "ann@example.org", Subject: "Thank you for order A1",
			Text: "Ann <&> Lee", HTML: `<p title="12.50 EUR">Ann &lt;&amp;&gt; Lee</p>`}},
		{"the operation and the event", mailTarget(func(t *Target) {
			t.On = []string{"dispute.*"}
			t.Text.Text = "{{.Operation}} {{.Operation.Kind}} {{.Operation.Object}} {{.Operation.Verdict}} {{.Operation.OccurredAt}}{{with .Event}} {{.ID}}{{end}}"
		}), store.Occasion{Operation: "dispute.closed:dp_1:lost", OccurredAt: at, Order: order(), Event: event()},
			store.MailCall{From: "Shop <shop@example.org>", To: "ann@example.org", Subject: "Thank you for order A1",
				Text: "dispute.closed:dp_1:lost dispute.closed dp_1 lost 2026-12-01T10:00:00.000Z evt_1"}},
		{"metadata that is there", mailTarget(func(t *Target) {
			t.Text.Text = `{{.Order.Metadata.size}}{{with index .Order.Metadata "gift"}}, a gift{{end}}`
		}), paid(), store.MailCall{From: "Shop <shop@example.org>", To: "ann@example.org", Subject: "Thank you for order A1", Text: "XL"}},
		{"a name in one line", mailTarget(func(t *Target) { t.Subject.Text = "For {{line .Order.Customer.Name}}" }),
			paid(func(o *store.Order) { o.Customer.Name = " Ann\r\nBcc:\u2028x\u0085 \x00" }),
			store.MailCall{From: "Shop <shop@example.org>", To: "ann@example.org", Subject: "For Ann Bcc: x", Text: "We got 12.50 EUR.\n"}},
		{"a byte order mark before a text goes away", mailTarget(func(t *Target) { t.Text.Text = "\ufeffHello" }), paid(),
			store.MailCall{From: "Shop <shop@example.org>", To: "ann@example.org", Subject: "Thank you for order A1", Text: "Hello"}},
		{"a raw event", mailTarget(func(t *Target) {
			t.On, t.To.Text, t.Subject.Text, t.Text.Text = []string{"github:push"}, "Me <me@example.org>", "{{.Operation}}", "{{.Event.ID}}"
		}), raw("github", "push", "{}"), store.MailCall{From: "Shop <shop@example.org>", To: "Me <me@example.org>", Subject: "github:push", Text: "e1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := mailOf(t, tt.target, tt.occasion); got != tt.want {
				t.Errorf("mail %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

// What a customer or the order lacks fails the one effect, and says so without
// a word of the customer's.
func TestMailThatCannotBeWrittenIsAFailedEffect(t *testing.T) {
	for _, tt := range []struct {
		name     string
		target   Target
		occasion store.Occasion
		want     string
	}{
		{"the customer has no address", mailTarget(), paid(func(o *store.Order) { o.Customer.Email = "" }), "order has no customer e-mail"},
		{"the customer has no address, but a name", mailTarget(func(t *Target) { t.To.Text = `"{{.Order.Customer.Name}}" <{{.Order.Customer.Email}}>` }),
			paid(func(o *store.Order) { o.Customer.Email = "" }), "order has no customer e-mail"},
		{"the address is none", mailTarget(), paid(func(o *store.Order) { o.Customer.Email = "ann MARK" }), "the recipient is not exactly one mail address"},
		{"the address is two", mailTarget(), paid(func(o *store.Order) { o.Customer.Email = "ann@example.org, MARK@example.org" }), "the recipient is not exactly one mail address"},
		{"the name brings an address of its own", mailTarget(func(t *Target) { t.To.Text = `"{{.Order.Customer.Name}}" <{{.Order.Customer.Email}}>` }),
			paid(func(o *store.Order) { o.Customer.Name = `x" <MARK@example.org>, "` }), "the recipient is not exactly one mail address"},
		{"the address brings a header", mailTarget(), paid(func(o *store.Order) { o.Customer.Email = "ann@example.org\r\nBcc: MARK@example.org" }), "the recipient holds a line break"},
		{"the recipient is blank", mailTarget(func(t *Target) { t.To.Text = `{{with index .Order.Metadata "to"}}{{.}}{{end}} ` }), paid(), "the recipient is empty"},
		{"the subject brings a header", mailTarget(func(t *Target) { t.Subject.Text = "For {{.Order.Customer.Name}}" }),
			paid(func(o *store.Order) { o.Customer.Name = "MARK\r\nBcc: x@example.org" }), "the subject holds a line break"},
		{"the subject holds another control character", mailTarget(func(t *Target) { t.Subject.Text = "For {{.Order.Customer.Name}}" }),
			paid(func(o *store.Order) { o.Customer.Name = "MARK\u0085MARK" }), "the subject holds a line break"},
		{"the subject holds what some take for a line break", mailTarget(func(t *Target) { t.Subject.Text = "For {{.Order.Customer.Name}}" }),
			paid(func(o *store.Order) { o.Customer.Name = "MARK\u2028MARK" }), "the subject holds a line break"},
		{"the subject is empty", mailTarget(func(t *Target) { t.Subject.Text = `{{with index .Order.Metadata "s"}}{{.}}{{end}} ` }), paid(), "the subject is empty"},
		{"the text is empty", mailTarget(func(t *Target) { t.Text.Text = "{{if .Order.Customer.Name}}\n{{end}}" }), paid(), "the mail is empty"},
		{"a key that metadata lacks", mailTarget(func(t *Target) { t.Text.Text = "Hello\n{{.Order.Metadata.gift}}" }), paid(),
			`mail/paid.txt:2:8: at <.Order.Metadata.gift>: map has no entry for key "gift"`},
		{"a key that metadata lacks, in html", mailTarget(func(t *Target) { t.HTML = Template{"mail/paid.html", "{{.Order.Metadata.gift}}"} }), paid(),
			`mail/paid.html:1:8: at <.Order.Metadata.gift>: map has no entry`},
		{"an error that is longer than anybody reads", mailTarget(func(t *Target) { t.Text.Text = "{{.Order.Metadata." + strings.Repeat("é", 200) + "}}" }), paid(),
			"mail/paid.txt:1:8: at <.Order.Metadata.é"},
		{"an item that is not there", mailTarget(func(t *Target) { t.Text.Text = "{{(index .Order.Items 1).SKU}}" }), paid(), "error calling index: "},
		{"an error that quotes the customer", mailTarget(func(t *Target) {
			t.Text.Text = `{{if index .Order.Metadata "size"}}{{range .Order.Customer.Email}}{{.X}}{{end}}{{end}}`
		}),
			paid(func(o *store.Order) { o.Customer.Email = "MARK@example.org" }), "a template failed on the customer's data"},
		{"more than a mail can be", mailTarget(func(t *Target) { t.Text.Text = `{{range 1000}}{{$.Order.Customer.Name}}{{end}}` }),
			paid(func(o *store.Order) { o.Customer.Name = strings.Repeat("MARK", 1000) }), "it writes more than 1 MiB"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := composed(t, tt.target, tt.occasion)
			if !strings.Contains(c.Failed, tt.want) || len(c.Failed) > 200 || !utf8.ValidString(c.Failed) {
				t.Errorf("failed %q; want %q", c.Failed, tt.want)
			}
			if c.Body != nil || c.Target != "thanks" || c.Kind != store.KindEmail {
				t.Errorf("composed %+v", c)
			}
			if strings.Contains(c.Failed, "MARK") {
				t.Errorf("%q quotes the customer", c.Failed)
			}
		})
	}
}

func TestAPanicStaysWithItsEffect(t *testing.T) {
	c := composer{name: "a", kind: store.KindHTTP, write: func(*occasion) ([]byte, string) { panic("MARK") }}
	got := c.compose(newOccasion(paid()))
	if got.Failed != "composing it panicked" || got.Body != nil || got.Target != "a" || got.Kind != store.KindHTTP {
		t.Errorf("composed %+v", got)
	}
}

func TestATargetIsCheckedBeforeItIsUsed(t *testing.T) {
	for _, tt := range []struct {
		name   string
		target Target
		want   string // "" is right
	}{
		{"a right one", mailTarget(), ""},
		{"an http target needs no templates", Target{Name: "app", On: []string{"alert.*", "stripe:x"}, Do: store.KindHTTP}, ""},
		{"nothing to be told of", mailTarget(func(t *Target) { t.On = nil }), "on: says nothing"},
		{"an unknown operation", mailTarget(func(t *Target) { t.On = []string{"order.payed"} }), "on: is no known operation"},
		{"another kind", Target{Name: "app", On: []string{"order.paid"}, Do: store.KindStripe}, "do: must be http, email or exec"},
		{"no sender", mailTarget(func(t *Target) { t.From = "" }), "from: must be one mail address"},
		{"two senders", mailTarget(func(t *Target) { t.From = "a@example.org, b@example.org" }), "from: must be one mail address"},
		{"no recipient", mailTarget(func(t *Target) { t.To = Template{} }), "to: is missing"},
		{"a fixed recipient that is none", mailTarget(func(t *Target) { t.To.Text = "the boss" }), "to: must be one mail address"},
		{"a fixed recipient", mailTarget(func(t *Target) { t.To.Text = "Boss <boss@example.org>\n" }), ""},
		{"no subject", mailTarget(func(t *Target) { t.Subject = Template{} }), "subject: is missing"},
		{"a fixed subject of two lines", mailTarget(func(t *Target) { t.Subject.Text = "a\nb" }), "subject: must be one line"},
		{"neither text nor html", mailTarget(func(t *Target) { t.Text = Template{} }), "body: is missing, and so is html"},
		{"html alone", mailTarget(func(t *Target) { t.Text, t.HTML = Template{}, Template{"p.html", "<p>{{.Amount}}"} }), ""},
		{"an empty file", mailTarget(func(t *Target) { t.Text.Text = " \n" }), "body: mail/paid.txt: is empty"},
		{"a text that is not UTF-8", mailTarget(func(t *Target) { t.Text.Text = "gr\xfc\xdfe" }), "body: mail/paid.txt: is not text in UTF-8"},
		{"a template that does not parse", mailTarget(func(t *Target) { t.Text.Text = "a\nb {{if}}" }), "body: mail/paid.txt:2: missing value for if"},
		{"a function that there is not", mailTarget(func(t *Target) { t.Text.Text = "{{env `HOME`}}" }), `body: mail/paid.txt:1: function "env" not defined`},
		{"a field that there is not", mailTarget(func(t *Target) { t.Text.Text = "\n{{.Order.Totl}}" }), "body: mail/paid.txt:2:8: at <.Order.Totl>: can't evaluate field Totl"},
		{"a field that there is not, in the recipient", mailTarget(func(t *Target) { t.To.Text = "{{.Order.Email}}" }), "to: to:1:8: at <.Order.Email>: can't evaluate field Email"},
		{"a field that there is not, in the subject", mailTarget(func(t *Target) { t.Subject.Text = "{{.Ordre}}" }), "subject: subject:1:2: at <.Ordre>: can't evaluate field Ordre"},
		{"a field that there is not, in html", mailTarget(func(t *Target) { t.HTML = Template{"p.html", "{{.Order.Totl}}"} }), "html: p.html:1:8: at <.Order.Totl>: can't evaluate field Totl"},
		{"html that escapes nowhere", mailTarget(func(t *Target) { t.HTML = Template{"p.html", `<a href="{{.Order.ID}}`} }), "html: p.html"},
		{"the order of an alert", mailTarget(func(t *Target) { t.On = []string{"order.paid", "alert.pending"} }), "(tried on alert.pending)"},
		{"the order of a raw event", mailTarget(func(t *Target) { t.On = []string{"stripe:a.*"} }), "(tried on stripe:a.created)"},
		{"the event of what may have none", mailTarget(func(t *Target) { t.Text.Text = "{{.Event.ID}}" }), "(order.paid may have no event: write {{with .Event}}…{{end}})"},
		{"the event where there is one", mailTarget(func(t *Target) { t.Text.Text = "{{with .Event}}{{.ID}}{{end}}{{.Order.ID}}" }), ""},
		{"the event of a raw event", mailTarget(func(t *Target) {
			t.On, t.To.Text, t.Subject.Text, t.Text.Text = []string{"github:*"}, "a@example.org", "{{.Event.Type}}", "{{.Event.ID}}"
		}), ""},
		{"the amount of a refund", mailTarget(func(t *Target) { t.On = []string{"order.paid", "refund.*"} }), ".Amount is the total of an order"},
		{"money without a currency", mailTarget(func(t *Target) { t.Text.Text = "{{money .Order.TotalMinor}}" }), "wrong number of args for money"},
		{"metadata that only some orders have", mailTarget(func(t *Target) { t.Text.Text = "{{.Order.Metadata.gift}}" }), ""},
		{"metadata that only some orders have, for a function", mailTarget(func(t *Target) { t.Text.Text = "{{line .Order.Metadata.gift}}" }), ""},
		{"an item that only some orders have", mailTarget(func(t *Target) { t.Text.Text = "{{(index .Order.Items 7).SKU}}" }), ""},
		{"a text that is long in real orders", mailTarget(func(t *Target) { t.Text.Text = "{{slice .Order.Customer.Name 0 99}}" }), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var all []string
			for _, p := range tt.target.Check() {
				all = append(all, p.String())
			}
			got := strings.Join(all, "\n")
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("Check:\n%s\nwant %q", got, tt.want)
			}
			c, err := New([]Target{tt.target})
			if (err == nil) != (tt.want == "") || (c == nil) != (err != nil) {
				t.Errorf("New = %v", err)
			}
		})
	}
}

func TestTwoTargetsOfOneNameAreRefused(t *testing.T) {
	target := Target{Name: "app", On: []string{"order.paid"}, Do: store.KindHTTP}
	if _, err := New([]Target{target, target}); err == nil || !strings.Contains(err.Error(), "effect app: name: there are two") {
		t.Errorf("New = %v", err)
	}
}

func TestMailAboutAlertsWritesItself(t *testing.T) {
	target := Target{Name: "me", On: []string{"alert.*"}, Do: store.KindEmail, From: "shop@example.org", To: Template{"to", "me@example.org"}}
	t.Run("it says what, which, how much, what happens next and what to run", func(t *testing.T) {
		m := mailOf(t, target, alert("firing", 3))
		if m.Subject != "[paidonce] 3 events are quarantined." || m.HTML != "" {
			t.Errorf("subject %q, html %q", m.Subject, m.HTML)
		}
		const want = `3 events are quarantined.

- order A1, event evt_1, 12.50 EUR, 2026-12-01T10:00:00.000Z
  amount_mismatch
- and 2 more

What happens if nobody does anything:
  They stay where they are.

What to run:
  paidonce events list --status quarantined

-- 
alert quarantined, firing, since 2026-12-01T10:00:00.000Z
`
		if m.Text != want {
			t.Errorf("text\n%s\nwant\n%s", m.Text, want)
		}
	})
	for _, tt := range []struct{ state, want string }{
		{"resolved", "[paidonce] Resolved: 3 events are quarantined."}, {"reminder", "[paidonce] Still: 3 events are quarantined."},
	} {
		t.Run("the subject of one that is "+tt.state, func(t *testing.T) {
			if m := mailOf(t, target, alert(tt.state, 1)); m.Subject != tt.want || strings.Contains(m.Text, "more") {
				t.Errorf("subject %q; text\n%s", m.Subject, m.Text)
			}
		})
	}
	t.Run("a summary of two lines is still told", func(t *testing.T) {
		o := alert("firing", 1)
		o.Alert.Summary = "one\r\ntwo"
		if m := mailOf(t, target, o); m.Subject != "[paidonce] one two" {
			t.Errorf("subject %q", m.Subject)
		}
	})
	t.Run("one with nothing but a name is still told", func(t *testing.T) {
		o := alert("firing", 0)
		o.Alert = &store.Alert{Name: "pending", Summary: "x"}
		if m := mailOf(t, target, o); !strings.Contains(m.Text, "alert pending") || strings.Contains(m.Text, "What") {
			t.Errorf("text\n%s", m.Text)
		}
	})
	t.Run("a subject of one's own goes before", func(t *testing.T) {
		own := target
		own.Subject = Template{"subject", "{{.Alert.Name}}!"}
		if m := mailOf(t, own, alert("firing", 1)); m.Subject != "quarantined!" || !strings.Contains(m.Text, "What to run") {
			t.Errorf("subject %q; text\n%s", m.Subject, m.Text)
		}
	})
	t.Run("html of one's own is alone", func(t *testing.T) {
		own := target
		own.HTML = Template{"a.html", "<p>{{.Alert.Summary}}"}
		if m := mailOf(t, own, alert("firing", 1)); m.Text != "" || m.HTML != "<p>3 events are quarantined." {
			t.Errorf("text %q, html %q", m.Text, m.HTML)
		}
	})
}

// What a customer writes may make a mail fail, and nothing else.
func FuzzMail(f *testing.F) {
	for _, s := range []string{"Ann", "a\r\nBcc: b@example.org", `x" <m@example.org>, "`, "{{.Order.ID}}", "<script>", "\u2028", "\xff", "\u0085", ""} {
		f.Add(s, "ann@example.org", "XL")
		f.Add("Ann", s, s)
	}
	compose, err := New([]Target{
		mailTarget(func(t *Target) {
			t.To.Text, t.Subject.Text = `"{{.Order.Customer.Name}}" <{{.Order.Customer.Email}}>`, "For {{.Order.Customer.Name}}"
			t.HTML = Template{"p.html", `<a title="{{.Order.Customer.Name}}" onclick="x({{.Order.Metadata.size}})">{{.Order.Customer.Email}}</a>`}
		}),
		mailTarget(func(t *Target) {
			t.Name, t.Subject.Text = "b", "{{.Order.Metadata.size}} {{slice .Order.Customer.Name 3}}"
			t.Text.Text = "{{range .Order.Items}}{{.Name}}{{end}}"
		}),
		mailTarget(func(t *Target) { t.Name, t.Subject.Text = "lined", "For {{line .Order.Customer.Name}}" }),
		{Name: "app", On: []string{"order.paid"}, Do: store.KindHTTP},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, name, email, size string) {
		all := compose(paid(func(o *store.Order) {
			o.Customer = store.Customer{Name: name, Email: email}
			o.Items[0].Name, o.Metadata["size"] = size, size
		}))
		if len(all) != 4 {
			t.Fatalf("%d effects", len(all))
		}
		for _, c := range all {
			if (c.Failed == "") == (len(c.Body) == 0) || len(c.Failed) > 200 || strings.Contains(c.Failed, "panic") {
				t.Fatalf("%s: body %q, failed %q", c.Target, c.Body, c.Failed)
			}
			if c.Failed != "" || c.Kind != store.KindEmail {
				if len(email) > 20 && strings.Contains(c.Failed, email) {
					t.Errorf("%q quotes the customer", c.Failed)
				}
				if c.Kind != store.KindEmail && !json.Valid(c.Body) {
					t.Errorf("%s is no JSON", c.Body)
				}
				continue
			}
			var m store.MailCall
			if err := json.Unmarshal(c.Body, &m); err != nil {
				t.Fatal(err)
			}
			if hasControl(m.Subject) || hasControl(m.To) || !oneAddress(m.To) || m.Subject == "" {
				t.Errorf("to %q, subject %q", m.To, m.Subject)
			}
			if strings.Contains(m.HTML, "<script") {
				t.Errorf("html %s", m.HTML)
			}
		}
		if all[2].Failed != "" && oneAddress(email) && strings.TrimSpace(email) != "" {
			t.Errorf("a name fails a subject that uses line: %s", all[2].Failed)
		}
	})
}
