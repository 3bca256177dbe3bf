package send

import (
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	netmail "net/mail"
	"strings"
	"testing"

	"paidonce/store"
)

// TestComposeBytes pins a whole mail: what changes here changes every mail.
func TestComposeBytes(t *testing.T) {
	m := testMail()
	m.Subject = "Danke für Bestellung ORD-1"
	m.HTML = "<p>Grüße</p>"
	l, err := compose(mailClaim(m))
	if err != nil {
		t.Fatal(err)
	}
	b := boundary(mailClaim(m))
	want := strings.ReplaceAll(`Auto-Submitted: auto-generated
Date: Sun, 01 Mar 2026 11:00:00 +0000
MIME-Version: 1.0
Message-ID: <po_main=3AORD-1=3Aorder.paid=3Aapp@shop.example>
Subject: =?UTF-8?q?Danke_f=C3=BCr_Bestellung_ORD-1?=
From: =?utf-8?b?S8Okc2UgJiBDbw==?= <shop@shop.example>
To: <kim.MARK@customer.example>
Content-Type: multipart/alternative;
 boundary=`+b+`

--`+b+`
Content-Transfer-Encoding: quoted-printable
Content-Type: text/plain; charset=UTF-8

Thank you.

--`+b+`
Content-Transfer-Encoding: quoted-printable
Content-Type: text/html; charset=UTF-8

<p>Gr=C3=BC=C3=9Fe</p>
--`+b+`--
`, "\n", "\r\n")
	if got := string(l.bytes); got != want {
		t.Errorf("mail is\n%s\nwant\n%s", got, want)
	}
}

// TestComposeIsTheSameEveryTime: a second attempt, later, is the same mail to
// the byte; another effect is another mail.
func TestComposeIsTheSameEveryTime(t *testing.T) {
	m := testMail()
	m.HTML = "<p>x</p>"
	first := mailClaim(m)
	again := first
	again.Attempt, again.Lease, again.FirstTriedAt = 9, 77, store.At(noon)
	other := first
	other.Key = "po_other"
	if a, b := must(compose(first)), must(compose(again)); string(a.bytes) != string(b.bytes) {
		t.Errorf("attempts differ:\n%s\n%s", a.bytes, b.bytes)
	}
	if a, b := must(compose(first)), must(compose(other)); string(a.bytes) == string(b.bytes) {
		t.Error("two effects have the same mail")
	}
}

// TestComposeReadsBack: what goes in comes out on the other side.
func TestComposeReadsBack(t *testing.T) {
	long := strings.Repeat("Ünïcödé wörds ", 60)
	for _, tt := range []struct {
		name string
		mail store.MailCall
	}{
		{"plain text", store.MailCall{Subject: "Hello", Text: "one\r\ntwo\r\n"}},
		{"html alone", store.MailCall{Subject: "Hello", HTML: "<b>ö</b>\r\n"}},
		{"both, and a long subject", store.MailCall{Subject: long + "end", Text: long, HTML: "<i>" + long + "</i>"}},
		{"lines with dots, and without end", store.MailCall{Subject: ". x", Text: ".\r\n..\r\n.x\r\n" + strings.Repeat("y", 5000)}},
		{"a subject of quotes and signs", store.MailCall{Subject: `"a" <b@c>; d, e: f = g ? 100%`, Text: "x"}},
		{"other scripts and signs", store.MailCall{Subject: "ありがとう 🎉 שלום", Text: "ありがとう 🎉 שלום", HTML: "<p>🎉</p>"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.mail.From, tt.mail.To = `"Käse, Brot & Co." <shop@shop.example>`, `"Kim Müller" <kim@customer.example>`
			m := newMailServer(t, false, nil)
			a := newEmail(t, EmailConfig{URL: "smtp://" + m.address}).Send(t.Context(), mailClaim(tt.mail))
			if a.Outcome != store.OutcomeDone {
				t.Fatalf("Send = %+v; want done", a)
			}
			raw := (<-m.mails).bytes
			msg, err := netmail.ReadMessage(strings.NewReader(raw))
			if err != nil {
				t.Fatal(err)
			}
			if got := must(new(mime.WordDecoder).DecodeHeader(msg.Header.Get("Subject"))); got != tt.mail.Subject {
				t.Errorf("subject = %q; want %q", got, tt.mail.Subject)
			}
			for _, field := range []struct{ name, want string }{{"From", tt.mail.From}, {"To", tt.mail.To}} {
				got, want := must(netmail.ParseAddress(msg.Header.Get(field.name))), must(netmail.ParseAddress(field.want))
				if *got != *want {
					t.Errorf("%s = %v; want %v", field.name, got, want)
				}
			}
			text, html := parts(t, msg)
			if text != lines(tt.mail.Text) || html != lines(tt.mail.HTML) {
				t.Errorf("text = %.200q\nhtml = %.200q\nwant %.200q\n%.200q", text, html, tt.mail.Text, tt.mail.HTML)
			}
			for line := range strings.SplitSeq(raw, "\r\n") {
				if len(line) > 78 && !strings.HasPrefix(line, "Subject:") || strings.ContainsFunc(line, func(r rune) bool { return r > '~' }) {
					t.Errorf("line %q is long or not ASCII", line)
				}
			}
		})
	}
}

// lines is s without the end of its last line, which SMTP adds.
func lines(s string) string { return strings.TrimSuffix(s, "\r\n") }

// parts returns the decoded text and html of a mail, as lines does.
func parts(t *testing.T, msg *netmail.Message) (text, html string) {
	t.Helper()
	kind, params, err := mime.ParseMediaType(msg.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	keep := func(kind string, body io.Reader) {
		b, err := io.ReadAll(quotedprintable.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(kind, "text/html") {
			html = lines(string(b))
		} else {
			text = lines(string(b))
		}
	}
	if kind != "multipart/alternative" {
		keep(kind, msg.Body)
		return text, html
	}
	for r := multipart.NewReader(msg.Body, params["boundary"]); ; {
		p, err := r.NextRawPart()
		if err == io.EOF {
			return text, html
		}
		if err != nil {
			t.Fatal(err)
		}
		keep(p.Header.Get("Content-Type"), p)
	}
}

// TestComposeRefuses: no field can bring a header, a second recipient or a
// command of its own.
func TestComposeRefuses(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*store.MailCall)
	}{
		{"a line break in the subject", func(m *store.MailCall) { m.Subject = "x\r\nBcc: all@MARK.example" }},
		{"a bare line feed in the subject", func(m *store.MailCall) { m.Subject = "x\nBcc: all@MARK.example" }},
		{"a bare carriage return in the subject", func(m *store.MailCall) { m.Subject = "x\rBcc: all@MARK.example" }},
		{"a zero byte in the subject", func(m *store.MailCall) { m.Subject = "x\x00" }},
		{"a line break in the recipient", func(m *store.MailCall) { m.To = "kim@MARK.example\r\nBcc: all@MARK.example" }},
		{"a folded recipient", func(m *store.MailCall) { m.To = "Kim\r\n <kim@MARK.example>" }},
		{"a line break in the sender", func(m *store.MailCall) { m.From = "a@MARK.example\r\nX: y" }},
		{"a line break hidden in the sender's name", func(m *store.MailCall) { m.From = "=?utf-8?q?a=0D=0AX:_y?= <a@MARK.example>" }},
		{"two recipients", func(m *store.MailCall) { m.To = "kim@MARK.example, all@MARK.example" }},
		{"a group of recipients", func(m *store.MailCall) { m.To = "all: kim@MARK.example, all@MARK.example;" }},
		{"no recipient", func(m *store.MailCall) { m.To = "" }},
		{"a recipient without a domain", func(m *store.MailCall) { m.To = "kimMARK" }},
		{"no sender", func(m *store.MailCall) { m.From = "" }},
		{"nothing to read", func(m *store.MailCall) { m.Text = "" }},
		{"a subject that no line can hold", func(m *store.MailCall) { m.Subject = strings.Repeat("x", 1100) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := testMail()
			tt.change(&m)
			server := newMailServer(t, false, nil)
			a := newEmail(t, EmailConfig{URL: "smtp://" + server.address}).Send(t.Context(), mailClaim(m))
			if a.Outcome != store.OutcomeRefused || a.Error == "" || strings.Contains(a.Error, "MARK") {
				t.Errorf("Send = %+v; want refused", a)
			}
			if len(server.mails) != 0 {
				t.Error("the server has the mail all the same")
			}
		})
	}
	c := mailClaim(testMail())
	c.Body = []byte(`{"to":`)
	if a := newEmail(t, EmailConfig{URL: "smtp://127.0.0.1:9"}).Send(t.Context(), c); a.Outcome != store.OutcomeRefused {
		t.Errorf("Send of a broken body = %+v; want refused", a)
	}
}

func TestMessageID(t *testing.T) {
	for _, tt := range []struct{ name, key, from, want string }{
		{"what may stand in it stays", "po_1-x.y", "a@shop.example", "po_1-x.y@shop.example"},
		{"what may not is written in hex", "po:1 <x>@é", "a@shop.example", "po=3A1=20=3Cx=3E=40=C3=A9@shop.example"},
		{"the sign of hex itself too", "po=3A", "a@shop.example", "po=3D3A@shop.example"},
		{"dots stand between only", ".a..b.", "a@shop.example", "=2Ea.=2Eb=2E@shop.example"},
		{"the domain is what follows the last @", "k", `"a@b"@shop.example`, "k@shop.example"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := messageID(tt.key, tt.from); got != tt.want {
				t.Errorf("messageID = %q; want %q", got, tt.want)
			}
		})
	}
	a, b := messageID(strings.Repeat("k", 5000), "a@b"), messageID(strings.Repeat("k", 5001), "a@b")
	if a == b || len(a) > 200 {
		t.Errorf("ids of long keys: %q, %q", a, b)
	}
}
