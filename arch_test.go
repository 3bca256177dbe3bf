package main

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// mayImport are the arrows of the house: which of our packages each may know.
var mayImport = map[string][]string{
	"paidonce": {"paidonce/store", "paidonce/store/payment", "paidonce/worker", "paidonce/handler",
		"paidonce/worker/compose", "paidonce/worker/reconcile", "paidonce/worker/send", "paidonce/worker/stripeapi",
		"paidonce/worker/stripefake"}, // for the demo
	"paidonce/schema":           {},
	"paidonce/store/payment":    {},
	"paidonce/store":            {"paidonce/schema", "paidonce/store/payment"},
	"paidonce/worker":           {"paidonce/store", "paidonce/store/payment"},
	"paidonce/worker/compose":   {"paidonce/store", "paidonce/store/payment"},
	"paidonce/worker/reconcile": {"paidonce/store", "paidonce/store/payment", "paidonce/worker/stripeapi"},
	"paidonce/worker/send":      {"paidonce/store"},
	"paidonce/worker/stripeapi": {"paidonce/store", "paidonce/store/payment"},
	"paidonce/handler":          {"paidonce/store", "paidonce/store/payment"},
}

// onlyStore are the packages by which one reaches the database.
var onlyStore = []string{"database/sql", "database/sql/driver", "modernc.org/sqlite", "github.com/pressly/goose/v3"}

// onlyMain are what only main may call: what a test could not decide elsewhere.
var onlyMain = map[string][]string{
	"time": {"Now", "Since", "Until"},
	"os":   {"Getenv", "LookupEnv", "Environ", "Setenv", "Unsetenv", "ExpandEnv", "Exit"},
	"log":  {"Fatal", "Fatalf", "Fatalln"},
}

// forTests reports whether a package is there for tests and the demo alone.
func forTests(path string) bool {
	return path == "paidonce/store/storetest" || path == "paidonce/worker/stripefake"
}

type listedPackage struct {
	ImportPath string
	Imports    []string
}

// listPackages asks the go command about packages, without their tests.
func listPackages(t *testing.T, args ...string) []listedPackage {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-json=ImportPath,Imports"}, args...)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var list []listedPackage
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listedPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
}

func TestImportsPointOneWay(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range listPackages(t, "-deps", ".") {
		if p.ImportPath != "paidonce" && !strings.HasPrefix(p.ImportPath, "paidonce/") {
			continue
		}
		seen[p.ImportPath] = true
		allowed, known := mayImport[p.ImportPath]
		if !known && !forTests(p.ImportPath) {
			t.Errorf("%s is no room of the house", p.ImportPath)
			continue
		}
		for _, imp := range p.Imports {
			switch {
			case slices.Contains(onlyStore, imp) && p.ImportPath != "paidonce/store":
				t.Errorf("%s imports %s: the database belongs to store alone", p.ImportPath, imp)
			case strings.HasPrefix(imp, "paidonce") && known && !slices.Contains(allowed, imp):
				t.Errorf("%s imports %s", p.ImportPath, imp)
			case imp == "testing":
				t.Errorf("%s imports testing: test code is in the binary", p.ImportPath)
			}
		}
	}
	for path := range mayImport {
		if !seen[path] {
			t.Errorf("main does not use %s", path)
		}
	}
}

// TestTheClockTheEnvironmentAndTheExitAreMains reads the source: a call that
// only runs on a bad day counts too.
func TestTheClockTheEnvironmentAndTheExitAreMains(t *testing.T) {
	files := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if name := d.Name(); name != "." && (strings.HasPrefix(name, ".") || name == "testdata" || forTests("paidonce/"+filepath.ToSlash(path))) {
				return fs.SkipDir
			}
			return nil
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || filepath.Dir(path) == ".":
			return nil
		}
		files++
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, nil, 0)
		if err != nil {
			return err
		}
		for _, use := range forbiddenUses(f) {
			t.Errorf("%s: %s is for main alone", fset.Position(use.Pos()), use.Sel.Name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files == 0 {
		t.Error("no file was read")
	}
}

// forbiddenUses finds the selectors of onlyMain in f, also where they are only
// mentioned and not called.
func forbiddenUses(f *ast.File) []*ast.SelectorExpr {
	names := map[string]string{} // as imported → path
	for _, imp := range f.Imports {
		path, err := strconv.Unquote(imp.Path.Value)
		if err != nil {
			continue
		}
		if _, ok := onlyMain[path]; ok {
			name := path
			if imp.Name != nil {
				name = imp.Name.Name
			}
			names[name] = path
		}
	}
	var found []*ast.SelectorExpr
	ast.Inspect(f, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && slices.Contains(onlyMain[names[x.Name]], sel.Sel.Name) {
				found = append(found, sel)
			}
		}
		return true
	})
	return found
}
