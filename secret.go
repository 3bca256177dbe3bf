package main

import (
	"errors"
	"regexp"
	"strings"

	"paidonce/handler"
	"paidonce/worker/stripeapi"
)

// secrets are what serve needs besides the configuration, read and checked.
type secrets struct {
	sources    []handler.Source
	adminToken *handler.Secret // nil is the one in the token file
	keyKind    string          // sk_test, rk_live, …; "" is no key
	stripeKey  stripeapi.Key   // the zero Key is none
	effects    []effectConfig  // with their secrets
	smtpURL    string          // with its password; "" is none
	warnings   []string
}

// forServe reads the secrets. Like config it finds everything that is wrong at
// once, and names places, never contents.
func (c *config) forServe() (secrets, error) {
	var out secrets
	bad := &configError{}
	if len(c.sources) == 0 {
		bad.add("no source", "nobody could send anything: set %s, or write a [[source]] in %s", stripeSecretVariable, or(c.file, defaultFile))
	}
	for _, s := range c.sources {
		src, err := c.handlerSource(s)
		if err != nil {
			bad.problems = append(bad.problems, strings.Split(err.Error(), "\n")...)
		}
		out.sources = append(out.sources, src)
	}
	c.effectsForServe(bad, &out)
	var err error
	if out.keyKind, err = c.keyKind(); err != nil {
		bad.add("STRIPE_API_KEY", "%s", err)
	} else if out.keyKind != "" {
		text, _ := c.vars.lookup("STRIPE_API_KEY")
		if out.stripeKey, err = stripeapi.NewKey(text); err != nil {
			bad.add("STRIPE_API_KEY", "%s", err)
		}
	}
	if text, _ := c.vars.lookup("PAIDONCE_ADMIN_TOKEN"); text != "" {
		token, err := handler.NewToken(text)
		if err != nil {
			bad.add("PAIDONCE_ADMIN_TOKEN", "%s", err)
		}
		if out.adminToken = &token; len(strings.TrimSpace(text)) < 16 {
			out.warnings = append(out.warnings, "PAIDONCE_ADMIN_TOKEN is shorter than 16 characters: it can be guessed")
		}
	}
	return out, bad.orNil()
}

// handlerSource reads the secrets of s.
func (c *config) handlerSource(s source) (handler.Source, error) {
	out := handler.Source{
		Name:            s.name,
		Provider:        s.provider,
		Account:         s.account,
		Foreign:         s.foreign,
		MaxBody:         s.maxBody,
		SignatureHeader: s.signatureHeader,
		Prefix:          s.prefix,
		Encoding:        s.encoding,
		IDHeader:        s.idHeader,
		TimestampHeader: s.timestampHeader,
		Live:            c.live,
	}
	var errs []error
	for _, ref := range s.secrets {
		texts, err := c.readSecrets(s.provider, ref)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, text := range texts {
			secret, err := handler.NewSecret(s.provider, text)
			if err != nil {
				errs = append(errs, ref.wrap(err))
				continue
			}
			out.Secrets = append(out.Secrets, secret)
		}
	}
	return out, errors.Join(errs...)
}

var apiKey = regexp.MustCompile(`^((?:sk|rk)_(test|live))_[A-Za-z0-9_]+$`)

// keyKind is what kind of key STRIPE_API_KEY holds, after a check that it is
// one of this environment: a live key must never run beside test events.
func (c *config) keyKind() (string, error) {
	text, _ := c.vars.lookup("STRIPE_API_KEY")
	text = strings.TrimSpace(text)
	if text == "" {
		return "", nil
	}
	m := apiKey.FindStringSubmatch(text)
	switch {
	case strings.HasPrefix(text, "pk_"):
		return "", errors.New("is a publishable key, which may do nothing: a secret (sk_…) or restricted (rk_…) one is needed")
	case strings.HasPrefix(text, "whsec_"):
		return "", errors.New("holds a webhook secret: that belongs in " + stripeSecretVariable)
	case m == nil:
		return "", errors.New("is no key of Stripe's: it must begin with sk_test_, rk_test_, sk_live_ or rk_live_")
	case (m[2] == "live") != c.live:
		return "", errors.New("is a " + m[2] + " key, and INTEGRATION_ENV is " + c.env())
	}
	return m[1], nil
}
