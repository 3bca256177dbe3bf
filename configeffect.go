package main

import (
	"errors"
	"fmt"
	"net/mail"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"paidonce/store"
	"paidonce/worker/compose"
	"paidonce/worker/send"
)

// fileEffect is one [[effect]] of the TOML file.
type fileEffect struct {
	Name    *string  `toml:"name"`
	On      []string `toml:"on"`
	Do      *string  `toml:"do"`
	URL     *string  `toml:"url"`
	Secret  *string  `toml:"secret"`
	To      *string  `toml:"to"`
	Subject *string  `toml:"subject"`
	Body    *string  `toml:"body"`
	HTML    *string  `toml:"html"`
	Command []string `toml:"command"`
}

// fileAlerts is [alerts] of the TOML file.
type fileAlerts struct {
	Pending *string `toml:"pending"`
	Remind  *string `toml:"remind"`
}

// effectConfig is an [[effect]].
type effectConfig struct {
	name, do string
	on       []string

	url    string     // http; "" until forServe has read it, where it is only named
	urlAt  *secretRef // where url is, for one that holds a token; nil is in the file
	secret string     // http: whsec_…, of Standard Webhooks; "" until forServe has read it
	signed *secretRef // where secret is; nil signs nothing

	to, subject, text, html compose.Template // email

	command []string // exec: the program and its arguments; a relative path is seen from the file

	lines map[string]string // where its keys stand: "url", "on.0"
}

// alertConfig is when people are told of alerts.
type alertConfig struct {
	pending time.Duration // the oldest pending event is older; 0 is off
	remind  time.Duration // an alert that lasts is told again after it; 0 is never
}

// The defaults of [alerts] (design.md §7).
const (
	alertPending = 5 * time.Minute
	alertRemind  = 6 * time.Hour
)

// target is what e makes of an occasion.
func (e effectConfig) target(from string) compose.Target {
	return compose.Target{Name: e.name, On: e.on, Do: e.do, From: from, To: e.to, Subject: e.subject, Text: e.text, HTML: e.html}
}

// compose says what an occasion becomes for each [[effect]]: what a store that
// serves is opened with. It is never nil without an error, also where there is
// no [[effect]]: then operations are recorded and make nothing.
func (c *config) compose() (store.Compose, error) {
	var targets []compose.Target
	for _, e := range c.effects {
		targets = append(targets, e.target(c.mailFrom))
	}
	return compose.New(targets)
}

// checkMailFrom refuses a sender that no mail could have.
func checkMailFrom(bad *configError, where, value string) {
	if a, err := mail.ParseAddress(value); value != "" && (err != nil || clean(value) != value || clean(a.Name) != a.Name) {
		bad.add(where, "must be one mail address, such as Shop <shop@example.com>")
	}
}

// alertRules are the rules of [alerts]. What was rejected of late is not for
// the configuration to say.
func (c *config) alertRules() store.AlertRules {
	return store.AlertRules{Pending: c.alerts.pending, Remind: c.alerts.remind}
}

// effectsForServe reads what effects need besides the configuration.
func (c *config) effectsForServe(bad *configError, out *secrets) {
	var sources []string
	for _, s := range c.sources {
		sources = append(sources, s.name)
	}
	for _, e := range c.effects {
		for i, on := range e.on {
			if err := compose.Known(on, sources); err != nil {
				bad.add(e.lines[fmt.Sprintf("on.%d", i)], "on: %s", err)
			}
		}
		switch e.do {
		case store.KindHTTP:
			c.httpSecrets(bad, &e)
			if openly(e.url) {
				out.warnings = append(out.warnings, e.lines["url"]+": the url speaks plain HTTP to another machine: orders and customers cross the network as they are")
			}
		case store.KindExec:
			if !c.runnable(e.command[0]) {
				out.warnings = append(out.warnings, e.lines["command"]+": the program of command is not there, or may not be run: its effects wait until it can be")
			}
		}
		out.effects = append(out.effects, e)
	}
	c.mailForServe(bad, out)
}

// mailForServe reads how mail is sent.
func (c *config) mailForServe(bad *configError, out *secrets) {
	mails := slices.ContainsFunc(c.effects, func(e effectConfig) bool { return e.do == store.KindEmail })
	out.smtpURL, _ = c.setting("", "", "SMTP_URL", "")
	switch {
	case out.smtpURL != "":
		if _, err := send.NewEmail(send.EmailConfig{URL: out.smtpURL}); err != nil {
			bad.add("SMTP_URL", "%s", strings.TrimPrefix(err.Error(), "email: "))
		}
		if !mails {
			out.warnings = append(out.warnings, "SMTP_URL is set, but no [[effect]] sends mail")
		}
	case mails:
		bad.add("SMTP_URL", "is not set, and an [[effect]] sends mail: write the mail server, smtp://user:password@host:587 or smtps://…:465")
	}
	if mails && c.mailFrom == "" {
		bad.add("MAIL_FROM", "is not set, and an [[effect]] sends mail: write its sender, such as Shop <shop@example.com>")
	}
}

// runnable reports whether a program can be started as things stand.
func (c *config) runnable(program string) bool {
	if strings.ContainsAny(program, "/"+string(filepath.Separator)) {
		absolute, err := filepath.Abs(c.beside(program)) // a bare name would be looked up in PATH
		if err != nil {
			return false
		}
		program = absolute
	}
	_, err := exec.LookPath(program)
	return err == nil
}

// httpSecrets reads into e its url and its secret.
func (c *config) httpSecrets(bad *configError, e *effectConfig) {
	problem := func(err error) { bad.problems = append(bad.problems, err.Error()) }
	if e.urlAt != nil {
		var err error
		if e.url, err = c.readURL(*e.urlAt); err != nil {
			problem(err)
		}
	}
	if e.signed == nil {
		return
	}
	texts, err := c.readSecrets("", *e.signed)
	if err != nil {
		problem(err)
		return
	}
	if err := checkHTTP("http://127.0.0.1/", texts[0]); err != nil {
		problem(e.signed.wrap(err))
		return
	}
	e.secret = texts[0]
}

// readURL reads the url that ref names. Errors name the place, never what it
// holds.
func (c *config) readURL(ref secretRef) (string, error) {
	text, _ := c.vars.lookup(ref.variable)
	if ref.file != "" {
		b, err := os.ReadFile(c.beside(ref.file))
		if err != nil {
			return "", ref.wrap(fmt.Errorf("cannot be read: %s", plain(err)))
		}
		text = string(b)
	}
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return "", ref.wrap(errors.New("is not set or empty: it must hold the url of the effect"))
	case quoted(text):
		return "", ref.wrap(errors.New(quotesKept))
	}
	if err := checkHTTP(text, ""); err != nil {
		return "", ref.wrap(err)
	}
	return text, nil
}

// checkHTTP says why nothing could be sent to that url, or signed with that
// secret.
func checkHTTP(url, secret string) error {
	never := func() time.Time { return time.Time{} } // nothing is sent
	_, err := send.NewHTTP(send.HTTPConfig{URL: url, Secret: secret, Now: never})
	if err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "http effect: "))
	}
	return nil
}

// openly reports whether what is sent to text can be read on the way.
func openly(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme == "http" && !loopback(u.Hostname())
}

// effects takes over [[effect]], after [[source]].
func (f *fileChecker) effects(c *config, effects []fileEffect) {
	// Whether there is the source that STRIPE_WEBHOOK_SECRET makes, only serve
	// has to know: other commands may run without the variable.
	sources := []string{"stripe"}
	for _, s := range c.sources {
		sources = append(sources, s.name)
	}
	lines := map[string]string{} // where a name stands
	for i, file := range effects {
		path := fmt.Sprintf("effect.%d", i)
		e := f.effect(c, path, file, sources)
		if where := lines[e.name]; where != "" {
			f.wrong(path+".name", "there is an [[effect]] of this name at %s", where)
		}
		if e.name != "" {
			lines[e.name] = f.at(path + ".name")
		}
		c.effects = append(c.effects, e)
	}
}

// effect checks one [[effect]].
func (f *fileChecker) effect(c *config, path string, file fileEffect, sources []string) effectConfig {
	e := effectConfig{on: file.On, lines: map[string]string{}}
	switch {
	case file.Name == nil:
		f.wrong(path, "name is missing: the target, which is part of the key of its effects")
	case *file.Name == store.StripeTarget:
		f.wrong(path+".name", "name must not be stripe: that is the target of paidonce's own calls")
	case !sourceName.MatchString(*file.Name):
		f.wrong(path+".name", "name must be 1 to 40 small letters, digits or dashes")
	default:
		e.name = *file.Name
	}
	if len(file.On) == 0 {
		f.wrong(path+".on", `on is missing: what the effect is for, such as ["order.paid", "refund.*"]`)
	}
	for i, on := range file.On {
		key := fmt.Sprintf("on.%d", i)
		e.lines[key] = f.at(path + "." + key)
		if err := compose.Known(on, sources); err != nil {
			f.wrong(path+"."+key, "on: %s", err)
		}
	}
	if file.Do == nil || !slices.Contains([]string{store.KindHTTP, store.KindEmail, store.KindExec}, *file.Do) {
		f.wrong(path+".do", "do must be http, email or exec")
		return e
	}
	e.do = *file.Do
	f.otherKinds(path, e.do, file)
	switch e.do {
	case store.KindHTTP:
		f.httpKeys(path, file, &e)
	case store.KindEmail:
		f.emailKeys(c, path, file, &e)
	case store.KindExec:
		f.execKeys(path, file, &e)
	}
	return e
}

// otherKinds refuses the keys that only effects of another kind have.
func (f *fileChecker) otherKinds(path, do string, file fileEffect) {
	for _, k := range []struct {
		key, of string
		given   bool
	}{
		{"url", store.KindHTTP, file.URL != nil},
		{"secret", store.KindHTTP, file.Secret != nil},
		{"to", store.KindEmail, file.To != nil},
		{"subject", store.KindEmail, file.Subject != nil},
		{"body", store.KindEmail, file.Body != nil},
		{"html", store.KindEmail, file.HTML != nil},
		{"command", store.KindExec, file.Command != nil},
	} {
		if k.given && k.of != do {
			f.wrong(path+"."+k.key, "%s is for %s effects only", k.key, k.of)
		}
	}
}

func (f *fileChecker) httpKeys(path string, file fileEffect, e *effectConfig) {
	e.lines["url"] = f.at(path + ".url")
	if file.Secret != nil {
		ref := f.secretRef(path+".secret", *file.Secret)
		e.signed = &ref
	}
	if file.URL == nil {
		f.wrong(path+".url", "url is missing: where effects are posted to")
		return
	}
	kind, _, _ := strings.Cut(*file.URL, ":")
	if kind == "env" || kind == "file" || secretLike(*file.URL) {
		ref := f.secretRef(path+".url", *file.URL)
		e.urlAt = &ref
		return
	}
	if err := checkHTTP(*file.URL, ""); err != nil {
		f.wrong(path+".url", "%s", err)
		return
	}
	if u, err := url.Parse(*file.URL); err != nil || u.User != nil {
		f.wrong(path+".url", "a password does not belong here: write where the url is, env:NAME or file:/path")
		return
	}
	e.url = *file.URL
}

func (f *fileChecker) emailKeys(c *config, path string, file fileEffect, e *effectConfig) {
	inline := func(key string, value *string) compose.Template {
		if value == nil {
			return compose.Template{}
		}
		return compose.Template{Name: key, Text: *value}
	}
	e.to, e.subject = inline("to", file.To), inline("subject", file.Subject)
	unread := map[string]bool{}
	for _, k := range []struct {
		key  string
		file *string
		into *compose.Template
	}{{"body", file.Body, &e.text}, {"html", file.HTML, &e.html}} {
		if k.file == nil {
			continue
		}
		text, err := c.readTemplate(*k.file)
		if err != nil {
			f.wrong(path+"."+k.key, "%s: %s", k.key, err)
			unread[k.key] = true
			text = "unread"
		}
		*k.into = compose.Template{Name: *k.file, Text: text}
	}
	// The sender is no matter of this file.
	for _, p := range e.target("nobody@localhost").Check() {
		switch {
		case p.Key == "on" || unread[p.Key]: // told already, with its line
		case strings.HasPrefix(p.Text, p.Key+":"): // the place in a template
			f.wrong(path+"."+p.Key, "%s", cut(p.Text))
		default:
			f.wrong(path+"."+p.Key, "%s: %s", p.Key, cut(p.Text))
		}
	}
}

// maxTemplate is far more than a mail needs, in bytes: the wrong file was named.
const maxTemplate = 1 << 20

// readTemplate reads the text of a mail from a file beside the TOML file.
func (c *config) readTemplate(file string) (string, error) {
	if secretLike(file) {
		return "", errors.New("names a file, and this looks like a secret")
	}
	info, err := os.Stat(c.beside(file))
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxTemplate) {
		return "", fmt.Errorf("%s must be a file of at most 1 MiB", clean(file))
	}
	text, err := os.ReadFile(c.beside(file))
	if err != nil {
		return "", fmt.Errorf("%s cannot be read: %s", clean(file), plain(err))
	}
	return string(text), nil
}

func (f *fileChecker) execKeys(path string, file fileEffect, e *effectConfig) {
	e.lines["command"] = f.at(path + ".command")
	switch {
	case len(file.Command) == 0 || strings.TrimSpace(file.Command[0]) == "":
		f.wrong(path+".command", `command is missing: the program and its arguments, such as ["./paid.sh", "--quiet"]`)
	case slices.ContainsFunc(file.Command, func(s string) bool { return strings.ContainsRune(s, 0) }):
		f.wrong(path+".command", "command must not hold a zero byte")
	default:
		e.command = file.Command
	}
}

// alerts takes over [alerts], which has defaults in c already.
func (f *fileChecker) alerts(c *config, alerts fileAlerts) {
	for _, k := range []struct {
		key   string
		value *string
		least time.Duration
		into  *time.Duration
	}{{"pending", alerts.Pending, time.Second, &c.alerts.pending}, {"remind", alerts.Remind, time.Minute, &c.alerts.remind}} {
		if k.value == nil {
			continue
		}
		const most = 30 * 24 * time.Hour
		d, err := time.ParseDuration(*k.value)
		switch {
		case err != nil:
			f.wrong("alerts."+k.key, `%s must be a duration, such as "5m" or "6h"`, k.key)
		case d != 0 && (d < k.least || d > most):
			f.wrong("alerts."+k.key, "%s must be from %s to %s, or 0 for off", k.key, short(k.least), short(most))
		default:
			*k.into = d
		}
	}
}

// short is a duration without parts that are zero: "1m", "720h".
func short(d time.Duration) string {
	return strings.TrimSuffix(strings.TrimSuffix(d.String(), "0s"), "0m")
}
