package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"paidonce/store"
)

// effectSecret is a right one: 24 bytes.
const effectSecret = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"

func effect1(lines ...string) string {
	return "[[effect]]\n" + strings.Join(lines, "\n") + "\n\n"
}

// The lines of an effect that is right, from which a test changes one.
const (
	nameApp    = `name = "app"`
	onPaid     = `on = ["order.paid"]`
	doHTTP     = `do = "http"`
	urlHere    = `url = "http://127.0.0.1:9000/paid"`
	doEmail    = `do = "email"`
	toCustomer = `to = "{{.Order.Customer.Email}}"`
	subject    = `subject = "Order {{.Order.ID}}"`
	bodyPaid   = `body = "mail/paid.txt"`
	doExec     = `do = "exec"`
	command    = `command = ["true"]`
)

// mailShop adds what mail needs: the file mail/paid.txt, and the variables.
func (w *world) mailShop() {
	w.t.Helper()
	if err := os.Mkdir("mail", 0o700); err != nil {
		w.t.Fatal(err)
	}
	w.write("mail/paid.txt", "We have {{.Amount}}.\n")
	w.env["SMTP_URL"], w.env["MAIL_FROM"] = "smtp://u:SMTPMARK@127.0.0.1:25", "Shop <shop@example.com>"
	w.env["STRIPE_WEBHOOK_SECRET"] = goodSecret
}

func TestWrongEffectsAreRefusedByPlace(t *testing.T) {
	const mark = "MARK"
	for _, tt := range []struct {
		name  string
		env   map[string]string
		toml  string
		files map[string]string
		want  []string // parts of the error, one a line
	}{
		{"an empty effect", nil, effect1(), nil, []string{"paidonce.toml:1: name is missing", "paidonce.toml:1: on is missing", "paidonce.toml:1: do must be"}},
		{"a name that is no name", nil, effect1(`name = "My MARK"`, onPaid, doHTTP, urlHere), nil, []string{"paidonce.toml:2: name must be 1 to 40"}},
		{"a name that is too long", nil, effect1(`name = "`+strings.Repeat("a", 41)+`"`, onPaid, doHTTP, urlHere), nil, []string{"paidonce.toml:2: name must be 1 to 40"}},
		{"the name of paidonce's own calls", nil, effect1(`name = "stripe"`, onPaid, doHTTP, urlHere), nil, []string{"paidonce.toml:2: name must not be stripe"}},
		{"two of one name", nil, effect1(nameApp, onPaid, doHTTP, urlHere) + effect1(nameApp, onPaid, doExec, command), nil,
			[]string{"paidonce.toml:8: there is an [[effect]] of this name at paidonce.toml:2"}},
		{"another kind", nil, effect1(nameApp, onPaid, `do = "MARK"`), nil, []string{"paidonce.toml:4: do must be http, email or exec"}},
		{"calls to Stripe are no effect of the shop's", nil, effect1(nameApp, onPaid, `do = "stripe"`), nil, []string{"paidonce.toml:4: do must be"}},
		{"an empty on", nil, effect1(nameApp, `on = []`, doHTTP, urlHere), nil, []string{"paidonce.toml:3: on is missing"}},
		{"an on that is no list", nil, effect1(nameApp, `on = "MARK"`), nil, []string{`paidonce.toml:3: "on" must be a list of strings`}},
		{"operations that there are not, each with its line", nil, effect1(nameApp, "on = [\n\"order.MARK\",\n\"refund.*\",\n\"*\"]", doHTTP, urlHere), nil,
			[]string{"paidonce.toml:4: on: is no known operation: of order there are", "paidonce.toml:6: on: says too much"}},
		{"a source that there is not", nil, effect1(nameApp, `on = ["MARK:push"]`, doHTTP, urlHere), nil, []string{"paidonce.toml:3: on: names a source that is not configured"}},
		{"the source of the variable, which is called otherwise here", nil, effect1(nameApp, `on = ["stripe:a.b"]`, doHTTP, urlHere) + source1(`secrets = ["env:STRIPE_WEBHOOK_SECRET"]`), nil,
			[]string{"paidonce.toml:3: on: names a source that is not configured"}},
		{"an unknown key", nil, effect1(nameApp, onPaid, doHTTP, urlHere, `headers = "MARK"`), nil, []string{`paidonce.toml:6: unknown key "headers"`}},

		{"keys of another kind on http", nil, effect1(nameApp, onPaid, doHTTP, urlHere, toCustomer, subject, bodyPaid, `html = "MARK"`, command), nil,
			[]string{"paidonce.toml:6: to is for email effects only", "paidonce.toml:7: subject is for", "paidonce.toml:8: body is for", "paidonce.toml:9: html is for", "paidonce.toml:10: command is for exec"}},
		{"keys of another kind on email", nil, effect1(nameApp, onPaid, doEmail, toCustomer, subject, bodyPaid, urlHere, `secret = "MARK"`), nil,
			[]string{"paidonce.toml:8: url is for http effects only", "paidonce.toml:9: secret is for http"}},
		{"a key of another kind on exec", nil, effect1(nameApp, onPaid, doExec, command, urlHere), nil, []string{"paidonce.toml:6: url is for http effects only"}},

		{"no url", nil, effect1(nameApp, onPaid, doHTTP), nil, []string{"paidonce.toml:1: url is missing"}},
		{"a url of another scheme", nil, effect1(nameApp, onPaid, doHTTP, `url = "ftp://MARK"`), nil, []string{"paidonce.toml:5: the url must begin with http"}},
		{"a url without a host", nil, effect1(nameApp, onPaid, doHTTP, `url = "http:///MARK"`), nil, []string{"paidonce.toml:5: the url has no host"}},
		{"a url with a fragment", nil, effect1(nameApp, onPaid, doHTTP, `url = "http://a/#MARK"`), nil, []string{"paidonce.toml:5: the url has a fragment"}},
		{"a password in the url", nil, effect1(nameApp, onPaid, doHTTP, `url = "https://u:MARK@shop.example/"`), nil, []string{"paidonce.toml:5: a password does not belong here"}},
		{"a secret for a url", nil, effect1(nameApp, onPaid, doHTTP, `url = "whsec_MARK"`), nil, []string{"paidonce.toml:5: a secret does not belong here"}},
		{"the place of the url is empty", nil, effect1(nameApp, onPaid, doHTTP, `url = "env:APP_URL"`), nil, []string{"paidonce.toml:5: APP_URL: is not set or empty"}},
		{"the place of the url is absent", nil, effect1(nameApp, onPaid, doHTTP, `url = "file:absent"`), nil, []string{"paidonce.toml:5: absent: cannot be read"}},
		{"the place of the url holds none", map[string]string{"APP_URL": "MARK"}, effect1(nameApp, onPaid, doHTTP, `url = "env:APP_URL"`), nil, []string{"paidonce.toml:5: APP_URL: the url must begin with http"}},
		{"the place of the url keeps its quotes", map[string]string{"APP_URL": `"http://MARK"`}, effect1(nameApp, onPaid, doHTTP, `url = "env:APP_URL"`), nil, []string{"paidonce.toml:5: APP_URL: has quotes"}},
		{"the secret itself is in the file", nil, effect1(nameApp, onPaid, doHTTP, urlHere, `secret = "whsec_MARK"`), nil, []string{"paidonce.toml:6: a secret does not belong here"}},
		{"the secret is not set", nil, effect1(nameApp, onPaid, doHTTP, urlHere, `secret = "env:HOOK"`), nil, []string{"paidonce.toml:6: HOOK: is not set"}},
		{"the secret is of another scheme", map[string]string{"HOOK": "MARK"}, effect1(nameApp, onPaid, doHTTP, urlHere, `secret = "env:HOOK"`), nil, []string{"paidonce.toml:6: HOOK: the secret does not begin with whsec_"}},
		{"the secret is too short", map[string]string{"HOOK": "whsec_TUFSSw=="}, effect1(nameApp, onPaid, doHTTP, urlHere, `secret = "env:HOOK"`), nil, []string{"paidonce.toml:6: HOOK: the secret must be 24 to 64 bytes"}},

		{"mail without anything", nil, effect1(nameApp, onPaid, doEmail), nil, []string{"paidonce.toml:1: to: is missing", "paidonce.toml:1: subject: is missing", "paidonce.toml:1: body: is missing"}},
		{"a recipient that is none", nil, effect1(nameApp, onPaid, doEmail, `to = "MARK"`, subject, bodyPaid), nil, []string{"paidonce.toml:5: to: must be one mail address"}},
		{"a text that is not there", nil, effect1(nameApp, onPaid, doEmail, toCustomer, subject, `body = "mail/absent.txt"`), nil, []string{"paidonce.toml:7: body: mail/absent.txt cannot be read: no such file"}},
		{"a text that is a directory", nil, effect1(nameApp, onPaid, doEmail, toCustomer, subject, `body = "mail"`), nil, []string{"paidonce.toml:7: body: mail must be a file"}},
		{"a text that is a secret", nil, effect1(nameApp, onPaid, doEmail, toCustomer, subject, `body = "whsec_MARK"`), nil, []string{"paidonce.toml:7: body: names a file, and this looks like a secret"}},
		{"a text that is too large", nil, effect1(nameApp, onPaid, doEmail, toCustomer, subject, `html = "big"`), map[string]string{"big": strings.Repeat("MARK", 1<<19)}, []string{"paidonce.toml:7: html: big must be a file of at most 1 MiB"}},
		{"a text that is empty", nil, effect1(nameApp, onPaid, doEmail, toCustomer, subject, `body = "b"`), map[string]string{"b": "\n"}, []string{"paidonce.toml:7: body: b: is empty"}},
		{"a text that does not parse, with both lines", nil, effect1(nameApp, onPaid, doEmail, toCustomer, subject, `body = "b"`), map[string]string{"b": "MARK\n{{if}}"}, []string{"paidonce.toml:7: body: b:2: missing value for if"}},
		{"a field that there is not, with both lines", nil, effect1(nameApp, onPaid, doEmail, toCustomer, subject, `html = "b"`), map[string]string{"b": "MARK\n\n{{.Order.Totl}}"}, []string{"paidonce.toml:7: html: b:3:8: at <.Order.Totl>: can't evaluate field Totl"}},
		{"a field that there is not, in the subject", nil, effect1(nameApp, onPaid, doEmail, toCustomer, `subject = "{{.Ordr.ID}}"`, bodyPaid), nil, []string{"paidonce.toml:6: subject:1:7: at <.Ordr.ID>: can't evaluate field Ordr"}},
		{"several templates are told all", nil, effect1(nameApp, onPaid, doEmail, `to = "{{.X}}"`, `subject = "{{.Y}}"`, `body = "mail/absent.txt"`), nil,
			[]string{"paidonce.toml:5: to:1:2: at <.X>", "paidonce.toml:6: subject:1:2: at <.Y>", "paidonce.toml:7: body: mail/absent.txt cannot"}},
		{"the text of alerts is not for orders", nil, effect1(nameApp, `on = ["order.paid", "alert.*"]`, doEmail, `to = "a@example.org"`), nil, []string{"paidonce.toml:1: subject: is missing", "paidonce.toml:1: body: is missing"}},
		{"no mail server", map[string]string{"SMTP_URL": ""}, effect1(nameApp, onPaid, doEmail, toCustomer, subject, bodyPaid), nil, []string{"SMTP_URL: is not set, and an [[effect]] sends mail"}},
		{"no sender", map[string]string{"MAIL_FROM": " "}, effect1(nameApp, onPaid, doEmail, toCustomer, subject, bodyPaid), nil, []string{"MAIL_FROM: is not set, and an [[effect]] sends mail"}},
		{"a mail server that is none", map[string]string{"SMTP_URL": "MARK:25"}, effect1(nameApp, onPaid, doEmail, toCustomer, subject, bodyPaid), nil, []string{"SMTP_URL: the url must begin with smtp://"}},
		{"a mail server with a path, though no mail is sent", map[string]string{"SMTP_URL": "smtp://u:MARK@a/b"}, "", nil, []string{"SMTP_URL: the url must end after host:port"}},
		{"a mail server in quotes", map[string]string{"SMTP_URL": `"smtp://MARK"`}, "", nil, []string{"SMTP_URL: has quotes"}},
		{"two senders", map[string]string{"MAIL_FROM": "MARK@a.example, b@a.example"}, "", nil, []string{"MAIL_FROM: must be one mail address"}},
		{"a sender with a line break", map[string]string{"MAIL_FROM": "MARK\r\n <a@a.example>"}, "", nil, []string{"MAIL_FROM: must be one mail address"}},

		{"no command", nil, effect1(nameApp, onPaid, doExec), nil, []string{"paidonce.toml:1: command is missing"}},
		{"an empty command", nil, effect1(nameApp, onPaid, doExec, `command = ["", "MARK"]`), nil, []string{"paidonce.toml:5: command is missing"}},
		{"a command for a shell", nil, effect1(nameApp, onPaid, doExec, `command = "MARK | MARK"`), nil, []string{`paidonce.toml:5: "command" must be a list of strings`}},
		{"a command with a zero byte", nil, effect1(nameApp, onPaid, doExec, `command = ["true", "MARK\u0000"]`), nil, []string{"paidonce.toml:5: command must not hold a zero byte"}},

		{"alerts are a table", nil, "[[alerts]]\npending = \"MARK\"\n", nil, []string{"paidonce.toml:1: "}},
		{"durations that are none", nil, "[alerts]\npending = \"MARK\"\nremind = \"1d\"\n", nil, []string{`paidonce.toml:2: pending must be a duration, such as "5m"`, "paidonce.toml:3: remind must be a duration"}},
		{"durations that are too short", nil, "[alerts]\npending = \"1ms\"\nremind = \"-6h\"\n", nil, []string{"paidonce.toml:2: pending must be from 1s to 720h, or 0 for off", "paidonce.toml:3: remind must be from 1m to 720h"}},
		{"a duration that is too long", nil, "[alerts]\npending = \"10000h\"\n", nil, []string{"paidonce.toml:2: pending must be from"}},
		{"a number without a unit", nil, "[alerts]\npending = 5\n", nil, []string{`paidonce.toml:2: "pending" must be a string`}},
		{"what is wrong with secrets is told all", nil,
			effect1(nameApp, onPaid, doHTTP, `url = "env:U"`, `secret = "env:S"`) + source1(`secrets = ["env:T"]`), nil,
			[]string{"T: is not set", "U: is not set or empty", "S: is not set"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.mailShop()
			for name, value := range tt.env {
				w.env[name] = value
			}
			if strings.Contains(tt.toml, "env:T") {
				delete(w.env, "STRIPE_WEBHOOK_SECRET")
			}
			w.write("paidonce.toml", tt.toml)
			for name, text := range tt.files {
				w.write(name, text)
			}
			exit, stdout, stderr := w.run("serve")
			if exit != 1 || stdout != "" {
				t.Errorf("exit %d, stdout %q; want exit 1 and silence", exit, stdout)
			}
			if lines := strings.Count(stderr, "\n"); lines != len(tt.want) {
				t.Errorf("%d lines on stderr; want %d", lines, len(tt.want))
			}
			wantParts(t, "stderr", stderr, tt.want...)
			unwanted(t, "stderr", stderr, mark)
			if _, err := os.Stat(defaultDB); err == nil {
				t.Error("a database was made in spite of the configuration")
			}
			if t.Failed() {
				t.Logf("stderr:\n%s", stderr)
			}
		})
	}
}

// ready returns the configuration of w with its secrets, all of it right.
func (w *world) ready() (*config, secrets) {
	w.t.Helper()
	c := w.config()
	sec, err := c.forServe()
	if err != nil {
		w.t.Fatal(err)
	}
	return c, sec
}

func TestEffectsAreReadWithTheirSecrets(t *testing.T) {
	for _, tt := range []struct {
		name, toml string
		url        string
		secret     string
	}{
		{"a url in the file, unsigned", effect1(nameApp, onPaid, doHTTP, urlHere), "http://127.0.0.1:9000/paid", ""},
		{"a url in the environment", effect1(nameApp, onPaid, doHTTP, `url = "env:APP_URL"`), "https://u:p@shop.example/?token=1", ""},
		{"a url in a file, with its newline", effect1(nameApp, onPaid, doHTTP, `url = "file:url"`), "https://shop.example/file", ""},
		{"a secret in the environment", effect1(nameApp, onPaid, doHTTP, urlHere, `secret = "env:HOOK"`), "http://127.0.0.1:9000/paid", effectSecret},
		{"a secret in a file, with its newline", effect1(nameApp, onPaid, doHTTP, urlHere, `secret = "file:hook"`), "http://127.0.0.1:9000/paid", effectSecret},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.mailShop()
			w.env["APP_URL"], w.env["HOOK"] = "https://u:p@shop.example/?token=1", effectSecret
			w.write("url", "https://shop.example/file\n")
			w.write("hook", effectSecret+"\r\n")
			w.write("paidonce.toml", tt.toml)
			_, sec := w.ready()
			if len(sec.effects) != 1 || sec.effects[0].url != tt.url || sec.effects[0].secret != tt.secret {
				t.Errorf("effects %+v", sec.effects)
			}
		})
	}
}

func TestTheConfigurationComposesForEachEffect(t *testing.T) {
	w := newWorld(t)
	w.mailShop()
	w.write("mail/paid.html", "<p>{{.Order.ID}}</p>")
	w.write("paidonce.toml", effect1(nameApp, `on = ["order.paid", "stripe:customer.*"]`, doHTTP, urlHere)+
		effect1(`name = "thanks"`, onPaid, doEmail, toCustomer, subject, bodyPaid, `html = "mail/paid.html"`)+
		effect1(`name = "me"`, `on = ["alert.*"]`, doEmail, `to = "me@example.org"`)+
		effect1(`name = "label"`, onPaid, doExec, command)+
		"[alerts]\npending = \"30s\"\nremind = \"0\"\n")
	w.env["AUDIT_LOG_PATH"] = "audit.ndjson"
	c, sec := w.ready()
	if rules := c.alertRules(); rules.Pending != 30*time.Second || rules.Remind != 0 {
		t.Errorf("alerts %+v", rules)
	}
	if c.auditLog != "audit.ndjson" || sec.smtpURL != w.env["SMTP_URL"] || c.mailFrom != w.env["MAIL_FROM"] {
		t.Errorf("audit log %q, sender %q", c.auditLog, c.mailFrom)
	}
	compose, err := c.compose()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name     string
		occasion store.Occasion
		want     []string
	}{
		{"a payment", store.Occasion{Operation: "order.paid", OccurredAt: 1, Order: &store.Order{ID: "A1", TotalMinor: 1250, Currency: "eur", Customer: store.Customer{Email: "ann@example.org"}}},
			[]string{"app http", "thanks email", "label exec"}},
		{"a raw event of the source that the variable makes", store.Occasion{Operation: "stripe:customer.created", OccurredAt: 1, Payload: []byte("{}"), Event: &store.EventRef{}}, []string{"app http"}},
		{"an alert", store.Occasion{Operation: "alert.pending:1", OccurredAt: 1, Alert: &store.Alert{Name: "pending", Summary: "Late."}}, []string{"me email"}},
		{"what nobody asked for", store.Occasion{Operation: "refund.failed:re_1", OccurredAt: 1, Order: &store.Order{}}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, e := range compose(tt.occasion) {
				got = append(got, e.Target+" "+e.Kind)
				if e.Failed != "" {
					t.Errorf("%s: %s", e.Target, e.Failed)
				}
				if e.Target != "thanks" {
					continue
				}
				var m store.MailCall
				want := store.MailCall{From: "Shop <shop@example.com>", To: "ann@example.org", Subject: "Order A1", Text: "We have 12.50 EUR.\n", HTML: "<p>A1</p>"}
				if err := json.Unmarshal(e.Body, &m); err != nil || m != want {
					t.Errorf("mail %+v, %v", m, err)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("effects %q; want %q", got, tt.want)
			}
		})
	}
}

func TestWithoutEffectsThereIsStillACompose(t *testing.T) {
	w := newWorld(t)
	c := w.config()
	compose, err := c.compose()
	if err != nil || compose == nil {
		t.Fatalf("compose: %v, %v; without one operations would wait for another process", compose == nil, err)
	}
	if rules := c.alertRules(); rules.Pending != 5*time.Minute || rules.Remind != 6*time.Hour {
		t.Errorf("alerts %+v by default", rules)
	}
}

// A command that runs without the service's environment must not stumble over
// what only serve needs.
func TestOtherCommandsDoWithoutTheSecretsOfEffects(t *testing.T) {
	w := newShop(t)
	w.mailShop()
	w.env = map[string]string{}
	w.write("paidonce.toml", effect1(nameApp, `on = ["stripe:customer.*"]`, doHTTP, `url = "env:APP_URL"`, `secret = "env:HOOK"`)+
		effect1(`name = "thanks"`, onPaid, doEmail, toCustomer, subject, bodyPaid))
	w.must("orders", "list")
}

func TestTemplatesAreBesideTheFile(t *testing.T) {
	w := newWorld(t)
	w.mailShop()
	if err := os.Mkdir("etc", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename("mail", filepath.Join("etc", "mail")); err != nil {
		t.Fatal(err)
	}
	w.write("etc/shop.toml", effect1(nameApp, onPaid, doEmail, toCustomer, subject, bodyPaid))
	w.env["PAIDONCE_CONFIG"] = "etc/shop.toml"
	if c, _ := w.ready(); !strings.Contains(c.effects[0].text.Text, "{{.Amount}}") {
		t.Errorf("text %q", c.effects[0].text.Text)
	}
}

func TestWhatIsOnlyDoubtfulAboutEffectsIsWarnedOf(t *testing.T) {
	const missing, plainHTTP, unused = ":5: the program of command is not there", ":5: the url speaks plain HTTP", "SMTP_URL is set, but no [[effect]] sends mail"
	for _, tt := range []struct {
		name, toml string
		mode       os.FileMode // of etc/run.sh
		want       []string
	}{
		{"a program in PATH", effect1(nameApp, onPaid, doExec, `command = ["go", "version"]`), 0o700, []string{unused}},
		{"a program that is nowhere", effect1(nameApp, onPaid, doExec, `command = ["no-such-program-MARK"]`), 0o700, []string{missing, unused}},
		{"a program beside the file", effect1(nameApp, onPaid, doExec, `command = ["./run.sh"]`), 0o700, []string{unused}},
		{"a program beside the file that may not be run", effect1(nameApp, onPaid, doExec, `command = ["./run.sh"]`), 0o600, []string{missing, unused}},
		{"a program that is not beside the file", effect1(nameApp, onPaid, doExec, `command = ["./go"]`), 0o700, []string{missing, unused}},
		{"plain HTTP to this machine", effect1(nameApp, onPaid, doHTTP, `url = "http://localhost:9000"`), 0o700, []string{unused}},
		{"plain HTTP to another machine", effect1(nameApp, onPaid, doHTTP, `url = "http://MARK.example"`), 0o700, []string{plainHTTP, unused}},
		{"TLS to another machine", effect1(nameApp, onPaid, doHTTP, `url = "https://MARK.example"`), 0o700, []string{unused}},
		{"mail, which uses the mail server", effect1(nameApp, `on = ["alert.*"]`, doEmail, `to = "me@example.org"`), 0o700, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.mailShop()
			if err := os.Mkdir("etc", 0o700); err != nil {
				t.Fatal(err)
			}
			w.write("etc/shop.toml", tt.toml)
			if err := os.WriteFile("etc/run.sh", []byte("#!/bin/sh\n"), tt.mode); err != nil {
				t.Fatal(err)
			}
			w.env["PAIDONCE_CONFIG"] = "etc/shop.toml"
			c, sec := w.ready()
			warnings := append(c.warnings, sec.warnings...)
			if len(warnings) != len(tt.want) {
				t.Errorf("warnings %q; want %d", warnings, len(tt.want))
			}
			wantParts(t, "warnings", strings.Join(warnings, "\n"), tt.want...)
			unwanted(t, "warnings", strings.Join(warnings, "\n"), "MARK")
		})
	}
}
