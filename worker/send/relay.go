package send

import (
	"errors"
	"net"
	"net/url"
	"strings"
)

// relay is the mail server that takes the shop's mail.
type relay struct {
	host, port string
	implicit   bool // smtps: TLS from the first byte
	user       string
	password   string
}

func (r relay) place() string { return net.JoinHostPort(r.host, r.port) }

// loopback reports whether the mail server is this machine, by its name alone:
// a name that resolves here has to prove itself like any other.
func (r relay) loopback() bool {
	ip := net.ParseIP(r.host)
	return strings.EqualFold(r.host, "localhost") || ip != nil && ip.IsLoopback()
}

// parseRelay reads SMTP_URL. Its errors do not quote it.
func parseRelay(raw string) (relay, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return relay{}, errors.New("the url cannot be read (in a password, write characters such as @ : / # ? % as %40 %3A %2F %23 %3F %25)")
	}
	r := relay{host: u.Hostname(), port: u.Port(), implicit: u.Scheme == "smtps", user: u.User.Username()}
	r.password, _ = u.User.Password()
	switch {
	case u.Scheme != "smtp" && u.Scheme != "smtps":
		return relay{}, errors.New("the url must begin with smtp:// or smtps://")
	case r.host == "":
		return relay{}, errors.New("the url has no host")
	case strings.ContainsAny(raw, "?#") || u.Path != "" && u.Path != "/":
		return relay{}, errors.New("the url must end after host:port")
	case (r.user == "") != (r.password == ""):
		return relay{}, errors.New("the url must have a user and a password, or neither")
	case hasControl(r.user) || hasControl(r.password):
		return relay{}, errors.New("user and password must not hold control characters")
	case r.port == "" && r.implicit:
		r.port = "465"
	case r.port == "":
		r.port = "587"
	}
	if !validPort(r.port) {
		return relay{}, errors.New("the url's port must be 1 to 65535")
	}
	return r, nil
}
