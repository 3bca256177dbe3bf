package send

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	gosmtp "github.com/emersion/go-smtp"
)

// received is a mail that the server took.
type received struct {
	from, to string
	utf8     bool // it was given with SMTPUTF8
	tls      bool
	user     string
	hello    string
	bytes    string
}

// mailServer is a real SMTP server (go-smtp) with a place to fail at.
type mailServer struct {
	address string
	mails   chan received

	// What it answers to each step; nil is the usual.
	onAuth, onMail, onRcpt error
	onData                 func(*gosmtp.Conn) error
	mechanisms             []string
}

// mailSession is one connection to it.
type mailSession struct {
	server *mailServer
	conn   *gosmtp.Conn
	mail   received
}

// The one user of the mail server.
const (
	mailUser     = "shop@example.com"
	mailPassword = "SMTPMARK p%/:@"
)

// newMailServer serves until the test ends. setup may change the server and
// what go-smtp offers; with implicit it speaks TLS from the first byte.
func newMailServer(t *testing.T, implicit bool, setup func(*mailServer, *gosmtp.Server)) *mailServer {
	t.Helper()
	m := &mailServer{mails: make(chan received, 10), mechanisms: []string{"PLAIN"}}
	s := gosmtp.NewServer(gosmtp.BackendFunc(func(c *gosmtp.Conn) (gosmtp.Session, error) {
		return &mailSession{server: m, conn: c}, nil
	}))
	s.ErrorLog = log.New(io.Discard, "", 0)
	s.Domain = "mail.shop.example"
	if setup != nil {
		setup(m, s)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m.address = l.Addr().String()
	if implicit {
		l = tls.NewListener(l, s.TLSConfig)
	}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { s.Close() })
	return m
}

func (s *mailSession) Reset()        {}
func (s *mailSession) Logout() error { return nil }
func (s *mailSession) Mail(from string, opts *gosmtp.MailOptions) error {
	_, encrypted := s.conn.TLSConnectionState()
	s.mail.from, s.mail.utf8, s.mail.tls, s.mail.hello = from, opts.UTF8, encrypted, s.conn.Hostname()
	return s.server.onMail
}

func (s *mailSession) Rcpt(to string, _ *gosmtp.RcptOptions) error {
	s.mail.to = to
	return s.server.onRcpt
}

func (s *mailSession) Data(r io.Reader) error {
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.mail.bytes = string(b)
	s.server.mails <- s.mail
	if s.server.onData != nil {
		return s.server.onData(s.conn)
	}
	return nil
}
func (s *mailSession) AuthMechanisms() []string { return s.server.mechanisms }
func (s *mailSession) Auth(mechanism string) (sasl.Server, error) {
	check := func(user, password string) error {
		if s.server.onAuth != nil {
			return s.server.onAuth
		}
		if user != mailUser || password != mailPassword {
			return gosmtp.ErrAuthFailed
		}
		s.mail.user = user
		return nil
	}
	switch mechanism {
	case "PLAIN":
		return sasl.NewPlainServer(func(_, user, password string) error { return check(user, password) }), nil
	case "LOGIN":
		return &loginServer{check: check}, nil
	}
	return nil, gosmtp.ErrAuthUnknownMechanism
}

// loginServer is the server's side of AUTH LOGIN, which go-sasl leaves out.
type loginServer struct {
	check func(user, password string) error
	step  int
	user  string
}

func (l *loginServer) Next(response []byte) (challenge []byte, done bool, err error) {
	l.step++
	switch l.step {
	case 1:
		return []byte("Username:"), false, nil
	case 2:
		l.user = string(response)
		return []byte("Password:"), false, nil
	case 3:
		return nil, true, l.check(l.user, string(response))
	}
	return nil, false, errors.New("too many steps")
}

// smtpError is a reply that quotes the recipient, as many servers do.
func smtpError(code, class, subject, detail int) error {
	return &gosmtp.SMTPError{Code: code, EnhancedCode: gosmtp.EnhancedCode{class, subject, detail}, Message: "<kim.MARK@customer.example>: SMTPMARK"}
}

// dialTo leads every connection to one address, whatever the name.
func dialTo(address string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
}

// authority is a certificate authority of the tests.
type authority struct {
	pool *x509.CertPool
	key  *ecdsa.PrivateKey
	root *x509.Certificate
}

var newAuthority = sync.OnceValue(func() authority {
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der := must(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))
	root := must(x509.ParseCertificate(der))
	pool := x509.NewCertPool()
	pool.AddCert(root)
	return authority{pool: pool, key: key, root: root}
})

// server returns the configuration of a server of that name. A certificate that
// is over has expired.
func (a authority) server(name string, over bool) *tls.Config {
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: []string{name},
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0),
	}
	if over {
		template.NotAfter = time.Unix(1, 0)
	}
	der := must(x509.CreateCertificate(rand.Reader, template, a.root, key.Public(), a.key))
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// scripted is a mail server for what a proper one does not do. It answers each
// command by its first word; a command without a line gets the usual, and what
// follows the data goes by the name ".". The answer "close" closes, "silent"
// says nothing.
func scripted(t *testing.T, script map[string]string) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	usual := map[string]string{"": "220 ready", "EHLO": "250 here", "HELO": "250 here", "DATA": "354 go on", "QUIT": "221 bye"}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			context.AfterFunc(t.Context(), func() { conn.Close() })
			go converse(conn, func(command string) string {
				if said, ok := script[command]; ok {
					return said
				}
				if said, ok := usual[command]; ok {
					return said
				}
				return "250 fine"
			})
		}
	}()
	return l.Addr().String()
}

func converse(conn net.Conn, answer func(command string) string) {
	defer conn.Close()
	lines := bufio.NewScanner(conn)
	for command, inData := "", false; ; {
		if !inData || command == "." {
			said := answer(command)
			switch said {
			case "close":
				return
			case "silent":
			default:
				_, _ = io.WriteString(conn, strings.ReplaceAll(said, "\n", "\r\n")+"\r\n")
			}
			inData = command == "DATA" && strings.HasPrefix(said, "354")
		}
		if !lines.Scan() {
			return
		}
		if command = lines.Text(); !inData {
			command, _, _ = strings.Cut(command, " ")
		}
	}
}
