package main

import (
	"io"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"paidonce/store"
	"paidonce/worker/compose"
)

const goodSecret = "whsec_0123456789abcdef0123456789abcdef"

// The configuration errors name a place and never what stands there: every
// value in this table that should be refused holds a marker.
func TestWrongConfigurationIsRefusedByPlace(t *testing.T) {
	const mark = "MARK"
	stripe := map[string]string{"STRIPE_WEBHOOK_SECRET": goodSecret}
	for _, tt := range []struct {
		name   string
		env    map[string]string
		dotenv string
		toml   string
		files  map[string]string
		want   []string // parts of the error, one a line
	}{
		{"nothing is configured", nil, "", "", nil, []string{"no source: nobody could send anything: set STRIPE_WEBHOOK_SECRET"}},
		{"the secret is empty", map[string]string{"STRIPE_WEBHOOK_SECRET": ""}, "", "", nil, []string{"STRIPE_WEBHOOK_SECRET: is empty"}},
		{"the secret is blank", map[string]string{"STRIPE_WEBHOOK_SECRET": " \t"}, "", "", nil, []string{"STRIPE_WEBHOOK_SECRET: is empty"}},
		{"one of two secrets is blank", map[string]string{"STRIPE_WEBHOOK_SECRET": goodSecret + ", "}, "", "", nil, []string{"STRIPE_WEBHOOK_SECRET: one of the secrets"}},
		{"the secret is an API key", map[string]string{"STRIPE_WEBHOOK_SECRET": "sk_test_MARK"}, "", "", nil, []string{"STRIPE_WEBHOOK_SECRET: "}},
		{"the secret is a restricted key", map[string]string{"STRIPE_WEBHOOK_SECRET": "rk_test_MARK"}, "", "", nil, []string{"STRIPE_WEBHOOK_SECRET: "}},
		{"the secret is a publishable key", map[string]string{"STRIPE_WEBHOOK_SECRET": "pk_test_MARK"}, "", "", nil, []string{"STRIPE_WEBHOOK_SECRET: "}},
		{"quotes are kept around the secret", map[string]string{"STRIPE_WEBHOOK_SECRET": `"whsec_MARK"`}, "", "", nil, []string{"STRIPE_WEBHOOK_SECRET: has quotes"}},
		{"quotes are kept around another setting", with(stripe, "PAIDONCE_DB", `'MARK.db'`), "", "", nil, []string{"PAIDONCE_DB: has quotes"}},
		{"the environment has an unknown name", with(stripe, "INTEGRATION_ENV", "MARK"), "", "", nil, []string{"INTEGRATION_ENV: must be sandbox or live"}},
		{"the API key is a live one in the sandbox", with(stripe, "STRIPE_API_KEY", "rk_live_MARK"), "", "", nil, []string{"STRIPE_API_KEY: is a live key, and INTEGRATION_ENV is sandbox"}},
		{"the API key is a test one in live mode", with(stripe, "STRIPE_API_KEY", "sk_test_MARK", "INTEGRATION_ENV", "live"), "", "", nil, []string{"STRIPE_API_KEY: is a test key, and INTEGRATION_ENV is live"}},
		{"the API key is a publishable one", with(stripe, "STRIPE_API_KEY", "pk_test_MARK"), "", "", nil, []string{"STRIPE_API_KEY: is a publishable key"}},
		{"the API key is a webhook secret", with(stripe, "STRIPE_API_KEY", "whsec_MARK"), "", "", nil, []string{"STRIPE_API_KEY: holds a webhook secret"}},
		{"the API key is nonsense", with(stripe, "STRIPE_API_KEY", "MARK"), "", "", nil, []string{"STRIPE_API_KEY: is no key of Stripe's"}},
		{"the API base is a stranger", with(stripe, "STRIPE_API_BASE", "https://api.stripe.com.MARK.example"), "", "", nil, []string{"STRIPE_API_BASE: must be https://api.stripe.com"}},
		{"the API base is plain http at Stripe", with(stripe, "STRIPE_API_BASE", "http://api.stripe.com"), "", "", nil, []string{"STRIPE_API_BASE: must be https://api.stripe.com"}},
		{"the API base carries a password", with(stripe, "STRIPE_API_BASE", "http://u:MARK@127.0.0.1:1"), "", "", nil, []string{"STRIPE_API_BASE: must be scheme, host and port"}},
		{"the address has no port", with(stripe, "PAIDONCE_LISTEN", "MARK"), "", "", nil, []string{"PAIDONCE_LISTEN: must be HOST:PORT"}},
		{"the port is no number", with(stripe, "PAIDONCE_ADMIN_LISTEN", "127.0.0.1:http"), "", "", nil, []string{"PAIDONCE_ADMIN_LISTEN: its port"}},
		{"both addresses are one", with(stripe, "PAIDONCE_ADMIN_LISTEN", "127.0.0.1:8080"), "", "", nil, []string{"PAIDONCE_ADMIN_LISTEN: is the public address too"}},
		{"the admin token is blank", with(stripe, "PAIDONCE_ADMIN_TOKEN", "  "), "", "", nil, []string{"PAIDONCE_ADMIN_TOKEN: the admin token is empty"}},
		{"the admin token has a space", with(stripe, "PAIDONCE_ADMIN_TOKEN", "MARK MARK"), "", "", nil, []string{"PAIDONCE_ADMIN_TOKEN: the admin token holds characters"}},
		{"the named file is absent", with(stripe, "PAIDONCE_CONFIG", "absent.toml"), "", "", nil, []string{"PAIDONCE_CONFIG: there is no file absent.toml"}},
		{"several things at once", map[string]string{"STRIPE_API_KEY": "MARK", "PAIDONCE_ADMIN_TOKEN": " "}, "", "", nil, []string{"no source: ", "STRIPE_API_KEY: ", "PAIDONCE_ADMIN_TOKEN: "}},

		{".env has a line without =", nil, "A=1\n\n# note\nwhsec_MARK\nB=2\n", "", nil, []string{".env:4: "}},
		{".env has a name with a dash", nil, "A=1\nWH-SEC=whsec_MARK\n", "", nil, []string{".env:2: "}},
		{".env has an open quote", nil, "A=\"1\nMARK\"\nB=\"whsec_MARK\n\n", "", nil, []string{".env:3: "}},
		{".env ends in a bare word", nil, "A=1\nwhsec_MARK", "", nil, []string{".env:2: "}},

		{"the file is no TOML", nil, "", "a = 1\n[[source]]\nname = whsec_MARK\n", nil, []string{"paidonce.toml:3: "}},
		{"a table is not closed", nil, "", "\n[[source]\n", nil, []string{"paidonce.toml:2: "}},
		{"unknown keys are told all", nil, "", "debug = true\n[[source]]\nname = \"a\"\nsecret = \"whsec_MARK\"\n[orders]\nadapt = []\n", nil,
			[]string{`paidonce.toml:1: unknown key "debug"`, `paidonce.toml:4: unknown key "secret"`, `paidonce.toml:6: unknown key "adapt"`}},
		{"a key in capitals is unknown", nil, "", "[[source]]\nName = \"MARK\"\n", nil, []string{`paidonce.toml:2: unknown key "Name"`}},
		{"a secret is the key", nil, "", "[orders]\nwhsec_MARK = 1\n", nil, []string{`paidonce.toml:2: unknown key (it looks like a secret)`}},
		{"backups too often and none kept", nil, "", "[backup]\nevery = \"1s\"\nkeep = 0\n", nil,
			[]string{"paidonce.toml:2: every must be a duration of at least a minute", "paidonce.toml:3: keep must be from 1"}},
		{"a key stands twice", nil, "", "[orders]\nunlinked = \"watch\"\nunlinked = \"MARK\"\n", nil, []string{"paidonce.toml:3: "}},
		{"a list is wanted", nil, "", "[[source]]\nsecrets = \"env:MARK\"\n", nil, []string{`paidonce.toml:2: "secrets" must be a list of strings`}},
		{"a number is wanted", nil, "", "[retention]\npayload_days = \"MARK\"\n", nil, []string{`paidonce.toml:2: "payload_days" must be a whole number`}},
		{"a string is wanted", nil, "", "[[source]]\nname = 7\n", nil, []string{`paidonce.toml:2: "name" must be a string`}},
		{"a table is wanted", nil, "", "orders = \"MARK\"\n", nil, []string{`paidonce.toml:1: "orders" must be a table`}},

		{"the secret itself is in the file", nil, "", source1("secrets = [\"whsec_MARK\"]"), nil, []string{"paidonce.toml:4: a secret does not belong here"}},
		{"the secret itself is behind env:", nil, "", source1("secrets = [\"env:whsec_MARK\"]"), nil, []string{"paidonce.toml:4: a secret does not belong here"}},
		{"the reference is of no known kind", nil, "", source1("secrets = [\"vault:MARK\"]"), nil, []string{"paidonce.toml:4: secrets are named by env:NAME"}},
		{"a reference on a later line of the list", nil, "", source1("secrets = [\n\"env:A\",\n\"MARK\"]"), nil, []string{"paidonce.toml:6: secrets are named by"}},
		{"the variable is not set", nil, "", source1("secrets = [\"env:SHOP\"]"), nil, []string{"paidonce.toml:4: SHOP: is not set"}},
		{"the variable is empty", map[string]string{"SHOP": "  "}, "", source1("secrets = [\"env:SHOP\"]"), nil, []string{"paidonce.toml:4: SHOP: is empty"}},
		{"the variable keeps its quotes", map[string]string{"SHOP": "'whsec_MARK'"}, "", source1("secrets = [\"env:SHOP\"]"), nil, []string{"paidonce.toml:4: SHOP: has quotes"}},
		{"the variable holds an API key", map[string]string{"SHOP": "sk_live_MARK"}, "", source1("secrets = [\"env:SHOP\"]"), nil, []string{"paidonce.toml:4: SHOP: "}},
		{"the secret file is absent", nil, "", source1("secrets = [\"file:absent\"]"), nil, []string{"paidonce.toml:4: absent: cannot be read: no such file"}},
		{"the secret file is empty", nil, "", source1("secrets = [\"file:s\"]"), map[string]string{"s": "\n"}, []string{"paidonce.toml:4: s: is empty"}},
		{"the secret file has two lines", nil, "", source1("secrets = [\"file:s\"]"), map[string]string{"s": "whsec_MARK\nMARK\n"}, []string{"paidonce.toml:4: s: has several lines"}},
		{"secrets are missing", nil, "", source1(""), nil, []string{"paidonce.toml:1: secrets is missing"}},

		{"the name would not fit a URL", nil, "", "[[source]]\nname = \"My Shop\"\nprovider = \"stripe\"\nsecrets = [\"env:A\"]\n", nil, []string{"paidonce.toml:2: name must be"}},
		{"the provider is unknown", nil, "", "[[source]]\nname = \"a\"\nprovider = \"paypal\"\nsecrets = [\"env:A\"]\n", nil, []string{"paidonce.toml:3: provider must be"}},
		{"the provider is missing", nil, "", "[[source]]\nname = \"a\"\nsecrets = [\"env:A\"]\n", nil, []string{"paidonce.toml:1: provider must be"}},
		{"the account is no account", nil, "", source1("secrets = [\"env:A\"]\naccount = \"shop\""), nil, []string{"paidonce.toml:5: account must be"}},
		{"foreign is misspelt", nil, "", source1("secrets = [\"env:A\"]\nforeign = \"drop\""), nil, []string{"paidonce.toml:5: foreign must be"}},
		{"max_body is zero", nil, "", source1("secrets = [\"env:A\"]\nmax_body = 0"), nil, []string{"paidonce.toml:5: max_body must be"}},
		{"a key of another provider", nil, "", source1("secrets = [\"env:A\"]\nprefix = \"v1=\""), nil, []string{"paidonce.toml:5: prefix is for hmac sources only"}},
		{"account on a github source", nil, "", "[[source]]\nname = \"a\"\nprovider = \"github\"\nsecrets = [\"env:A\"]\naccount = \"self\"\n", nil, []string{"paidonce.toml:5: account is for stripe"}},
		{"an hmac source without a header", nil, "", "[[source]]\nname = \"a\"\nprovider = \"hmac\"\nsecrets = [\"env:A\"]\nencoding = \"hax\"\n", nil,
			[]string{"paidonce.toml:1: signature_header is missing", "paidonce.toml:5: encoding must be"}},
		{"a header that is none", nil, "", "[[source]]\nname = \"a\"\nprovider = \"hmac\"\nsecrets = [\"env:A\"]\nsignature_header = \"X Sig\"\n", nil, []string{"paidonce.toml:5: signature_header must be"}},
		{"two sources of one name", nil, "", source1("secrets = [\"env:A\"]\naccount = \"acct_1\"") + source1("secrets = [\"env:A\"]\naccount = \"acct_2\""), nil,
			[]string{"paidonce.toml:8: there is a source of this name in line 1"}},
		{"several stripe sources without accounts", nil, "", source1("secrets = [\"env:A\"]") + "[[source]]\nname = \"b\"\nprovider = \"stripe\"\nsecrets = [\"env:A\"]\naccount = \"acct_1\"\n", nil,
			[]string{"paidonce.toml:1: with several stripe sources"}},
		{"the variable makes a second stripe source", stripe, "", source1("secrets = [\"env:A\"]\naccount = \"acct_1\""), nil, []string{`STRIPE_WEBHOOK_SECRET: makes the source "stripe" beside`}},
		{"adopt holds something else", nil, "", "[orders]\nadopt = [\"price_1\"]\n", nil, []string{"paidonce.toml:2: adopt holds ids"}},
		{"unlinked is misspelt", nil, "", "[orders]\nunlinked = \"drop\"\n", nil, []string{"paidonce.toml:2: unlinked must be"}},
		{"stock is not low below nothing", nil, "", "[stock]\nlow = -1\n", nil, []string{"paidonce.toml:2: low must be"}},
		{"a word for true", nil, "", "[stock]\nreturn_on_refund = \"MARK\"\n", nil, []string{`paidonce.toml:2: "return_on_refund" must be true or false`}},
		{"a link without anything", nil, "", "[[link]]\n", nil, []string{"paidonce.toml:1: id is missing", "paidonce.toml:1: sku is missing"}},
		{"a link that is none", nil, "", "[[link]]\nid = \"MARK\"\nsku = \"\"\nquantity = 0\n", nil,
			[]string{"paidonce.toml:2: id must be", "paidonce.toml:3: sku must be", "paidonce.toml:4: quantity must be"}},
		{"a link that stands twice", nil, "", "[[link]]\nid = \"plink_1\"\nsku = \"a\"\n[[link]]\nid = \"plink_1\"\nsku = \"b\"\n", nil,
			[]string{"paidonce.toml:5: there is a [[link]] of this id at paidonce.toml:2"}},
		{"payload_days is zero", nil, "", "[retention]\npayload_days = 0\n", nil, []string{"paidonce.toml:2: payload_days must be"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.env = tt.env
			if tt.dotenv != "" {
				w.write(".env", tt.dotenv)
			}
			if tt.toml != "" {
				w.write("paidonce.toml", tt.toml)
			}
			for name, text := range tt.files {
				w.write(name, text)
			}
			exit, stdout, stderr := w.run("serve")
			if exit != 1 || stdout != "" {
				t.Errorf("exit %d, stdout %q; want exit 1 and silence", exit, stdout)
			}
			if lines := strings.Count(stderr, "\n"); lines != len(tt.want) {
				t.Errorf("%d lines on stderr; want %d", lines, len(tt.want))
			}
			for _, part := range tt.want {
				if !strings.Contains(stderr, "paidonce: "+part) {
					t.Errorf("stderr lacks %q", "paidonce: "+part)
				}
			}
			unwanted(t, "stderr", stderr, mark)
			if _, err := os.Stat(defaultDB); err == nil {
				t.Error("a database was made in spite of the configuration")
			}
			if t.Failed() {
				t.Logf("stderr:\n%s", stderr)
			}
		})
	}
}

func with(m map[string]string, namesAndValues ...string) map[string]string {
	out := map[string]string{}
	for k, v := range m {
		out[k] = v
	}
	for i := 0; i < len(namesAndValues); i += 2 {
		out[namesAndValues[i]] = namesAndValues[i+1]
	}
	return out
}

func source1(more string) string {
	return "[[source]]\nname = \"shop\"\nprovider = \"stripe\"\n" + more + "\n\n"
}

func TestTheFirstPlaceThatHasASettingWins(t *testing.T) {
	for _, tt := range []struct {
		name              string
		flag, env, dotenv string
		want              string
	}{
		{"nothing says it", "", "", "", defaultDB},
		{".env says it", "", "", "c.db", "c.db"},
		{"the environment goes before .env", "", "b.db", "c.db", "b.db"},
		{"the flag goes before all", "a.db", "b.db", "c.db", "a.db"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			if tt.env != "" {
				w.env["PAIDONCE_DB"] = tt.env
			}
			if tt.dotenv != "" {
				w.write(".env", "PAIDONCE_DB="+tt.dotenv+"\n")
			}
			a := &app{process: w.process(io.Discard, io.Discard), dbFlag: tt.flag}
			c, err := a.config(overrides{})
			if err != nil {
				t.Fatal(err)
			}
			if c.db != tt.want {
				t.Errorf("db = %q; want %q", c.db, tt.want)
			}
		})
	}
}

func TestAnEmptyVariableInTheEnvironmentHidesTheOneInDotenv(t *testing.T) {
	w := newWorld(t)
	w.env["PAIDONCE_DB"] = ""
	w.write(".env", "PAIDONCE_DB=c.db\n")
	a := &app{process: w.process(io.Discard, io.Discard)}
	c, err := a.config(overrides{})
	if err != nil {
		t.Fatal(err)
	}
	if c.db != defaultDB {
		t.Errorf("db = %q; want the default", c.db)
	}
}

// config returns the configuration of w, which must be right.
func (w *world) config() *config {
	w.t.Helper()
	a := &app{process: w.process(io.Discard, io.Discard)}
	c, err := a.config(overrides{})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func TestSecretsAreReadFromWhereTheyAre(t *testing.T) {
	for _, tt := range []struct {
		name       string
		env        map[string]string
		toml, file string
		want       []string
	}{
		{"one in the environment", map[string]string{"STRIPE_WEBHOOK_SECRET": " whsec_a\n"}, "", "", []string{"whsec_a"}},
		{"two in the environment", map[string]string{"STRIPE_WEBHOOK_SECRET": "whsec_a, whsec_b"}, "", "", []string{"whsec_a", "whsec_b"}},
		{"a variable that the file names", map[string]string{"SHOP": "whsec_c"}, source1(`secrets = ["env:SHOP"]`), "", []string{"whsec_c"}},
		{"a file beside the TOML file, with its newline", nil, source1(`secrets = ["file:secret"]`), "whsec_d\r\n", []string{"whsec_d"}},
		{"several places", map[string]string{"SHOP": "whsec_c"}, source1(`secrets = ["file:secret", "env:SHOP"]`), "whsec_d,whsec_e", []string{"whsec_d", "whsec_e", "whsec_c"}},
		{"the file uses the variable, which then makes no source of its own", map[string]string{"STRIPE_WEBHOOK_SECRET": "whsec_a"}, source1(`secrets = ["env:STRIPE_WEBHOOK_SECRET"]`), "", []string{"whsec_a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.env = tt.env
			w.write("secret", tt.file)
			if tt.toml != "" {
				w.write("paidonce.toml", tt.toml)
			}
			c := w.config()
			if len(c.sources) != 1 {
				t.Fatalf("%d sources; want 1", len(c.sources))
			}
			var got []string
			for _, ref := range c.sources[0].secrets {
				texts, err := c.readSecrets("stripe", ref)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, texts...)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("secrets %q; want %q", got, tt.want)
			}
		})
	}
}

func TestASecretOfAnotherSchemeMayHoldCommas(t *testing.T) {
	w := newWorld(t)
	w.env["HOOK"] = "It's a Secret, to Everybody"
	c := w.config()
	got, err := c.readSecrets("github", secretRef{where: "x", variable: "HOOK"})
	if err != nil || len(got) != 1 || got[0] != w.env["HOOK"] {
		t.Errorf("readSecrets = %q, %v", got, err)
	}
}

func TestTheTOMLFileGoesBeforeTheVariableForTheSourceStripe(t *testing.T) {
	w := newWorld(t)
	w.env["STRIPE_WEBHOOK_SECRET"] = goodSecret
	w.write("paidonce.toml", "[[source]]\nname = \"stripe\"\nprovider = \"stripe\"\nsecrets = [\"env:STRIPE_WEBHOOK_SECRET\"]\naccount = \"acct_1A\"\nforeign = \"ignore\"\n")
	c := w.config()
	if len(c.sources) != 1 || c.sources[0].account != "acct_1A" || c.sources[0].foreign != "ignore" {
		t.Errorf("sources = %+v; want the one of the file", c.sources)
	}
}

func TestConnectMayStandBesideAnAccount(t *testing.T) {
	w := newWorld(t)
	w.write("paidonce.toml", "[[source]]\nname = \"a\"\nprovider = \"stripe\"\nsecrets = [\"env:A\"]\naccount = \"acct_1\"\n"+
		"[[source]]\nname = \"b\"\nprovider = \"stripe\"\nsecrets = [\"env:A\"]\naccount = \"*\"\n")
	if c := w.config(); len(c.sources) != 2 {
		t.Errorf("%d sources; want 2", len(c.sources))
	}
}

func TestWarningsAreNoErrors(t *testing.T) {
	w := newWorld(t)
	w.env["PAIDONCE_ADMIN_LISTEN"] = "0.0.0.0:8081"
	got := strings.Join(w.config().warnings, "\n")
	w.write("paidonce.toml", "[stock]\nreturn_on_refund = false\nlow = 3\n[[link]]\nid = \"plink_1\"\nsku = \"ebook\"\n")
	c := w.config()
	wantParts(t, "warnings", strings.Join(c.warnings, "\n"), "paidonce.toml:4: the link sells nothing: adopt")
	if c.stockReturn || c.stockLow != 3 || c.links["plink_1"].Quantity != 1 {
		t.Errorf("stock %v, %d, links %v", c.stockReturn, c.stockLow, c.links)
	}
	wantParts(t, "warnings", got, "PAIDONCE_ADMIN_LISTEN: the admin listener is reachable")
}

func TestTheExampleFilesAreRight(t *testing.T) {
	toml, err := os.ReadFile("paidonce.example.toml")
	if err != nil {
		t.Fatal(err)
	}
	dotenv, err := os.ReadFile(".env.example")
	if err != nil {
		t.Fatal(err)
	}
	t.Run("paidonce.example.toml holds every key that there is", func(t *testing.T) {
		for _, typ := range []reflect.Type{reflect.TypeFor[fileSource](), reflect.TypeFor[fileStock](), reflect.TypeFor[fileLink](),
			reflect.TypeFor[fileEffect](), reflect.TypeFor[fileAlerts](), reflect.TypeFor[fileConfig]()} {
			for i := range typ.NumField() {
				if key := typ.Field(i).Tag.Get("toml"); !regexp.MustCompile(`(?m)^#?\[*` + key + `\b`).Match(toml) {
					t.Errorf("%s is missing", key)
				}
			}
		}
	})
	t.Run(".env.example has every variable, empty, with a comment", func(t *testing.T) {
		var names []string
		for _, m := range regexp.MustCompile(`(?m)^# .+\n([A-Z_]+)=$`).FindAllSubmatch(dotenv, -1) {
			names = append(names, string(m[1]))
		}
		want := slices.Clone(settings)
		slices.Sort(names)
		slices.Sort(want)
		if !slices.Equal(names, want) {
			t.Errorf("variables %q; want %q", names, want)
		}
	})
	t.Run("both are read", func(t *testing.T) {
		w := newWorld(t)
		w.write("paidonce.toml", string(toml))
		w.write(".env", strings.Replace(string(dotenv), "STRIPE_WEBHOOK_SECRET=\n", "STRIPE_WEBHOOK_SECRET="+goodSecret+"\n", 1))
		c := w.config()
		if len(c.sources) != 3 {
			t.Errorf("%d sources; want 3", len(c.sources))
		}
		if want := (store.Item{SKU: "ebook", Quantity: 1}); len(c.links) != 1 || c.links["plink_1AbC"] != want || !c.stockReturn || c.stockLow != 0 {
			t.Errorf("links %v, stock %d, %v", c.links, c.stockLow, c.stockReturn)
		}
	})
	t.Run("what is commented out in paidonce.example.toml is right without its #", func(t *testing.T) {
		w := newWorld(t)
		text := regexp.MustCompile(`(?m)^#(\S)`).ReplaceAll(toml, []byte("$1"))
		w.write("paidonce.toml", string(text))
		if err := os.Mkdir("mail", 0o700); err != nil {
			t.Fatal(err)
		}
		var sample []string // of a text, in the comment above it
		for _, m := range regexp.MustCompile(`(?m)^#   (.*\{\{.*)$`).FindAllSubmatch(toml, -1) {
			sample = append(sample, string(m[1]))
		}
		w.write("mail/paid.txt", strings.Join(sample, "\n"))
		w.write("mail/paid.html", "<p>{{.Amount}} {{money .Order.RefundedMinor .Order.Currency}} {{line .Order.Customer.Name}}</p>")
		c := w.config()
		if len(c.effects) != 4 || len(sample) != 2 {
			t.Errorf("%d effects, a sample of %d lines", len(c.effects), len(sample))
		}
		if _, err := c.compose(); err == nil || !strings.Contains(err.Error(), "from: ") {
			t.Errorf("compose without MAIL_FROM: %v", err)
		}
		w.env["MAIL_FROM"] = "Shop <shop@example.com>"
		if _, err := w.config().compose(); err != nil {
			t.Errorf("compose: %v", err)
		}
	})
	t.Run("paidonce.example.toml names every operation and alert", func(t *testing.T) {
		words := strings.Fields(string(toml))
		for _, name := range compose.Operations {
			if !slices.Contains(words, name) {
				t.Errorf("%s is missing", name)
			}
		}
		for _, name := range compose.Alerts {
			if !slices.Contains(words, "alert."+name) {
				t.Errorf("alert.%s is missing", name)
			}
		}
	})
}
