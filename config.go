package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"

	"paidonce/store"
)

const (
	defaultDB          = "paidonce.db"
	defaultFile        = "paidonce.toml"
	defaultListen      = "127.0.0.1:8080"
	defaultAdminListen = "127.0.0.1:8081"
)

// settings are the variables that this program reads, and no others but those
// that the TOML file names.
var settings = []string{
	"INTEGRATION_ENV", "STRIPE_WEBHOOK_SECRET", "STRIPE_API_KEY", "STRIPE_API_BASE",
	"PAIDONCE_DB", "PAIDONCE_LISTEN", "PAIDONCE_ADMIN_LISTEN", "PAIDONCE_ADMIN_TOKEN", "PAIDONCE_CONFIG",
	"AUDIT_LOG_PATH", "SMTP_URL", "MAIL_FROM",
}

// config is how this run is configured, from all its places. Secrets are not
// in it: a command that needs one asks for it by its reference.
type config struct {
	vars        variables
	live        bool // INTEGRATION_ENV
	db          string
	listen      string
	adminListen string
	apiBase     string
	file        string // the TOML file that was read; "" is none
	sources     []source
	adopt       []string
	unlinked    string
	links       map[string]store.Item // what Payment Links sell
	stockLow    int64
	stockReturn bool
	effects     []effectConfig
	alerts      alertConfig
	backup      backupConfig
	payloadDays int64    // how long payloads stay once their event is done
	mailFrom    string   // MAIL_FROM: one RFC 5322 address; "" is none
	auditLog    string   // AUDIT_LOG_PATH; "" is none
	warnings    []string // wrong enough to say, not to refuse
}

// env is INTEGRATION_ENV as written.
func (c *config) env() string {
	if c.live {
		return "live"
	}
	return "sandbox"
}

// overrides are what flags say; "" is not given.
type overrides struct{ listen, adminListen string }

// configError is everything that is wrong with the configuration, by place.
// It names variables, files and lines, never what they hold.
type configError struct{ problems []string }

func (e *configError) Error() string { return strings.Join(e.problems, "\n") }

func (e *configError) add(where, format string, args ...any) {
	e.problems = append(e.problems, where+": "+fmt.Sprintf(format, args...))
}

// orNil returns e if anything is wrong.
func (e *configError) orNil() error {
	if len(e.problems) == 0 {
		return nil
	}
	return e
}

// config reads the configuration from all its places. The error is a
// configError with everything that is wrong, except that secrets are not
// looked at: most commands do without them, and may not be allowed to read
// them.
func (a *app) config(o overrides) (*config, error) {
	vars, err := readVariables(a.lookup)
	if err != nil {
		return nil, err
	}
	c := &config{vars: vars, unlinked: "watch", stockReturn: true, alerts: alertConfig{pending: alertPending, remind: alertRemind},
		backup: backupConfig{every: backupEvery, keep: backupKeep}, payloadDays: defaultPayloadDays}
	bad := &configError{}
	for _, name := range settings {
		if v, _ := vars.lookup(name); quoted(v) {
			bad.add(name, quotesKept)
		}
	}
	switch v, where := c.setting("", "", "INTEGRATION_ENV", "sandbox"); v {
	case "sandbox", "live":
		c.live = v == "live"
	default:
		bad.add(where, "must be sandbox or live")
	}
	c.db, _ = c.setting("--db", a.dbFlag, "PAIDONCE_DB", defaultDB)
	var at, adminAt string
	c.listen, at = c.setting("--listen", o.listen, "PAIDONCE_LISTEN", defaultListen)
	c.adminListen, adminAt = c.setting("--admin-listen", o.adminListen, "PAIDONCE_ADMIN_LISTEN", defaultAdminListen)
	checkListen(bad, at, c.listen)
	if checkListen(bad, adminAt, c.adminListen) && !loopback(c.adminListen) {
		c.warnings = append(c.warnings, adminAt+": the admin listener is reachable from other machines, and it speaks plain HTTP: the token crosses the network as it is")
	}
	if c.listen == c.adminListen && !strings.HasSuffix(c.listen, ":0") {
		bad.add(adminAt, "is the public address too: senders must not reach the admin listener")
	}
	c.apiBase, at = c.setting("", "", "STRIPE_API_BASE", stripeAPI)
	checkAPIBase(bad, at, c.apiBase)
	c.auditLog, _ = c.setting("", "", "AUDIT_LOG_PATH", "")
	c.mailFrom, at = c.setting("", "", "MAIL_FROM", "")
	checkMailFrom(bad, at, c.mailFrom)
	if err := a.readConfigFile(c); err != nil {
		var more *configError
		if !errors.As(err, &more) {
			return nil, err
		}
		bad.problems = append(bad.problems, more.problems...)
	}
	if err := bad.orNil(); err != nil {
		return nil, err
	}
	c.addStripeSource()
	return c, nil
}

// setting returns the value of a setting and the name of the place that it
// comes from. An empty variable is as good as none.
func (c *config) setting(flag, flagValue, variable, byDefault string) (value, where string) {
	if flagValue != "" {
		return flagValue, flag
	}
	if v, _ := c.vars.lookup(variable); strings.TrimSpace(v) != "" {
		return strings.TrimSpace(v), variable
	}
	return byDefault, variable
}

// readConfigFile reads the TOML file into c: the named one, else the default
// one if it is there.
func (a *app) readConfigFile(c *config) error {
	path, where := c.setting("--config", a.configFlag, "PAIDONCE_CONFIG", "")
	named := path != ""
	if !named {
		path = defaultFile
	}
	doc, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !named:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return &configError{[]string{fmt.Sprintf("%s: there is no file %s", where, path)}}
	case err != nil:
		return &configError{[]string{fmt.Sprintf("cannot read %s: %s", path, plain(err))}}
	}
	c.file = path
	return c.parseFile(doc)
}

// plain is an error without the path, which the caller has told already.
func plain(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return err.Error()
}

// checkListen reports whether value is an address to listen on.
func checkListen(bad *configError, where, value string) bool {
	_, port, err := net.SplitHostPort(value)
	if err != nil {
		bad.add(where, "must be HOST:PORT, such as %s", defaultListen)
		return false
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		bad.add(where, "its port must be a number from 0 to 65535")
		return false
	}
	return true
}

// loopback reports whether only this machine reaches address.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

const stripeAPI = "https://api.stripe.com"

// checkAPIBase refuses a base that would carry the key to a stranger.
func checkAPIBase(bad *configError, where, value string) {
	u, err := url.Parse(value)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		bad.add(where, "must be a URL such as http://127.0.0.1:12111")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "":
		bad.add(where, "must be scheme, host and port alone")
	case u.Scheme+"://"+u.Host != stripeAPI && !loopback(u.Hostname()):
		bad.add(where, "must be %s, or on loopback for tests: the key must not go elsewhere", stripeAPI)
	}
}
