package main

import (
	"encoding/json"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// everyCommand returns the paths of all commands, without the program's name.
func everyCommand(t *testing.T) [][]string {
	t.Helper()
	a := &app{process: process{stdout: io.Discard, stderr: io.Discard}}
	var paths [][]string
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		paths = append(paths, strings.Fields(c.CommandPath())[1:])
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(a.commands())
	return paths
}

func TestEveryCommandExplainsItself(t *testing.T) {
	w := newWorld(t)
	for _, path := range everyCommand(t) {
		t.Run(strings.Join(path, " "), func(t *testing.T) {
			out := w.must(append(slices.Clone(path), "--help")...)
			wantParts(t, "help", out, "Usage:", "Examples:\n  ", "--json")
			if first, _, _ := strings.Cut(out, "\n"); first == "" {
				t.Error("the help begins with nothing")
			}
			for line := range strings.Lines(out) {
				// cobra's own completion help is wider, and not ours.
				if len([]rune(line)) > 140 && path[0] != "completion" {
					t.Errorf("a line of %d characters: %s", len(line), line)
				}
			}
		})
	}
}

func TestAWrongCommandLineExits2AndDoesNothing(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"no command", nil, "name a command: "},
		{"an unknown command", []string{"serv"}, `unknown command "serv", did you mean `},
		{"a group alone", []string{"orders"}, "name a command: accept, ack, add, cancel, checkout"},
		{"an unknown command of a group", []string{"orders", "lst"}, `unknown command "lst", did you mean list?`},
		{"an unknown flag", []string{"stats", "--nope"}, "unknown flag: --nope"},
		{"an unknown short flag", []string{"stats", "-x"}, "unknown shorthand flag: 'x'"},
		{"a flag without its value", []string{"orders", "list", "--status"}, "flag needs an argument"},
		{"a flag of another command", []string{"stats", "--status", "paid"}, "unknown flag: --status"},
		{"a number that is none", []string{"orders", "list", "--limit", "x"}, `invalid argument "x"`},
		{"a limit out of bounds", []string{"orders", "list", "--limit", "201"}, "--limit must be from 1 to 200"},
		{"an argument too many", []string{"stats", "now"}, `unexpected argument "now"`},
		{"an argument too few", []string{"orders", "link", "A1"}, "OBJECT is missing"},
		{"an empty argument", []string{"orders", "show", ""}, "ORDER is empty"},
		{"an empty --db", []string{"stats", "--db", ""}, "--db is empty"},
		{"an unknown status", []string{"orders", "list", "--status", "payed"}, "--status must be one of awaiting_payment, "},
		{"an unknown attention", []string{"orders", "list", "--attention", "none"}, "--attention must be one of any, "},
		{"an unknown verdict", []string{"events", "list", "--verdict", "ok"}, "--verdict must be one of new, "},
		{"an unknown policy", []string{"orders", "edit", "A1", "--policy", "roughly"}, "--policy must be one of exact, "},
		{"help for an unknown command", []string{"help", "orders", "lst"}, `unknown command "orders lst"`},
		{"completion for an unknown shell", []string{"completion", "csh"}, `unknown command "csh"`},
		{"an order without a total", []string{"orders", "add", "--currency", "eur"}, "--total and --currency are needed"},
		{"an order with two totals", []string{"orders", "add", "--total", "1", "--total-minor", "100", "--currency", "eur"}, "give one"},
		{"a decimal comma", []string{"orders", "add", "--total", "1,50", "--currency", "eur"}, "--total: "},
		{"more decimals than the currency has", []string{"orders", "add", "--total", "1.005", "--currency", "eur"}, "--total: "},
		{"a negative total", []string{"orders", "add", "--total", "-1", "--currency", "eur"}, "--total: "},
		{"a total with an exponent", []string{"orders", "add", "--total", "1e2", "--currency", "eur"}, "--total: "},
		{"an empty total", []string{"orders", "add", "--total", "", "--currency", "eur"}, "--total is empty"},
		{"an empty id", []string{"orders", "add", "--id", "", "--total", "1", "--currency", "eur"}, "--id is empty"},
		{"an event of an empty order", []string{"send", "charge.succeeded", "--order="}, "--order is empty"},
		{"an empty address", []string{"serve", "--listen", ""}, "--listen is empty"},
		{"an item without a quantity", []string{"orders", "add", "--total", "1", "--currency", "eur", "--item", "ebook"}, "--item: must be"},
		{"an item with a wrong price", []string{"orders", "add", "--total", "1", "--currency", "eur", "--item", "ebook:1:1.005"}, "--item: its unit price"},
		{"metadata without a value", []string{"orders", "add", "--total", "1", "--currency", "eur", "--meta", "k"}, "--meta must be KEY=VALUE"},
		{"an edit of nothing", []string{"orders", "edit", "A1"}, "nothing to correct"},
		{"an edit that clears something else", []string{"orders", "edit", "A1", "--clear", "total"}, "--clear must be"},
		{"an edit that contradicts itself", []string{"orders", "edit", "A1", "--clear", "items", "--item", "a:1"}, "contradict each other"},
		{"an unknown status of an effect", []string{"effects", "list", "--status", "new"}, "--status must be one of pending, "},
		{"an unknown kind of effect", []string{"effects", "list", "--kind", "sms"}, "--kind must be one of http, "},
		{"an effect without its id", []string{"effects", "show"}, "EFFECT is missing"},
		{"an effect that is resolved as nothing", []string{"effects", "resolve", "1"}, "--outcome is needed"},
		{"an effect that is resolved as something else", []string{"effects", "resolve", "1", "--outcome", "ok"}, "--outcome must be one of done, canceled"},
		{"a refund with a decimal comma", []string{"orders", "refund", "A1", "--amount", "1,50"}, "--amount: "},
		{"a refund for no reason", []string{"orders", "refund", "A1", "--reason", "because"}, "--reason must be one of duplicate, "},
		{"an empty request id", []string{"orders", "refund", "A1", "--request-id", ""}, "--request-id is empty"},
		{"an empty address to come back to", []string{"orders", "checkout", "A1", "--success-url", ""}, "--success-url is empty"},
		{"half a checkout", []string{"orders", "checkout", "A1", "--cancel-url", "https://shop.example"}, "--cancel-url needs --success-url"},
		{"an order with half a checkout", []string{"orders", "add", "--total", "1", "--currency", "eur", "--cancel-url", "https://shop.example"}, "--cancel-url needs --success-url"},
		{"an attention without its word", []string{"orders", "ack", "A1"}, "ATTENTION is missing"},
		{"stock of nothing", []string{"stock", "set", "ebook"}, "NUMBER is missing"},
		{"stock that is no number", []string{"stock", "set", "ebook", "1.5"}, "NUMBER must be a whole number"},
		{"books of no time", []string{"books", "--since", "yesterday"}, "--since must be a time such as "},
		{"books of a time to come", []string{"books", "--until=-3h"}, "--until must be a time such as "},
		{"books that end before they begin", []string{"books", "--since", "2026-02-01", "--until", "2026-01-01"}, "--until must be after --since"},
		{"an unknown event", []string{"send", "payment.paid"}, "is no file, and none of the built-in events"},
		{"no event", []string{"send"}, "TYPE or FILE is missing"},
		{"zero times", []string{"send", "charge.succeeded", "--times", "0"}, "--times must be from 1"},
		{"a setting without a value", []string{"send", "charge.succeeded", "--set", "a.b"}, "--set must be PATH=VALUE"},
		{"a setting with a hole in its path", []string{"send", "charge.succeeded", "--set", "a..b=1"}, "--set must be PATH=VALUE"},
		{"an address that is none", []string{"send", "charge.succeeded", "--url", "shop.example"}, "--url must be"},
		{"an unknown source", []string{"send", "charge.succeeded", "--source", "shop"}, "there is no source of this name"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newShop(t)
			w.must("orders", "add", "--id", "A1", "--total", "1", "--currency", "eur")
			w.env["STRIPE_WEBHOOK_SECRET"] = goodSecret
			before := w.must("orders", "list")
			exit, stdout, stderr := w.run(tt.args...)
			if exit != 2 || stdout != "" {
				t.Errorf("exit %d, stdout %q; want 2 and silence", exit, stdout)
			}
			if strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "paidonce: ") || !strings.Contains(stderr, tt.want) || !strings.Contains(stderr, "--help`") {
				t.Errorf("stderr %q; want one line with %q and where the help is", stderr, tt.want)
			}
			if after := w.must("orders", "list"); after != before {
				t.Errorf("orders were %s and are %s", before, after)
			}
		})
	}
}

func TestWithJSONAnErrorIsJSONOnStderr(t *testing.T) {
	for _, tt := range []struct {
		name       string
		args       []string
		exit       int
		code       string
		wantFields bool
	}{
		{"usage", []string{"orders", "lst", "--json"}, 2, "usage", false},
		{"usage before --json was read", []string{"stats", "--nope", "--json"}, 2, "usage", false},
		{"the configuration", []string{"--json", "stats", "--config", "absent.toml"}, 1, "config", false},
		{"what the store refuses", []string{"orders", "show", "nobody", "--json"}, 1, "not_found", false},
		{"wrong fields", []string{"orders", "add", "--total-minor=-5", "--currency", "xyz", "--json"}, 1, "invalid", true},
		{"a database that is not there", []string{"stats", "--db", "absent.db", "--json"}, 1, "failed", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newShop(t)
			exit, stdout, stderr := w.run(tt.args...)
			if exit != tt.exit || stdout != "" {
				t.Errorf("exit %d, stdout %q; want %d and silence", exit, stdout, tt.exit)
			}
			var got struct {
				Error struct {
					Code, Message string
					Fields        []struct{ Field, Problem string }
				}
			}
			if err := json.Unmarshal([]byte(stderr), &got); err != nil {
				t.Fatalf("%v in %s", err, stderr)
			}
			if got.Error.Code != tt.code || got.Error.Message == "" || (len(got.Error.Fields) > 0) != tt.wantFields {
				t.Errorf("error %+v; want code %s", got.Error, tt.code)
			}
		})
	}
}

func TestFlagsMayStandAnywhere(t *testing.T) {
	w := newShop(t)
	w.must("orders", "add", "--id", "A1", "--total", "1", "--currency", "eur")
	want := w.must("orders", "list", "--status", "awaiting_payment", "--json")
	for _, args := range [][]string{
		{"--json", "orders", "list", "--status", "awaiting_payment"},
		{"orders", "--json", "list", "--status=awaiting_payment"},
		{"--status", "awaiting_payment", "--json", "orders", "list"},
		{"orders", "--status", "awaiting_payment", "list", "--db", "paidonce.db", "--json"},
		{"--db=paidonce.db", "orders", "-v", "list", "--json", "--status", "awaiting_payment"},
	} {
		if got := w.must(args...); got != want {
			t.Errorf("%q prints\n%s\nwant\n%s", args, got, want)
		}
	}
	if exit, _, stderr := w.run("--payload", "events", "show", "evt_1"); exit != 1 || !strings.Contains(stderr, "no event evt_1") {
		t.Errorf("a bare flag before its command: exit %d, %s", exit, stderr)
	}
	if exit, _, stderr := w.run("orders", "show", "--", "--json"); exit != 1 || !strings.Contains(stderr, "--json") {
		t.Errorf("an argument behind --: exit %d, %s", exit, stderr)
	}
	w.must("orders", "add", "--name", "--json", "--id", "A2", "--total", "1", "--currency", "eur")
	if out := w.must("orders", "show", "A2"); !strings.Contains(out, "name       --json") && !strings.Contains(out, "--json\n") {
		t.Errorf("a value that looks like a flag is lost:\n%s", out)
	}
}

func TestACommandWithoutADatabaseSaysHowToMakeOne(t *testing.T) {
	w := newWorld(t)
	exit, _, stderr := w.run("orders", "list")
	if exit != 1 {
		t.Errorf("exit %d; want 1", exit)
	}
	wantParts(t, "stderr", stderr, "paidonce: no database at paidonce.db", "paidonce serve")
	if _, err := os.Stat(defaultDB); err == nil {
		t.Error("a command made a database")
	}
}

func TestForeignTextCannotMoveTheCursor(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"plain Ümläut 日本 €", "plain Ümläut 日本 €"},
		{"\x1b[2Jgone", `\x1b[2Jgone`},
		{"two\nlines", `two\nlines`},
		{"right\u202eleft", `right\u202eleft`},
		{"\u009b31m", `\u009b31m`},
	} {
		if got := clean(tt.in); got != tt.want {
			t.Errorf("clean(%q) = %q; want %q", tt.in, got, tt.want)
		}
	}
}

func TestVersionSaysWhatItIsMadeOf(t *testing.T) {
	w := newWorld(t)
	wantParts(t, "version", w.must("version"), "paidonce  ", "go        go1.", "platform  ")
	var b build
	w.mustJSON(&b, "version")
	if b.Version == "" || !strings.HasPrefix(b.Go, "go1.") {
		t.Errorf("version --json = %+v", b)
	}
}

func TestCompletionKnowsTheCommands(t *testing.T) {
	w := newWorld(t)
	wantParts(t, "completion", w.must("__complete", "orders", ""), "accept\t", "add\t", "list\t")
	wantParts(t, "completion", w.must("__complete", "send", "payment_intent.s"), "payment_intent.succeeded")
	wantParts(t, "completion", w.must("__complete", "orders", "list", "--status", "pa"), "paid", "partially_refunded")
	wantParts(t, "help", w.must("help", "orders", "add"), "Registers an order.", "Examples:")
	wantParts(t, "completion", w.must("__complete", "stats", "--db", ""), "db\n")
	wantParts(t, "the script", w.must("completion", "bash"), "__start_paidonce")
}
