package main

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
)

// readmeCommands are the lines of README's sh blocks.
func readmeCommands(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		lines = append(lines, strings.Split(strings.TrimSpace(block[1]), "\n")...)
	}
	return lines
}

// TestTheREADMEsReceiversAreThoseThatRun: what it shows is a part of the
// programs that worker/send runs.
func TestTheREADMEsReceiversAreThoseThatRun(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for language, file := range map[string]string{"go": "receiver.go", "js": "receiver.mjs"} {
		program, err := os.ReadFile(filepath.Join("testdata", "receivers", file))
		if err != nil {
			t.Fatal(err)
		}
		shown := regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindStringSubmatch(string(text))
		if shown == nil {
			t.Errorf("the README shows no receiver in %s", language)
			continue
		}
		flat := func(s string) string { // whatever it is indented by
			lines := strings.Split(strings.TrimSpace(s), "\n")
			for i, l := range lines {
				lines[i] = strings.TrimSpace(l)
			}
			return strings.Join(lines, "\n")
		}
		if !strings.Contains(flat(string(program)), flat(shown[1])) {
			t.Errorf("the README's receiver in %s is no part of %s", language, file)
		}
	}
}

// TestTheREADMEsEffectsAreServed: serve starts with what it says to write.
func TestTheREADMEsEffectsAreServed(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile("(?s)```toml\n(.*?)```").FindSubmatch(text)
	if shown == nil {
		t.Fatal("the README shows no effects")
	}
	w := newWorld(t)
	w.mailShop()
	w.env["SHOP_HOOK_SECRET"] = effectSecret
	w.write("paidonce.toml", string(shown[1]))
	if targets := w.serve().ready["targets"]; !reflect.DeepEqual(targets, []any{"app", "me", "thanks"}) {
		t.Errorf("targets %v", targets)
	}
}

// TestEveryCommandOfTheREADMEWorks runs the lines of README.md as a newcomer
// would, one after the other, on ports of its own.
func TestEveryCommandOfTheREADMEWorks(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the binary and runs it many times")
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("the README's commands need bash")
	}
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir, bin := t.TempDir(), t.TempDir()
	public, admin := freePort(t), freePort(t)
	env := append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"),
		"PAIDONCE_LISTEN="+public, "PAIDONCE_ADMIN_LISTEN="+admin)
	ran := 0
	for _, line := range readmeCommands(t) {
		line = strings.NewReplacer("127.0.0.1:8080", public, "127.0.0.1:8081", admin).Replace(line)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		cmd := exec.CommandContext(ctx, bash, "-c", "set -eu; "+line)
		cmd.Dir, cmd.Env = dir, env
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		switch {
		case line == "go test ./...":
			cancel()
			continue // this is it
		case strings.HasPrefix(line, "go "):
			cmd.Dir = root
			cmd.Args[2] = strings.Replace(cmd.Args[2], "-o paidonce", "-o "+filepath.Join(bin, "paidonce"), 1)
		case strings.HasPrefix(line, "export "):
			env = append(env, strings.TrimPrefix(line, "export "))
			cancel()
			continue
		case line == "paidonce serve":
			cmd.Args[2] = "exec paidonce serve"
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = cmd.Process.Signal(os.Interrupt)
				_ = cmd.Wait()
				cancel()
				if t.Failed() {
					t.Logf("serve said:\n%s", out.String())
				}
			})
			waitFor(t, "http://"+public+"/healthz")
			ran++
			continue
		case strings.HasPrefix(line, "curl "):
			if _, err := exec.LookPath("curl"); err != nil {
				t.Logf("no curl: not run: %s", line)
				cancel()
				continue
			}
			cmd.Args[2] = strings.Replace(cmd.Args[2], "curl ", "curl --fail ", 1)
		}
		if err := cmd.Run(); err != nil {
			t.Errorf("%s: %v\n%s", line, err, out.String())
		}
		ran++
		cancel()
	}
	if ran < 10 {
		t.Errorf("%d commands were run: the README's blocks are not found", ran)
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// waitFor waits until url answers 200.
func waitFor(t *testing.T, url string) {
	t.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		resp, err := http.Get(url)
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("%s does not answer: %v", url, err)
		}
	}
}
