package stripeapi

import (
	"errors"
	"net/netip"
	"net/url"

	"github.com/stripe/stripe-go/v82"
)

// checkBase returns where calls go. The key goes along with each of them, so
// that anything but Stripe itself must be on this machine.
func checkBase(base string) (string, error) {
	if base == "" || base == stripe.APIURL {
		return stripe.APIURL, nil
	}
	u, err := url.Parse(base)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return "", errors.New("the API base is not an http address")
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.Path != "" && u.Path != "/":
		return "", errors.New("the API base must be scheme, host and port alone")
	case u.Scheme == "https" && u.Host == "api.stripe.com":
		return stripe.APIURL, nil
	case !onLoopback(u.Hostname()):
		return "", errors.New("the API base must be " + stripe.APIURL + ", or on loopback for tests")
	}
	return u.Scheme + "://" + u.Host, nil
}

func onLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}
