package stripeapi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"syscall"
)

// noAnswer says in our own words why a request has no whole answer. No word of
// err is passed on but the operating system's errno: a url.Error holds the
// address with its query, and the library quotes what it received. stopped says
// that the caller has canceled it.
func noAnswer(err error, stopped bool) string {
	var (
		dns     *net.DNSError
		verify  *tls.CertificateVerificationError
		unknown x509.UnknownAuthorityError
		host    x509.HostnameError
		record  tls.RecordHeaderError
		errno   syscall.Errno
		network net.Error
	)
	switch {
	case stopped:
		return "cut off by its caller"
	case errors.Is(err, errHeldBack):
		return "not sent: too many requests were waiting before it"
	case errors.Is(err, errTooLarge):
		return "the answer was too large to read"
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	case errors.As(err, &dns):
		return "the name lookup failed"
	case errors.As(err, &verify), errors.As(err, &unknown), errors.As(err, &host):
		return "its certificate is not valid"
	case errors.As(err, &record):
		return "it does not speak TLS on this port"
	case errors.As(err, &errno):
		return errno.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return "the connection was closed before the answer was complete"
	case errors.As(err, &network) && network.Timeout():
		return "no answer in time"
	}
	return "no answer that could be read"
}
