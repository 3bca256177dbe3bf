package stripefake

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// stripeCodes are the error codes that stripe-go knows.
func stripeCodes(t *testing.T) map[string]bool {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", "github.com/stripe/stripe-go/v82").Output()
	if err != nil {
		t.Fatal(err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(strings.TrimSpace(string(dir)), "error.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	codes := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(v.Names[0].Name, "ErrorCode") && len(v.Values) == 1 {
			if lit, ok := v.Values[0].(*ast.BasicLit); ok {
				code, _ := strconv.Unquote(lit.Value)
				codes[code] = true
			}
		}
		return true
	})
	if !codes["charge_disputed"] {
		t.Fatal("no error code was read")
	}
	return codes
}

// Every code that the fake can answer is one of Stripe's, or is left out.
func TestErrorCodesAreStripes(t *testing.T) {
	codes := stripeCodes(t)
	for own := range ownCodes {
		if codes[own] {
			t.Errorf("%s is Stripe's, and the API leaves it out", own)
		}
		if got := asAPIError(refuse(own, "no")); got.code != "" {
			t.Errorf("the API answers %s", got.code)
		}
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	check := func(n ast.Expr) {
		lit, ok := n.(*ast.BasicLit)
		if !ok {
			return
		}
		code, _ := strconv.Unquote(lit.Value)
		if seen++; code != "" && !codes[code] && !ownCodes[code] {
			t.Errorf("%s is no code of Stripe's", code)
		}
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr: // refuse(code, …) and f.refuse(code, …)
				name := ""
				switch f := n.Fun.(type) {
				case *ast.Ident:
					name = f.Name
				case *ast.SelectorExpr:
					name = f.Sel.Name
				}
				if name == "refuse" && len(n.Args) > 0 {
					check(n.Args[0])
				}
			case *ast.KeyValueExpr: // apiError{code: …}
				if key, ok := n.Key.(*ast.Ident); ok && key.Name == "code" {
					check(n.Value)
				}
			}
			return true
		})
	}
	if seen < 60 {
		t.Errorf("only %d codes were looked at", seen)
	}
}
