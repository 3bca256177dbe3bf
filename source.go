package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// source is a sender as configured, before its secrets are read. What it
// leaves out is decided by the handler.
type source struct {
	name, provider   string
	account, foreign string
	maxBody          int64
	signatureHeader  string
	prefix, encoding string
	idHeader         string
	timestampHeader  string
	secrets          []secretRef
}

// secretRef says where secrets are.
type secretRef struct {
	where    string // the place that names it, for errors
	variable string // one of the two is set
	file     string
}

const stripeSecretVariable = "STRIPE_WEBHOOK_SECRET"

var (
	sourceName   = regexp.MustCompile(`^[a-z0-9-]{1,40}$`)
	accountID    = regexp.MustCompile(`^acct_[A-Za-z0-9_]{1,60}$`)
	headerName   = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$")
	variableName = regexp.MustCompile(`^[A-Z_][A-Z0-9_]*$`)
	secretPrefix = regexp.MustCompile(`(?i)^(whsec|sk|rk|pk)_`)
)

// secretLike reports whether s looks like a secret itself, where the name of
// one is expected.
func secretLike(s string) bool { return secretPrefix.MatchString(s) }

// maxBodyLimit keeps a source within the memory that the public listener has
// for all bodies in flight.
const maxBodyLimit = 64 << 20

// sources takes over [[source]].
func (f *fileChecker) sources(c *config, file []fileSource) {
	for i, s := range file {
		c.sources = append(c.sources, f.source(fmt.Sprintf("source.%d", i), s))
	}
	first := map[string]int{}
	stripe := 0
	for i, s := range c.sources {
		if s.provider == "stripe" {
			stripe++
		}
		if j, ok := first[s.name]; ok && s.name != "" {
			f.wrong(fmt.Sprintf("source.%d.name", i), "there is a source of this name in line %d already", f.lines[fmt.Sprintf("source.%d", j)])
		} else {
			first[s.name] = i
		}
	}
	if c.variableMakesSource() {
		if stripe++; stripe > 1 {
			f.add(stripeSecretVariable, `makes the source "stripe" beside those in %s: give it a [[source]] with secrets = ["env:%s"] and its account`, f.path, stripeSecretVariable)
		}
	}
	if stripe < 2 {
		return
	}
	for i, s := range c.sources {
		// Two accounts that are both "self" would share a scope: an order of
		// one could be paid by the other's money.
		if s.provider == "stripe" && s.account == "self" {
			f.wrong(fmt.Sprintf("source.%d.account", i), `with several stripe sources each one needs its account: acct_…, or "*" for connected accounts`)
		}
	}
}

// source checks one [[source]].
func (f *fileChecker) source(path string, s fileSource) source {
	out := source{name: s.Name, provider: s.Provider, account: "self"}
	if !sourceName.MatchString(s.Name) {
		f.wrong(path+".name", "name must be 1 to 40 small letters, digits or dashes: it is the end of the URL")
	}
	switch s.Provider {
	case "stripe", "github", "standard", "hmac":
	default:
		f.wrong(path+".provider", "provider must be stripe, github, standard or hmac")
	}
	if s.MaxBody != nil {
		if out.maxBody = *s.MaxBody; out.maxBody < 1 || out.maxBody > maxBodyLimit {
			f.wrong(path+".max_body", "max_body must be from 1 to %d bytes", maxBodyLimit)
		}
	}
	if len(s.Secrets) == 0 {
		f.wrong(path+".secrets", `secrets is missing: name at least one, such as "env:%s" or "file:/run/secrets/webhook"`, stripeSecretVariable)
	}
	for i, text := range s.Secrets {
		out.secrets = append(out.secrets, f.secretRef(fmt.Sprintf("%s.secrets.%d", path, i), text))
	}
	f.stripeKeys(path, s, &out)
	f.hmacKeys(path, s, &out)
	return out
}

// stripeKeys takes over the keys that only a stripe source has.
func (f *fileChecker) stripeKeys(path string, s fileSource, out *source) {
	for _, k := range []struct {
		name  string
		value *string
	}{{"account", s.Account}, {"foreign", s.Foreign}} {
		if k.value != nil && s.Provider != "stripe" {
			f.wrong(path+"."+k.name, "%s is for stripe sources only", k.name)
		}
	}
	if s.Account != nil {
		out.account = *s.Account
		if out.account != "self" && out.account != "*" && !accountID.MatchString(out.account) {
			f.wrong(path+".account", `account must be self, acct_… or "*"`)
		}
	}
	if s.Foreign != nil {
		if out.foreign = *s.Foreign; out.foreign != "reject" && out.foreign != "ignore" {
			f.wrong(path+".foreign", "foreign must be reject or ignore")
		}
	}
}

// hmacKeys takes over the keys that only an hmac source has.
func (f *fileChecker) hmacKeys(path string, s fileSource, out *source) {
	for _, k := range []struct {
		name   string
		value  *string
		to     *string
		header bool
	}{
		{"signature_header", s.SignatureHeader, &out.signatureHeader, true},
		{"prefix", s.Prefix, &out.prefix, false},
		{"encoding", s.Encoding, &out.encoding, false},
		{"id_header", s.IDHeader, &out.idHeader, true},
		{"timestamp_header", s.TimestampHeader, &out.timestampHeader, true},
	} {
		switch {
		case k.value == nil:
		case s.Provider != "hmac":
			f.wrong(path+"."+k.name, "%s is for hmac sources only", k.name)
		case k.header && !headerName.MatchString(*k.value):
			f.wrong(path+"."+k.name, "%s must be the name of an HTTP header", k.name)
		default:
			*k.to = *k.value
		}
	}
	if s.Provider != "hmac" {
		return
	}
	if s.SignatureHeader == nil {
		f.wrong(path+".signature_header", "signature_header is missing: which header holds the signature")
	}
	if out.encoding != "" && out.encoding != "hex" && out.encoding != "base64" {
		f.wrong(path+".encoding", "encoding must be hex or base64")
	}
}

// wrap says which secret an error is about.
func (r secretRef) wrap(err error) error {
	if name := r.variable + r.file; name != r.where {
		return fmt.Errorf("%s: %s: %w", r.where, name, err)
	}
	return fmt.Errorf("%s: %w", r.where, err)
}

// secretRef reads a reference. What is none is refused unseen: it may well be
// the secret itself.
func (f *fileChecker) secretRef(path, text string) secretRef {
	ref, err := parseSecretRef(f.at(path), text)
	if err != nil {
		f.wrong(path, "%s", err)
	}
	return ref
}

func parseSecretRef(where, text string) (secretRef, error) {
	kind, name, _ := strings.Cut(text, ":")
	switch {
	case secretLike(text) || secretLike(name):
		return secretRef{}, errors.New("a secret does not belong here: write where it is, env:NAME or file:/path, and replace it, for it was seen")
	case kind == "env" && variableName.MatchString(name):
		return secretRef{where: where, variable: name}, nil
	case kind == "file" && name != "":
		return secretRef{where: where, file: name}, nil
	}
	return secretRef{}, errors.New("secrets are named by env:NAME (capital letters, digits, underscores) or file:/path")
}

// source returns the source of this name.
func (c *config) source(name string) (source, bool) {
	i := slices.IndexFunc(c.sources, func(s source) bool { return s.name == name })
	if i < 0 {
		return source{}, false
	}
	return c.sources[i], true
}

// variableMakesSource reports whether STRIPE_WEBHOOK_SECRET stands for a
// source of its own: not if the file has one of that name, or uses it.
func (c *config) variableMakesSource() bool {
	_, set := c.vars.lookup(stripeSecretVariable)
	return set && !slices.ContainsFunc(c.sources, func(s source) bool {
		return s.name == "stripe" || slices.ContainsFunc(s.secrets, func(r secretRef) bool { return r.variable == stripeSecretVariable })
	})
}

// addStripeSource adds the source that the environment alone makes. A variable
// that is set to nothing makes one too, so that serve refuses it and does not
// run without the source that was meant.
func (c *config) addStripeSource() {
	if c.variableMakesSource() {
		c.sources = append(c.sources, source{
			name: "stripe", provider: "stripe", account: "self",
			secrets: []secretRef{{where: stripeSecretVariable, variable: stripeSecretVariable}},
		})
	}
}

const quotesKept = "has quotes around its value: remove them, only a shell and .env take quotes away"

// quoted reports whether s still has the quotes that a shell or .env would
// have taken away.
func quoted(s string) bool {
	s = strings.TrimSpace(s)
	return len(s) > 1 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0]
}

// readSecrets reads what ref names: one secret, or several with commas between
// them where the provider's secrets have none inside. Errors name the place,
// never what it holds.
func (c *config) readSecrets(provider string, ref secretRef) ([]string, error) {
	var text string
	if ref.variable != "" {
		value, ok := c.vars.lookup(ref.variable)
		if !ok {
			return nil, ref.wrap(errors.New("is not set"))
		}
		text = value
	} else {
		b, err := os.ReadFile(c.beside(ref.file))
		if err != nil {
			return nil, ref.wrap(errors.New("cannot be read: " + plain(err)))
		}
		text = string(b)
	}
	parts := []string{text}
	if provider == "stripe" || provider == "standard" {
		parts = strings.Split(text, ",")
	}
	for i, p := range parts {
		p = strings.TrimSpace(p)
		switch {
		case p == "" && len(parts) > 1:
			return nil, ref.wrap(errors.New("one of the secrets between the commas is empty"))
		case p == "":
			return nil, ref.wrap(errors.New("is empty: with an empty secret anybody could sign"))
		case quoted(p):
			return nil, ref.wrap(errors.New(quotesKept))
		case strings.ContainsAny(p, "\r\n"):
			return nil, ref.wrap(errors.New("has several lines: a secret is one line"))
		}
		parts[i] = p
	}
	return parts, nil
}

// beside returns path as seen from the TOML file, if it is relative.
func (c *config) beside(path string) string {
	if c.file == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(c.file), path)
}
