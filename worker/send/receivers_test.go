package send

import (
	"bufio"
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"paidonce/store"
)

// receivers are the examples of the README.
const receivers = "../../testdata/receivers/"

// TestGoReceiver builds the receiver of the README with the library that this
// module has, and sends to it.
func TestGoReceiver(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("there is no go command here")
	}
	dir := t.TempDir()
	copyFile(t, receivers+"receiver.go", filepath.Join(dir, "receiver.go"))
	copyFile(t, "../../go.sum", filepath.Join(dir, "go.sum"))
	const library = "github.com/standard-webhooks/standard-webhooks/libraries"
	version := strings.TrimSpace(command(t, ".", nil, goTool, "list", "-m", "-f", "{{.Version}}", library))
	module := "module receiver\n\ngo 1.26.0\n\nrequire " + library + " " + version + "\n"
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(module), 0o600); err != nil {
		t.Fatal(err)
	}
	offline := []string{"GOPROXY=off", "GOFLAGS=-mod=mod", "GOWORK=off", "CGO_ENABLED=0"}
	command(t, dir, offline, goTool, "build", "-o", "receiver.bin", ".")
	deliver(t, dir, filepath.Join(dir, "receiver.bin"))
}

// TestNodeReceiver runs the other one, with its library from npm.
func TestNodeReceiver(t *testing.T) {
	if testing.Short() {
		t.Skip("installs a package")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no node here")
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip("there is no npm here")
	}
	dir := t.TempDir()
	copyFile(t, receivers+"receiver.mjs", filepath.Join(dir, "receiver.mjs"))
	if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"private":true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	install := exec.CommandContext(ctx, npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "standardwebhooks@1.1.1")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Skipf("npm does not give standardwebhooks 1.1.1: %v\n%.500s", err, out)
	}
	deliver(t, dir, node, "receiver.mjs")
}

// deliver starts a receiver and sends it what it should take, what it should
// know again, and what it should refuse.
func deliver(t *testing.T, dir string, argv ...string) {
	t.Helper()
	url := startReceiver(t, dir, argv...)
	now := time.Now()
	for _, tt := range []struct {
		name   string
		key    string
		secret string
		at     time.Time
		change func(*http.Request)
		path   string
		status int
		seen   int // webhook-ids that it has acted on by then
	}{
		{"a delivery is taken", "po:1/../x", testSecret, now, nil, "/paid", 204, 1},
		{"the same again is taken, and nothing is done twice", "po:1/../x", testSecret, now, nil, "/paid", 204, 1},
		{"a body that was changed is refused", "po:2", testSecret, now, changeBody, "/paid", 401, 1},
		{"an id that was changed is refused", "po:3", testSecret, now, func(r *http.Request) { r.Header.Set("webhook-id", "po:4") }, "/paid", 401, 1},
		{"an old one is refused", "po:5", testSecret, now.Add(-6 * time.Minute), nil, "/paid", 401, 1},
		{"one from the future is refused", "po:6", testSecret, now.Add(6 * time.Minute), nil, "/paid", 401, 1},
		{"one signed with another secret is refused", "po:7", otherSecret, now, nil, "/paid", 401, 1},
		{"one without a signature is refused", "po:8", "", now, nil, "/paid", 401, 1},
		{"one that is too large is refused", "po:9", testSecret, now, nil, "/paid", 400, 1},
		{"another path is not its own", "po:10", testSecret, now, nil, "/", 404, 1},
		{"another delivery is taken", "po:11", testSecret, now, nil, "/paid", 204, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := testClaim()
			c.Key = tt.key
			if tt.status == 400 {
				c.Body = []byte(`"` + strings.Repeat("x", 1<<20) + `"`)
			}
			h := newHTTP(t, HTTPConfig{URL: url + tt.path, Secret: tt.secret, Now: func() time.Time { return tt.at }, Transport: changing{tt.change}})
			if a := h.Send(t.Context(), c); a.Status != tt.status {
				t.Errorf("Send = %+v (%s); want %d", a, a.Body, tt.status)
			}
			entries, err := os.ReadDir(filepath.Join(dir, "seen"))
			if err != nil {
				t.Fatal(err)
			}
			if len(entries) != tt.seen {
				t.Errorf("it has acted on %d ids; want %d", len(entries), tt.seen)
			}
		})
	}
	t.Run("what cannot be stored comes again", func(t *testing.T) {
		if err := os.RemoveAll(filepath.Join(dir, "seen")); err != nil {
			t.Fatal(err)
		}
		h := newHTTP(t, HTTPConfig{URL: url + "/paid", Secret: testSecret, Now: func() time.Time { return now }})
		if a := h.Send(t.Context(), testClaim()); a.Outcome != store.OutcomeAgain || a.Status != 500 {
			t.Errorf("Send = %+v; want again after a 500", a)
		}
	})
	t.Run("without a secret it does not start", func(t *testing.T) {
		cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "SHOP_HOOK_SECRET=", "PORT=0")
		if err := cmd.Run(); err == nil {
			t.Error("it ended well")
		}
	})
}

var otherSecret = "whsec_" + base64.StdEncoding.EncodeToString([]byte("another-secret-of-24-byte"))

// changing stands between the sender and the receiver.
type changing struct{ change func(*http.Request) }

func (c changing) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.change != nil {
		c.change(r)
	}
	return http.DefaultTransport.RoundTrip(r)
}

func changeBody(r *http.Request) {
	body := strings.NewReader(`{"type":"order.paid","data":{}}`)
	r.Body, r.ContentLength = io.NopCloser(body), int64(body.Len())
}

// startReceiver runs a receiver until the test ends, and returns its URL.
func startReceiver(t *testing.T, dir string, argv ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stderr = dir, append(os.Environ(), "SHOP_HOOK_SECRET="+testSecret, "PORT=0"), os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // the end of t.Context kills it
	line, err := bufio.NewReader(out).ReadString('\n')
	address, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err != nil || !ok {
		t.Fatalf("the receiver said %q, %v", line, err)
	}
	return "http://" + address
}

func command(t *testing.T, dir string, environ []string, argv ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), environ...)
	out, err := cmd.Output()
	if err != nil {
		var said []byte
		if failed, ok := err.(*exec.ExitError); ok {
			said = failed.Stderr
		}
		t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, said)
	}
	return string(out)
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
