package main

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// fileConfig is the TOML file as written.
type fileConfig struct {
	Source []fileSource `toml:"source"`
	Orders struct {
		Adopt    []string `toml:"adopt"`
		Unlinked *string  `toml:"unlinked"`
	} `toml:"orders"`
	Stock     fileStock    `toml:"stock"`
	Link      []fileLink   `toml:"link"`
	Alerts    fileAlerts   `toml:"alerts"`
	Effect    []fileEffect `toml:"effect"`
	Backup    fileBackup   `toml:"backup"`
	Retention struct {
		PayloadDays *int64 `toml:"payload_days"`
	} `toml:"retention"`
}

type fileSource struct {
	Name            string   `toml:"name"`
	Provider        string   `toml:"provider"`
	Secrets         []string `toml:"secrets"`
	Account         *string  `toml:"account"`
	Foreign         *string  `toml:"foreign"`
	MaxBody         *int64   `toml:"max_body"`
	SignatureHeader *string  `toml:"signature_header"`
	Prefix          *string  `toml:"prefix"`
	Encoding        *string  `toml:"encoding"`
	IDHeader        *string  `toml:"id_header"`
	TimestampHeader *string  `toml:"timestamp_header"`
}

// wants says what kind of value a key takes, for those that take no string.
var wants = map[string]string{
	"source": "a table: write [[source]]", "orders": "a table: write [orders]", "retention": "a table: write [retention]",
	"stock": "a table: write [stock]", "link": "a table: write [[link]]", "low": "a whole number", "quantity": "a whole number",
	"return_on_refund": "true or false",
	"alerts":           "a table: write [alerts]", "effect": "a table: write [[effect]]",
	"on": "a list of strings", "command": "a list of strings",
	"secrets": "a list of strings", "adopt": "a list of strings",
	"max_body": "a whole number", "payload_days": "a whole number",
	"backup": "a table: write [backup]", "keep": "a whole number",
}

// fileChecker gathers what is wrong in a file, by line.
type fileChecker struct {
	configError
	path  string
	lines map[string]int // where a key stands, such as "source.0.name"
}

// wrong adds a problem of the key at path, or of what holds it.
func (f *fileChecker) wrong(path, format string, args ...any) {
	f.add(f.at(path), format, args...)
}

func (f *fileChecker) at(path string) string {
	for {
		if line, ok := f.lines[path]; ok {
			return fmt.Sprintf("%s:%d", f.path, line)
		}
		i := strings.LastIndexByte(path, '.')
		if i < 0 {
			return f.path
		}
		path = path[:i]
	}
}

// parseFile reads the TOML file into c. Every error names file and line; none
// shows a value, which might be a secret that does not belong there.
func (c *config) parseFile(doc []byte) error {
	f := &fileChecker{path: c.file}
	if err := f.index(doc); err != nil {
		return err
	}
	var file fileConfig
	err := toml.NewDecoder(bytes.NewReader(doc)).DisallowUnknownFields().Decode(&file)
	var strict *toml.StrictMissingError
	var broken *toml.DecodeError
	switch {
	case errors.As(err, &strict):
		for _, e := range strict.Errors {
			line, _ := e.Position()
			f.unknown(line, e.Key())
		}
	case errors.As(err, &broken):
		line, _ := broken.Position()
		f.add(fmt.Sprintf("%s:%d", f.path, line), "%s", inWords(broken))
	case err != nil:
		f.add(f.path, "cannot be read")
	}
	if len(f.problems) > 0 {
		return &f.configError
	}
	f.sources(c, file.Source)
	f.orders(c, file)
	f.stock(c, file.Stock)
	f.linksSold(c, file.Link)
	f.alerts(c, file.Alerts)
	f.effects(c, file.Effect)
	f.backup(c, file.Backup)
	return f.orNil()
}

// unknown refuses a key. Its name is shown unless it looks like a secret that
// slipped to the left of the "=".
func (f *fileChecker) unknown(line int, key []string) {
	where := fmt.Sprintf("%s:%d", f.path, line)
	name := key[len(key)-1]
	switch {
	case secretLike(name):
		f.add(where, "unknown key (it looks like a secret)")
	default:
		f.add(where, "unknown key %q", name)
	}
}

// inWords says a decoding error without the names of our types.
func inWords(e *toml.DecodeError) string {
	text := strings.TrimPrefix(e.Error(), "toml: ")
	if !strings.HasPrefix(text, "cannot decode") || len(e.Key()) == 0 {
		return cut(text)
	}
	key := e.Key()[len(e.Key())-1]
	want, ok := wants[key]
	if !ok {
		want = "a string"
	}
	return fmt.Sprintf("%q must be %s", key, want)
}

// index finds out on which line each key stands, and refuses what is no TOML.
// It also refuses keys that only differ in case from ours: the decoder would
// take them.
func (f *fileChecker) index(doc []byte) error {
	f.lines = map[string]int{}
	var p unstable.Parser
	p.Reset(doc)
	arrays := map[string]int{}
	table := ""
	for p.NextExpression() {
		e := p.Expression()
		if e.Kind == unstable.Comment {
			continue
		}
		var parts []string
		line := 0
		for key := e.Key(); key.Next(); {
			part := string(key.Node().Data)
			line = p.Shape(key.Node().Raw).Start.Line
			if part != strings.ToLower(part) {
				f.unknown(line, []string{part})
			}
			parts = append(parts, part)
		}
		path := strings.Join(parts, ".")
		switch e.Kind {
		case unstable.ArrayTable:
			table = path + "." + strconv.Itoa(arrays[path])
			arrays[path]++
			f.lines[table] = line
		case unstable.Table:
			table = path
			f.lines[table] = line
		case unstable.KeyValue:
			if table != "" {
				path = table + "." + path
			}
			f.lines[path] = line
			f.indexList(&p, path, e.Value())
		}
	}
	var broken *unstable.ParserError
	if err := p.Error(); errors.As(err, &broken) {
		line := p.Shape(p.Range(broken.Highlight)).Start.Line
		f.add(fmt.Sprintf("%s:%d", f.path, line), "%s", cut(broken.Message))
	} else if err != nil {
		f.add(f.path, "cannot be read")
	}
	return f.orNil()
}

// indexList finds the lines of a list's elements.
func (f *fileChecker) indexList(p *unstable.Parser, path string, list *unstable.Node) {
	if list.Kind != unstable.Array {
		return
	}
	elements := list.Children()
	for i := 0; elements.Next(); i++ {
		if raw := elements.Node().Raw; raw.Length > 0 {
			f.lines[path+"."+strconv.Itoa(i)] = p.Shape(raw).Start.Line
		}
	}
}

var linkID = regexp.MustCompile(`^plink_[A-Za-z0-9_]+$`)

// orders takes over [orders] and [retention].
func (f *fileChecker) orders(c *config, file fileConfig) {
	for i, id := range file.Orders.Adopt {
		if id != "*" && !linkID.MatchString(id) {
			f.wrong(fmt.Sprintf("orders.adopt.%d", i), `adopt holds ids of Payment Links (plink_…), or "*" alone`)
		}
	}
	c.adopt = file.Orders.Adopt
	if v := file.Orders.Unlinked; v != nil {
		if *v != "watch" && *v != "ignore" {
			f.wrong("orders.unlinked", "unlinked must be watch or ignore")
		}
		c.unlinked = *v
	}
	if v := file.Retention.PayloadDays; v != nil {
		if *v < 1 || *v > 36500 {
			f.wrong("retention.payload_days", "payload_days must be from 1 to 36500")
		}
		c.payloadDays = *v
	}
}
