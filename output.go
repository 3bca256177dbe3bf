package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"paidonce/store"
)

// report tells err on stderr and returns the exit code that goes with it. args
// is the command line, in case it was refused before --json was understood.
func (a *app) report(args []string, err error) int {
	type failure struct {
		Code    string               `json:"code"`
		Message string               `json:"message"`
		Fields  []store.FieldProblem `json:"fields,omitempty"`
	}
	exit, f := 1, failure{Code: "failed", Message: err.Error()}
	var usage *usageError
	var config *configError
	switch p, ok := store.AsProblem(err); {
	case ok:
		f.Code, f.Fields = string(p.Code), p.Fields
	case errors.As(err, &usage):
		exit, f.Code = 2, "usage"
	case errors.As(err, &config):
		f.Code = "config"
	case errors.Is(err, context.Canceled):
		f.Code, f.Message = "interrupted", "interrupted"
	}
	if a.json || wantsJSON(args) {
		// Nobody is left to tell when stderr is gone.
		_ = printJSON(a.stderr, map[string]failure{"error": f})
		return exit
	}
	for line := range strings.Lines(f.Message) {
		fmt.Fprintf(a.stderr, "paidonce: %s\n", clean(strings.TrimSpace(line)))
	}
	return exit
}

func wantsJSON(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "--json")
}

// printJSON prints v as the API would, indented.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// print prints v where --json asks for it, else what text writes. Nothing
// reaches stdout when text fails.
func (a *app) print(v any, text func(w *bytes.Buffer)) error {
	if a.json {
		return printJSON(a.stdout, v)
	}
	var b bytes.Buffer
	text(&b)
	_, err := a.stdout.Write(b.Bytes())
	return err
}

// hint tells a person something beside the answer, on stderr so that stdout
// holds the answer alone.
func (a *app) hint(format string, args ...any) {
	if !a.json {
		fmt.Fprintf(a.stderr, "paidonce: "+format+"\n", args...)
	}
}

// table prints rows in aligned columns, two spaces apart. A header that begins
// with ">" is one of numbers, set to the right.
type table struct {
	header []string
	rows   [][]string
}

func (t *table) add(cells ...string) {
	for i, c := range cells {
		if cells[i] = clean(c); c == "" {
			cells[i] = "-"
		}
	}
	t.rows = append(t.rows, cells)
}

func (t *table) write(w *bytes.Buffer, indent string) {
	right := make([]bool, len(t.header))
	width := make([]int, len(t.header))
	header := make([]string, len(t.header))
	for i, h := range t.header {
		header[i], right[i] = strings.TrimPrefix(h, ">"), strings.HasPrefix(h, ">")
	}
	lines := append([][]string{header}, t.rows...)
	for _, line := range lines {
		for i, c := range line {
			width[i] = max(width[i], utf8.RuneCountInString(c))
		}
	}
	for _, line := range lines {
		var b strings.Builder
		for i, c := range line {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(c))
			if i > 0 {
				b.WriteString("  ")
			}
			if right[i] {
				b.WriteString(pad + c)
			} else {
				b.WriteString(c + pad)
			}
		}
		fmt.Fprintf(w, "%s%s\n", indent, strings.TrimRight(b.String(), " "))
	}
}

// pairs prints names and values below each other; empty values are left out.
func pairs(w *bytes.Buffer, namesAndValues ...string) {
	width := 0
	for i := 0; i < len(namesAndValues); i += 2 {
		width = max(width, len(namesAndValues[i]))
	}
	for i := 0; i < len(namesAndValues); i += 2 {
		if v := namesAndValues[i+1]; v != "" {
			fmt.Fprintf(w, "%-*s  %s\n", width, namesAndValues[i], clean(v))
		}
	}
}

// clean makes foreign text safe for a terminal: what a sender or a buyer wrote
// must not move the cursor or recolour the screen.
func clean(s string) string {
	unsafe := func(r rune) bool {
		return unicode.IsControl(r) || r == utf8.RuneError || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
	}
	if !strings.ContainsFunc(s, unsafe) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unsafe(r) {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// cut shortens foreign error text to at most 200 characters.
func cut(s string) string {
	const most = 200
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

// clock is how a person reads an instant: to the second, in UTC.
func clock(t store.Time) string {
	if t == 0 {
		return ""
	}
	return t.Std().Format("2006-01-02 15:04:05Z")
}

func count(n int64) string { return strconv.FormatInt(n, 10) }
