package send

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"
)

// stopping is what an effect's Error says when paidonce itself cut it off.
const stopping = "cut off, because paidonce is stopping"

// netFailure says in our own words why a call over the network has no answer.
// No word of err itself is passed on but the operating system's errno and TLS
// alerts: a url.Error holds the whole URL, and others quote what was received.
// ctx is the caller's, without the call's own time limit.
func netFailure(ctx context.Context, limit time.Duration, err error) string {
	var (
		dns      *net.DNSError
		verify   *tls.CertificateVerificationError
		unknown  x509.UnknownAuthorityError
		hostname x509.HostnameError
		invalid  x509.CertificateInvalidError
		record   tls.RecordHeaderError
		alert    tls.AlertError
		errno    syscall.Errno
		network  net.Error
	)
	switch {
	case ctx.Err() != nil:
		return stopping
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout() && !errors.As(err, &errno):
		return fmt.Sprintf("no answer within %s", limit)
	case errors.As(err, &dns) && dns.IsNotFound:
		return "host not found"
	case errors.As(err, &dns):
		return "name lookup failed"
	case errors.As(err, &unknown):
		return "its certificate is signed by an authority that is not known here"
	case errors.As(err, &hostname):
		return "its certificate is for another name"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "its certificate has expired or is not valid yet"
	case errors.As(err, &invalid), errors.As(err, &verify):
		return "its certificate is not valid"
	case errors.As(err, &record):
		return "it does not speak TLS on this port"
	case errors.As(err, &alert):
		return "TLS failed: " + alert.Error()
	case errors.As(err, &errno):
		return errno.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return "the connection was closed before an answer came"
	default:
		return "no answer that could be read"
	}
}
