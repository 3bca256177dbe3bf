package send

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/wneessen/go-mail/smtp"

	"paidonce/store"
)

const (
	// emailTimeout is for one mail, from the name lookup to the reply to the
	// end of the data (design.md §6).
	emailTimeout = 30 * time.Second
	// goodbye is how long the reply to QUIT may take. Nothing hangs on it.
	goodbye = 2 * time.Second
)

// longAgo is a deadline that ends whatever a connection is waiting for.
var longAgo = time.Unix(1, 0)

// EmailConfig is what main decides for all effects of kind email.
type EmailConfig struct {
	// URL is SMTP_URL: smtp://user:pass@host:587 or smtps://user:pass@host:465.
	// The ports are the defaults; user and password are percent-encoded.
	URL string
	// Hello is the name that the server is greeted with; "" is this end's
	// address as a literal (RFC 5321 §4.1.4).
	Hello string
	// Timeout is for one whole mail; 0 is 30 s.
	Timeout time.Duration
	// Dial is for tests; nil is a plain net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// TLS is for tests and for authorities of one's own; nil trusts what the
	// system trusts. The server's name is filled in.
	TLS *tls.Config
}

// Email sends mail through one server. It is safe for concurrent use.
type Email struct {
	relay   relay
	hello   string
	timeout time.Duration
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	tls     *tls.Config
}

// NewEmail returns a sender for one mail server. Its errors hold no part of the
// URL.
func NewEmail(cfg EmailConfig) (*Email, error) {
	r, err := parseRelay(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("email: %w", err)
	}
	if hasControl(cfg.Hello) || strings.Contains(cfg.Hello, " ") {
		return nil, errors.New("email: the name to greet the server with holds blanks or control characters")
	}
	e := &Email{relay: r, hello: cfg.Hello, timeout: cfg.Timeout, dial: cfg.Dial, tls: &tls.Config{}}
	if cfg.TLS != nil {
		e.tls = cfg.TLS.Clone()
	}
	e.tls.ServerName = r.host
	e.tls.MinVersion = max(e.tls.MinVersion, tls.VersionTLS12)
	if e.timeout <= 0 {
		e.timeout = emailTimeout
	}
	if e.dial == nil {
		e.dial = (&net.Dialer{}).DialContext
	}
	return e, nil
}

// Send gives one mail, the frozen store.MailCall of c, to the server:
//
//   - a mail that cannot be composed, and a 5xx to sender, recipient or data:
//     refused, for that is said of this mail.
//   - a 4xx at any point, no connection, no TLS, and a 5xx before the mail was
//     spoken of (greeting, EHLO, STARTTLS, AUTH, and any 530, 534, 535, 538):
//     again. The operator can mend a wrong password, and then the mail goes
//     out.
//   - the end of the data was sent and no reply came: unknown.
//   - 250 to the end of the data: done, whatever comes after. Ref is the reply.
//
// TLS is used whenever the server offers it, and a password goes to another
// machine under TLS alone. The certificate is checked, but for STARTTLS on
// loopback: there a mail server has a certificate that nobody signed, and
// nobody stands between.
func (e *Email) Send(ctx context.Context, c store.EffectClaim) store.Answer {
	l, err := compose(c)
	if err != nil {
		return failed(store.OutcomeRefused, err.Error())
	}
	call, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	conn, err := e.connect(call)
	if err != nil {
		return e.problem(ctx, "", err)
	}
	defer conn.Close()
	defer context.AfterFunc(call, func() { _ = conn.SetDeadline(longAgo) })()

	client, err := smtp.NewClient(conn, e.relay.host)
	if err != nil {
		return e.problem(ctx, "the connection", err)
	}
	// A server that is left without QUIT may count it against us. Its reply
	// changes nothing.
	defer func() {
		defer time.AfterFunc(goodbye, func() { _ = conn.SetDeadline(longAgo) }).Stop()
		_ = client.Quit()
	}()
	if at, err := e.open(client, conn); err != nil {
		return e.problem(ctx, at, err)
	}
	return e.deliver(ctx, client, l)
}

func (e *Email) connect(ctx context.Context) (net.Conn, error) {
	conn, err := e.dial(ctx, "tcp", e.relay.place())
	if err != nil || !e.relay.implicit {
		return conn, err
	}
	secure := tls.Client(conn, e.tls)
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return secure, nil
}

// plainError is a problem that is told in its own words.
type plainError string

func (p plainError) Error() string { return string(p) }

// open brings the session to where mail can be given. It returns what the
// server was answering when it failed.
func (e *Email) open(client *smtp.Client, conn net.Conn) (at string, err error) {
	hello := e.hello
	if hello == "" {
		hello = addressLiteral(conn.LocalAddr())
	}
	if err := client.Hello(hello); err != nil {
		return "EHLO", err
	}
	secure := e.relay.implicit
	if offered, _ := client.Extension("STARTTLS"); offered && !secure {
		if err := client.StartTLS(e.startTLS()); err != nil {
			return "STARTTLS", err
		}
		secure = true
	}
	if e.relay.user == "" {
		return "", nil
	}
	if !secure && !e.relay.loopback() {
		return "", plainError("offers no STARTTLS, and the password is not sent in the clear")
	}
	auth, err := e.auth(client)
	if err != nil {
		return "", err
	}
	return "AUTH", client.Auth(auth)
}

func (e *Email) startTLS() *tls.Config {
	if !e.relay.loopback() {
		return e.tls
	}
	config := e.tls.Clone()
	config.InsecureSkipVerify = true
	return config
}

// auth chooses the first way to log in that the server offers. The plain ones
// come first: they work with every store of passwords, and TLS protects them.
func (e *Email) auth(client *smtp.Client) (smtp.Auth, error) {
	_, offered := client.Extension("AUTH")
	user, password, host := e.relay.user, e.relay.password, e.relay.host
	for _, way := range []struct {
		name string
		auth func() smtp.Auth
	}{
		// open has seen to it that the connection may carry a password.
		{"PLAIN", func() smtp.Auth { return smtp.PlainAuth("", user, password, host, true) }},
		{"LOGIN", func() smtp.Auth { return smtp.LoginAuth(user, password, host, true) }},
		{"SCRAM-SHA-256", func() smtp.Auth { return smtp.ScramSHA256Auth(user, password) }},
		{"CRAM-MD5", func() smtp.Auth { return smtp.CRAMMD5Auth(user, password) }},
	} {
		for mechanism := range strings.FieldsSeq(offered) {
			if strings.EqualFold(mechanism, way.name) {
				return way.auth(), nil
			}
		}
	}
	return nil, plainError("offers no way to log in that is known here (PLAIN, LOGIN, SCRAM-SHA-256, CRAM-MD5)")
}

// deliver gives the letter to the server. Everything up to the end of the data
// can be taken back by closing the connection; from there on only a reply says
// what became of it.
func (e *Email) deliver(ctx context.Context, client *smtp.Client, l letter) store.Answer {
	if l.international {
		if ok, _ := client.Extension("SMTPUTF8"); !ok {
			return failed(store.OutcomeRefused, e.relay.place()+" takes no addresses outside ASCII (SMTPUTF8)")
		}
	}
	// Asking for it without need makes the next server on the way refuse.
	client.SkipSMTPUTF8(!l.international)
	if err := client.Mail(l.from); err != nil {
		return e.verdict(ctx, "the sender", err)
	}
	if err := client.Rcpt(l.to); err != nil {
		return e.verdict(ctx, "the recipient", err)
	}
	data, err := client.Data()
	if err != nil {
		return e.verdict(ctx, "DATA", err)
	}
	if _, err := data.Write(l.bytes); err != nil {
		return e.verdict(ctx, "the mail", err)
	}
	if err := client.Text.W.Flush(); err != nil {
		return e.verdict(ctx, "the mail", err)
	}
	err = data.Close()
	said, answered := replyOf(err)
	switch {
	case err == nil:
		a := store.Answer{Outcome: store.OutcomeDone, Status: 250}
		if closer, ok := data.(*smtp.DataCloser); ok {
			a.Ref = queued(closer.ServerResponse(), l.addresses)
		}
		return a
	case answered && said.code >= 400 && said.code < 600:
		return e.verdict(ctx, "the mail", err)
	default: // silence, and words that mean neither yes nor no
		return failed(store.OutcomeUnknown, e.relay.place()+" was given the whole mail, and then: "+netFailure(ctx, e.timeout, err))
	}
}

// verdict is the answer to a step that was about this mail.
func (e *Email) verdict(ctx context.Context, at string, err error) store.Answer {
	a := e.problem(ctx, at, err)
	if said, ok := replyOf(err); ok && said.code >= 500 && said.code < 600 && !said.ofSession() {
		a.Outcome = store.OutcomeRefused
	}
	return a
}

// problem is the answer to a step that says nothing about this mail: it may go
// out again.
func (e *Email) problem(ctx context.Context, at string, err error) store.Answer {
	a := store.Answer{Outcome: store.OutcomeAgain}
	var plain plainError
	said, ok := replyOf(err)
	switch {
	case errors.As(err, &plain):
		a.Error = e.relay.place() + " " + plain.Error()
	case ok:
		a.Status, a.Code = said.code, said.enhanced
		a.Error = fmt.Sprintf("%s answered %s to %s", e.relay.place(), said, at)
	case at == "":
		a.Error = e.relay.place() + ": " + netFailure(ctx, e.timeout, err)
	default:
		a.Error = fmt.Sprintf("%s, at %s: %s", e.relay.place(), at, netFailure(ctx, e.timeout, err))
	}
	a.Error = cutText(a.Error)
	return a
}

// addressLiteral is this end of a connection as EHLO takes it.
func addressLiteral(local net.Addr) string {
	tcp, ok := local.(*net.TCPAddr)
	switch {
	case !ok:
		return "localhost"
	case tcp.IP.To4() != nil:
		return "[" + tcp.IP.To4().String() + "]"
	default:
		return "[IPv6:" + tcp.IP.String() + "]"
	}
}
