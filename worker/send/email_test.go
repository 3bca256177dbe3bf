package send

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	gosmtp "github.com/emersion/go-smtp"

	"paidonce/store"
)

func testMail() store.MailCall {
	return store.MailCall{
		From: "Käse & Co <shop@shop.example>", To: "kim.MARK@customer.example",
		Subject: "Thank you for order ORD-1", Text: "Thank you.\n",
	}
}

func mailClaim(m store.MailCall) store.EffectClaim {
	c := testClaim()
	c.Kind, c.Target, c.Body = store.KindEmail, "thanks", must(json.Marshal(m))
	return c
}

func newEmail(t *testing.T, cfg EmailConfig) *Email {
	t.Helper()
	e, err := NewEmail(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// login is the userinfo of the one user, as it stands in a URL.
var login = url.UserPassword(mailUser, mailPassword).String() + "@"

// TestEmailSession: encryption, login and greeting are as the URL and the
// server's offers demand.
func TestEmailSession(t *testing.T) {
	const name = "mail.shop.example"
	ca := newAuthority()
	startTLS := func(m *mailServer, s *gosmtp.Server) { s.TLSConfig = ca.server(name, false) }
	for _, tt := range []struct {
		name     string
		url      string
		implicit bool
		setup    func(*mailServer, *gosmtp.Server)
		want     store.Outcome
		tls      bool
		user     string
		says     string
	}{
		{"smtp without a user goes in the clear where no TLS is offered", "smtp://" + name, false, nil, store.OutcomeDone, false, "", ""},
		{"smtp takes STARTTLS when it is offered", "smtp://" + name, false, startTLS, store.OutcomeDone, true, "", ""},
		{"smtp with a user logs in under TLS", "smtp://" + login + name + ":25/", false, startTLS, store.OutcomeDone, true, mailUser, ""},
		{"smtps is TLS from the first byte", "smtps://" + login + name, true, startTLS, store.OutcomeDone, true, mailUser, ""},
		{"LOGIN is known too", "smtps://" + login + name, true, func(m *mailServer, s *gosmtp.Server) {
			startTLS(m, s)
			m.mechanisms = []string{"XOAUTH2", "LOGIN"}
		}, store.OutcomeDone, true, mailUser, ""},
		{"a password does not go to another machine in the clear", "smtp://" + login + name, false, func(_ *mailServer, s *gosmtp.Server) {
			s.AllowInsecureAuth = true
		}, store.OutcomeAgain, false, "", "no STARTTLS"},
		{"a password goes to loopback in the clear", "smtp://" + login + "127.0.0.1", false, func(_ *mailServer, s *gosmtp.Server) {
			s.AllowInsecureAuth = true
		}, store.OutcomeDone, false, mailUser, ""},
		{"on loopback nobody has to sign for STARTTLS", "smtp://" + login + "localhost", false, startTLS, store.OutcomeDone, true, mailUser, ""},
		{"a certificate for another name is refused at STARTTLS", "smtp://" + name, false, func(_ *mailServer, s *gosmtp.Server) {
			s.TLSConfig = ca.server("other.example", false)
		}, store.OutcomeAgain, false, "", "another name"},
		{"a certificate for another name is refused by smtps, on loopback too", "smtps://localhost", true, startTLS, store.OutcomeAgain, false, "", "another name"},
		{"a certificate that has expired is refused", "smtps://" + name, true, func(_ *mailServer, s *gosmtp.Server) {
			s.TLSConfig = ca.server(name, true)
		}, store.OutcomeAgain, false, "", "expired"},
		{"no way to log in is known", "smtps://" + login + name, true, func(m *mailServer, s *gosmtp.Server) {
			startTLS(m, s)
			m.mechanisms = []string{"XOAUTH2"}
		}, store.OutcomeAgain, false, "", "no way to log in"},
		{"no login is offered", "smtps://" + login + name, true, func(m *mailServer, s *gosmtp.Server) {
			startTLS(m, s)
			m.mechanisms = nil
		}, store.OutcomeAgain, false, "", "no way to log in"},
		{"a wrong password can be mended", "smtps://shop%40example.com:SMTPMARKwrong@" + name, true, startTLS, store.OutcomeAgain, false, "", "535 5.7.8 to AUTH"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newMailServer(t, tt.implicit, tt.setup)
			e := newEmail(t, EmailConfig{URL: tt.url, Dial: dialTo(m.address), TLS: &tls.Config{RootCAs: ca.pool}})
			a := e.Send(t.Context(), mailClaim(testMail()))
			if a.Outcome != tt.want || !strings.Contains(a.Error, tt.says) || strings.Contains(a.Error, "MARK") {
				t.Fatalf("Send = %+v; want %s, %q", a, tt.want, tt.says)
			}
			if tt.want != store.OutcomeDone {
				if len(m.mails) != 0 {
					t.Error("the server has the mail all the same")
				}
				return
			}
			got := <-m.mails
			if got.tls != tt.tls || got.user != tt.user || got.hello != "[127.0.0.1]" {
				t.Errorf("tls %v, user %q, hello %q; want %v, %q, [127.0.0.1]", got.tls, got.user, got.hello, tt.tls, tt.user)
			}
			if got.from != "shop@shop.example" || got.to != "kim.MARK@customer.example" || got.utf8 {
				t.Errorf("envelope = %q, %q, SMTPUTF8 %v", got.from, got.to, got.utf8)
			}
		})
	}
}

// TestEmailReplies: what the server says at each step,
// and what it means.
func TestEmailReplies(t *testing.T) {
	const again, refused = store.OutcomeAgain, store.OutcomeRefused
	for _, tt := range []struct {
		name  string
		setup func(*mailServer)
		want  store.Outcome
		code  string
		says  string
	}{
		{"a sender that is put off may go again", func(m *mailServer) { m.onMail = smtpError(451, 4, 7, 1) }, again, "4.7.1", "451 4.7.1 to the sender"},
		{"a sender that is refused is refused", func(m *mailServer) { m.onMail = smtpError(550, 5, 7, 1) }, refused, "5.7.1", "550 5.7.1 to the sender"},
		{"a server that wants a login can be given one", func(m *mailServer) { m.onMail = smtpError(530, 5, 7, 0) }, again, "5.7.0", "530 5.7.0 to the sender"},
		{"a recipient that is put off may go again", func(m *mailServer) { m.onRcpt = smtpError(450, 4, 2, 0) }, again, "4.2.0", "450 4.2.0 to the recipient"},
		{"a recipient that is refused is refused", func(m *mailServer) { m.onRcpt = smtpError(550, 5, 1, 1) }, refused, "5.1.1", "550 5.1.1 to the recipient"},
		{"a mail that is put off at its end may go again", func(m *mailServer) {
			m.onData = func(*gosmtp.Conn) error { return smtpError(452, 4, 3, 1) }
		}, again, "4.3.1", "452 4.3.1 to the mail"},
		{"a mail that is refused at its end is refused", func(m *mailServer) {
			m.onData = func(*gosmtp.Conn) error { return smtpError(554, 5, 7, 1) }
		}, refused, "5.7.1", "554 5.7.1 to the mail"},
		{"a login that is put off may go again", func(m *mailServer) { m.onAuth = smtpError(454, 4, 7, 0) }, again, "4.7.0", "454 4.7.0 to AUTH"},
		{"a login that is refused may go again", func(m *mailServer) { m.onAuth = smtpError(535, 5, 7, 8) }, again, "5.7.8", "535 5.7.8 to AUTH"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newMailServer(t, false, func(m *mailServer, s *gosmtp.Server) {
				s.AllowInsecureAuth = true
				tt.setup(m)
			})
			e := newEmail(t, EmailConfig{URL: "smtp://" + login + m.address})
			a := e.Send(t.Context(), mailClaim(testMail()))
			if a.Outcome != tt.want || a.Code != tt.code || a.Status/100 != int(a.Code[0]-'0') || !strings.Contains(a.Error, tt.says) {
				t.Errorf("Send = %+v; want %s, %s, %q", a, tt.want, tt.code, tt.says)
			}
			if strings.Contains(a.Error+a.Ref+string(a.Body), "MARK") {
				t.Errorf("Send = %+v quotes the reply", a)
			}
		})
	}
}

// TestEmailOddServers: greetings, commands and ends that a proper server does
// not come to.
func TestEmailOddServers(t *testing.T) {
	const again, unknown, refused, done = store.OutcomeAgain, store.OutcomeUnknown, store.OutcomeRefused, store.OutcomeDone
	for _, tt := range []struct {
		name   string
		script map[string]string
		want   store.Outcome
		says   string
	}{
		{"a greeting of 421 may go again", map[string]string{"": "421 4.3.2 later"}, again, "421 4.3.2 to the connection"},
		{"a greeting of 554 says nothing of the mail", map[string]string{"": "554 no"}, again, "554 to the connection"},
		{"no greeting", map[string]string{"": "close"}, again, "closed before an answer"},
		{"a greeting that is none", map[string]string{"": "HTTP/1.1 400 SMTPMARK"}, again, "no answer that could be read"},
		{"EHLO and HELO are refused", map[string]string{"EHLO": "550 5.7.1 who", "HELO": "550 who"}, again, "550 5.7.1 to EHLO"},
		{"EHLO is not known, HELO is", map[string]string{"EHLO": "502 what"}, done, ""},
		{"STARTTLS is offered and refused", map[string]string{"EHLO": "250-here\n250 STARTTLS", "STARTTLS": "454 4.7.0 MARK"}, again, "454 4.7.0 to STARTTLS"},
		{"STARTTLS is offered and no TLS comes", map[string]string{"EHLO": "250-here\n250 STARTTLS", "STARTTLS": "220 go\nnonsense that is no TLS record"}, again, "STARTTLS"},
		{"the connection is lost at the sender", map[string]string{"MAIL": "close"}, again, "closed before an answer"},
		{"the connection is lost at the recipient", map[string]string{"RCPT": "close"}, again, "closed before an answer"},
		{"DATA is put off", map[string]string{"DATA": "451 4.3.0 later"}, again, "451 4.3.0 to DATA"},
		{"DATA is refused", map[string]string{"DATA": "554 5.5.1 none"}, refused, "554 5.5.1 to DATA"},
		{"the connection is lost at DATA", map[string]string{"DATA": "close"}, again, "closed before an answer"},
		{"the reply to the end of the data is lost", map[string]string{".": "close"}, unknown, "was given the whole mail"},
		{"the reply to the end of the data is no reply", map[string]string{".": "MARK"}, unknown, "was given the whole mail"},
		{"the reply to the end of the data is neither yes nor no", map[string]string{".": "354 MARK"}, unknown, "was given the whole mail"},
		{"421 to the end of the data is a no for now", map[string]string{".": "421 4.3.2 closing"}, again, "421 4.3.2 to the mail"},
		{"the connection is lost at QUIT", map[string]string{"QUIT": "close"}, done, ""},
		{"QUIT is refused", map[string]string{"QUIT": "500 what"}, done, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := newEmail(t, EmailConfig{URL: "smtp://" + scripted(t, tt.script)})
			a := e.Send(t.Context(), mailClaim(testMail()))
			if a.Outcome != tt.want || !strings.Contains(a.Error, tt.says) || (a.Error == "") != (tt.says == "") || strings.Contains(a.Error, "MARK") {
				t.Errorf("Send = %+v; want %s, %q", a, tt.want, tt.says)
			}
		})
	}
}

// TestEmailSilentServers: a server that says nothing more is left at the time
// limit, and what was sent by then decides.
func TestEmailSilentServers(t *testing.T) {
	for _, tt := range []struct {
		name, at string
		want     store.Outcome
	}{
		{"at the greeting nothing has been sent", "", store.OutcomeAgain},
		{"at the recipient the mail has not been sent", "RCPT", store.OutcomeAgain},
		{"at the end of the data the mail may be there", ".", store.OutcomeUnknown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// The server itself ends the wait, when it has come that far.
			ctx, stop := context.WithCancel(t.Context())
			m := newStallingServer(t, tt.at, stop)
			a := newEmail(t, EmailConfig{URL: "smtp://" + m}).Send(ctx, mailClaim(testMail()))
			if a.Outcome != tt.want || !strings.Contains(a.Error, "stopping") {
				t.Errorf("Send = %+v; want %s, because paidonce is stopping", a, tt.want)
			}
		})
	}
	t.Run("the time limit ends it too", func(t *testing.T) {
		e := newEmail(t, EmailConfig{URL: "smtp://" + scripted(t, map[string]string{"": "silent"}), Timeout: 50 * time.Millisecond})
		a := e.Send(t.Context(), mailClaim(testMail()))
		if a.Outcome != store.OutcomeAgain || !strings.Contains(a.Error, "no answer within 50ms") {
			t.Errorf("Send = %+v; want again after the time limit", a)
		}
	})
	t.Run("silence at QUIT takes nothing back", func(t *testing.T) {
		if testing.Short() {
			t.Skip("takes two seconds")
		}
		e := newEmail(t, EmailConfig{URL: "smtp://" + scripted(t, map[string]string{"QUIT": "silent"}), Timeout: time.Hour})
		a := e.Send(t.Context(), mailClaim(testMail()))
		if a.Outcome != store.OutcomeDone {
			t.Errorf("Send = %+v; want done", a)
		}
	})
}

// newStallingServer is a mail server that calls stalled, and says nothing more,
// where it would answer the command at.
func newStallingServer(t *testing.T, at string, stalled func()) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		context.AfterFunc(t.Context(), func() { conn.Close() })
		converse(conn, func(command string) string {
			switch command {
			case at:
				stalled()
				return "silent"
			case "":
				return "220 ready"
			case "DATA":
				return "354 go on"
			}
			return "250 fine"
		})
	}()
	return l.Addr().String()
}

func TestEmailNobodyThere(t *testing.T) {
	e := newEmail(t, EmailConfig{URL: "smtp://" + login + closedPort(t)})
	a := e.Send(t.Context(), mailClaim(testMail()))
	if a.Outcome != store.OutcomeAgain || !strings.Contains(a.Error, "connection refused") || strings.Contains(a.Error, "MARK") {
		t.Errorf("Send = %+v; want again, connection refused", a)
	}
}

// TestEmailRef: the reply to a mail that was taken is kept, without addresses.
func TestEmailRef(t *testing.T) {
	for _, tt := range []struct{ name, said, want string }{
		{"the queue id is kept", "Ok: queued as 4F2A1B", "2.0.0 Ok: queued as 4F2A1B"},
		{"addresses are left out", "<KIM.mark@customer.example> and shop@shop.example: 77", "2.0.0 and 77"},
		{"a long one is cut", strings.Repeat("ü", 150), "2.0.0 " + strings.Repeat("ü", 97)},
		{"control characters are left out", "a\tb\x1b[1mc", "2.0.0 a b [1mc"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newMailServer(t, false, func(m *mailServer, _ *gosmtp.Server) {
				m.onData = func(*gosmtp.Conn) error {
					return &gosmtp.SMTPError{Code: 250, EnhancedCode: gosmtp.EnhancedCode{2, 0, 0}, Message: tt.said}
				}
			})
			a := newEmail(t, EmailConfig{URL: "smtp://" + m.address}).Send(t.Context(), mailClaim(testMail()))
			if a.Outcome != store.OutcomeDone || a.Status != 250 || a.Ref != tt.want {
				t.Errorf("Send = %+v; want done, 250, ref %q", a, tt.want)
			}
		})
	}
}

// TestEmailInternational: an address outside ASCII asks for SMTPUTF8, no other
// mail does.
func TestEmailInternational(t *testing.T) {
	for _, tt := range []struct {
		name    string
		to      string
		offered bool
		want    store.Outcome
		utf8    bool
	}{
		{"an ASCII address does not ask for what is offered", "kim@customer.example", true, store.OutcomeDone, false},
		{"another one does", "käthe@customer.example", true, store.OutcomeDone, true},
		{"and is refused where it is not offered", "käthe@customer.example", false, store.OutcomeRefused, false},
		{"a local part that needs quotes has them", `"kim m"@customer.example`, false, store.OutcomeDone, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newMailServer(t, false, func(_ *mailServer, s *gosmtp.Server) { s.EnableSMTPUTF8 = tt.offered })
			mail := testMail()
			mail.To = tt.to
			a := newEmail(t, EmailConfig{URL: "smtp://" + m.address}).Send(t.Context(), mailClaim(mail))
			if a.Outcome != tt.want || strings.Contains(a.Error, "käthe") {
				t.Fatalf("Send = %+v; want %s", a, tt.want)
			}
			if tt.want == store.OutcomeDone {
				if got := <-m.mails; got.utf8 != tt.utf8 || strings.ReplaceAll(got.to, `"`, "") != strings.ReplaceAll(tt.to, `"`, "") {
					t.Errorf("server got %q, SMTPUTF8 %v; want %q, %v", got.to, got.utf8, tt.to, tt.utf8)
				}
			}
		})
	}
}

func TestNewEmailRefuses(t *testing.T) {
	for _, tt := range []struct{ name, url string }{
		{"an empty url", ""},
		{"another scheme", "http://SMTPMARK@mail.example"},
		{"no scheme", "mail.example:587"},
		{"no host", "smtp://u:SMTPMARK@"},
		{"a user without a password", "smtp://SMTPMARK@mail.example"},
		{"a password without a user", "smtp://:SMTPMARK@mail.example"},
		{"a password that was not encoded", "smtp://u:SMTP/MARK#@mail.example"},
		{"a percent sign that was not encoded", "smtp://u:SMTPMARK%@mail.example"},
		{"a line break in the password", "smtp://u:SMTPMARK%0A@mail.example"},
		{"a path", "smtp://mail.example/SMTPMARK"},
		{"a query", "smtp://mail.example?SMTPMARK"},
		{"a port out of range", "smtp://u:SMTPMARK@mail.example:0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := NewEmail(EmailConfig{URL: tt.url})
			if err == nil || strings.Contains(err.Error(), "MARK") {
				t.Errorf("NewEmail = %v; want an error without the url", err)
			}
		})
	}
	for url, want := range map[string]string{"smtp://a.example": "a.example:587", "smtps://a.example/": "a.example:465", "smtp://[::1]:25": "[::1]:25"} {
		if got := newEmail(t, EmailConfig{URL: url}).relay.place(); got != want {
			t.Errorf("%s leads to %s; want %s", url, got, want)
		}
	}
}
