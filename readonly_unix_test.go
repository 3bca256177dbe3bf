//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestAFileThatCannotBeWrittenIsNamedWithTheUser starts serve as a user who is
// not root, on a file and in a directory that are not to be written.
func TestAFileThatCannotBeWrittenIsNamedWithTheUser(t *testing.T) {
	for _, tt := range []struct {
		name  string
		build func(t *testing.T, dir string) (culprit string)
	}{
		{"a read-only directory", func(t *testing.T, dir string) string { return dir }},
		{"a read-only file", func(t *testing.T, dir string) string {
			path := filepath.Join(dir, defaultDB)
			if err := os.WriteFile(path, nil, 0o444); err != nil {
				t.Fatal(err)
			}
			return path
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// Not t.TempDir(): its parents are closed to other users.
			dir, err := os.MkdirTemp("/tmp", "paidonce-test-")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			exe := filepath.Join(dir, "paidonce")
			if err := os.Link(os.Args[0], exe); err != nil {
				copyFile(t, os.Args[0], exe)
			}
			home := filepath.Join(dir, "data")
			if err := os.Mkdir(home, 0o755); err != nil {
				t.Fatal(err)
			}
			culprit := tt.build(t, home)
			for path, mode := range map[string]os.FileMode{dir: 0o755, exe: 0o755, home: 0o555} {
				if err := os.Chmod(path, mode); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.Command(exe, "serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--db", filepath.Join(home, defaultDB))
			cmd.Dir = "/"
			cmd.Env = []string{runMain + "=1", "STRIPE_WEBHOOK_SECRET=" + goodSecret}
			uid := os.Getuid()
			if uid == 0 {
				uid = 65534
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
			}
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			err = cmd.Run()
			if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 1 {
				t.Fatalf("it ended with %v; want exit 1\n%s", err, out.String())
			}
			wantParts(t, "the error", out.String(), culprit, fmt.Sprintf("uid %d", uid), "permission denied")
			if n := strings.Count(strings.TrimSpace(out.String()), "\n"); n != 0 {
				t.Errorf("the error takes %d lines, want one:\n%s", n+1, out.String())
			}
		})
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}
