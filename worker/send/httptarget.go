package send

import (
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// httpTarget is where an HTTP sender calls. Only place is ever shown: the rest
// may hold tokens.
type httpTarget struct {
	url   string        // without userinfo
	user  *url.Userinfo // nil is none
	place string        // host:port
}

// parseHTTPTarget reads the URL that the operator wrote. Its errors do not
// quote it.
func parseHTTPTarget(raw string) (httpTarget, error) {
	if raw != strings.TrimSpace(raw) || hasControl(raw) {
		return httpTarget{}, errors.New("the url holds blanks or control characters")
	}
	u, err := url.Parse(raw)
	if err != nil {
		return httpTarget{}, errors.New("the url cannot be read")
	}
	port := u.Port()
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return httpTarget{}, errors.New("the url must begin with http:// or https://")
	case u.Hostname() == "":
		return httpTarget{}, errors.New("the url has no host")
	case strings.Contains(raw, "#"):
		return httpTarget{}, errors.New("the url has a fragment (#…), which is never sent")
	case port == "" && u.Scheme == "https":
		port = "443"
	case port == "":
		port = "80"
	}
	if !validPort(port) {
		return httpTarget{}, errors.New("the url's port must be 1 to 65535")
	}
	t := httpTarget{place: net.JoinHostPort(u.Hostname(), port)}
	if u.User != nil && u.User.String() != "" {
		t.user = u.User
	}
	u.User = nil
	t.url = u.String()
	return t, nil
}

func validPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n != 0
}
