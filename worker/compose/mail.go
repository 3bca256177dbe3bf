package compose

import (
	"errors"
	htmltemplate "html/template"
	"io"
	"net/mail"
	"slices"
	"strings"
	"text/template"
	"unicode/utf8"

	"paidonce/store"
)

// maxPart is the most that a template may write, in bytes: a loop that nobody
// thought through must not fill the file.
const maxPart = 1 << 20

// part is a parsed template of either package; nil is none.
type part interface {
	Execute(w io.Writer, data any) error
}

// mailer writes the mail of one target.
type mailer struct {
	from, toText            string
	to, subject, text, html part
}

// newMailer parses the templates of t and tries them out on whatever t is told
// of by on.
func newMailer(t Target, on []pattern) (*mailer, []Problem) {
	var problems []Problem
	wrong := func(key, text string) { problems = append(problems, Problem{key, text}) }
	m := &mailer{from: t.From, toText: t.To.Text}
	if !oneAddress(t.From) {
		wrong("from", "must be one mail address")
	}
	if blank(t.To) {
		wrong("to", "is missing: who gets the mail")
	} else if t.To.constant() && !oneAddress(strings.TrimSpace(t.To.Text)) {
		wrong("to", "must be one mail address")
	}
	if t.Subject.constant() && hasControl(strings.TrimSpace(t.Subject.Text)) {
		wrong("subject", "must be one line")
	}
	alertsOnly := !slices.ContainsFunc(on, func(p pattern) bool { return !strings.HasPrefix(p.text, "alert.") })
	switch {
	case t.Subject == Template{} && alertsOnly:
		t.Subject = alertSubject
	case blank(t.Subject):
		wrong("subject", "is missing: only mail about alerts alone has one of its own")
	}
	switch {
	case t.Text == Template{} && t.HTML == Template{} && alertsOnly:
		t.Text = alertText
	case t.Text == Template{} && t.HTML == Template{}:
		wrong("body", "is missing, and so is html: only mail about alerts alone has a text of its own")
	}
	for _, p := range []struct {
		key  string
		from Template
		html bool
		into *part
	}{{"to", t.To, false, &m.to}, {"subject", t.Subject, false, &m.subject}, {"body", t.Text, false, &m.text}, {"html", t.HTML, true, &m.html}} {
		if p.from == (Template{}) {
			continue
		}
		parsed, err := p.from.parse(p.html)
		switch {
		case err != nil:
		case blank(p.from) && (p.key == "body" || p.key == "html"):
			err = errors.New(p.from.Name + ": is empty")
		default:
			err = try(parsed, on)
		}
		if err != nil {
			wrong(p.key, explain(err))
			continue
		}
		*p.into = parsed
	}
	return m, problems
}

func blank(t Template) bool { return strings.TrimSpace(t.Text) == "" }

// constant reports whether t is the same for every occasion.
func (t Template) constant() bool { return !strings.Contains(t.Text, "{{") }

// switchable is a part that can be told what a missing key is.
type switchable interface {
	part
	missingKey(what string)
}

type textPart struct{ *template.Template }

func (p textPart) missingKey(what string) { p.Option("missingkey=" + what) }

type htmlPart struct{ *htmltemplate.Template }

func (p htmlPart) missingKey(what string) { p.Option("missingkey=" + what) }

func (t Template) parse(html bool) (switchable, error) {
	text := strings.TrimPrefix(t.Text, "\ufeff") // some editors put it before the text
	if !utf8.ValidString(text) {
		return nil, errors.New(t.Name + ": is not text in UTF-8")
	}
	if html {
		parsed, err := htmltemplate.New(t.Name).Funcs(htmltemplate.FuncMap(functions)).Parse(text)
		return htmlPart{parsed}, err
	}
	parsed, err := template.New(t.Name).Funcs(functions).Parse(text)
	return textPart{parsed}, err
}

// write makes the frozen store.MailCall of an occasion.
func (m *mailer) write(o *occasion) (body []byte, failed string) {
	call := store.MailCall{From: m.from}
	for _, p := range []struct {
		from part
		into *string
	}{{m.to, &call.To}, {m.subject, &call.Subject}, {m.text, &call.Text}, {m.html, &call.HTML}} {
		if p.from == nil {
			continue
		}
		var err error
		if *p.into, err = render(p.from, o.Data); err != nil {
			return nil, explain(err)
		}
	}
	call.To, call.Subject = strings.TrimSpace(call.To), strings.TrimSpace(call.Subject)
	switch {
	case o.Order != nil && o.Order.Customer.Email == "" && strings.Contains(m.toText, ".Customer.Email") && !oneAddress(call.To):
		return nil, "order has no customer e-mail"
	case call.To == "":
		return nil, "the recipient is empty"
	case hasControl(call.To):
		return nil, "the recipient holds a line break or another control character"
	case !oneAddress(call.To):
		return nil, "the recipient is not exactly one mail address"
	case call.Subject == "":
		return nil, "the subject is empty"
	case hasControl(call.Subject):
		return nil, "the subject holds a line break or another control character"
	case strings.TrimSpace(call.Text) == "" && strings.TrimSpace(call.HTML) == "":
		return nil, "the mail is empty"
	}
	body, err := plainJSON(call)
	if err != nil {
		return nil, "the mail cannot be written as JSON"
	}
	return body, ""
}

// render runs a template. Pointers in data that are nil stay so: a template
// that asks for the order of an alert fails, and does not write a blank.
func render(p part, data Data) (string, error) {
	var b limited
	if err := p.Execute(&b, data); err != nil {
		return "", err
	}
	return b.String(), nil
}

var errTooLong = errors.New("it writes more than 1 MiB")

// limited takes maxPart bytes and no more.
type limited struct{ strings.Builder }

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxPart {
		return 0, errTooLong
	}
	return l.Builder.Write(p)
}

// oneAddress reports whether s is exactly one RFC 5322 address, with or without
// a name before it.
func oneAddress(s string) bool {
	a, err := mail.ParseAddress(s)
	return err == nil && !hasControl(s) && !hasControl(a.Address) && !hasControl(a.Name)
}
