package store

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestLibcIsTheOneThatSQLiteWasTestedWith compares go.mod's pin of
// modernc.org/libc with what modernc.org/sqlite's own go.mod asks for: the
// driver is generated code that fits one libc (its doc.go, "Fragile
// modernc.org/libc dependency"), and goose asks for a newer one.
func TestLibcIsTheOneThatSQLiteWasTestedWith(t *testing.T) {
	list := func(module string) (m struct {
		Version string
		Dir     string
		Replace *struct{ Version string }
	}) {
		out, err := exec.Command("go", "list", "-m", "-json", module).Output()
		if err != nil {
			t.Fatalf("go list -m %s: %v", module, err)
		}
		if err := json.Unmarshal(out, &m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	driver, libc := list("modernc.org/sqlite"), list("modernc.org/libc")
	if driver.Dir == "" {
		t.Skip("module sources are not in the cache (vendored build)")
	}
	mod, err := os.ReadFile(filepath.Join(driver.Dir, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	want := ""
	for line := range strings.Lines(string(mod)) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == "modernc.org/libc" {
			want = f[1]
		}
	}
	have := libc.Version
	if libc.Replace != nil {
		have = libc.Replace.Version
	}
	if want == "" || have != want {
		t.Errorf("sqlite %s wants libc %q, the build has %q: fix the replace line in go.mod", driver.Version, want, have)
	}
}
