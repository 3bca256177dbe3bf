package handler

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

func TestASecretNeverPrintsItself(t *testing.T) {
	s := mustSecret(t, ProviderStripe, "whsec_WHMARK")
	type open struct{ Secrets []Secret }
	type closed struct{ secret Secret }
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "secret", s, "in", open{[]Secret{s}})
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "secret", s, "in", open{[]Secret{s}})
	out := log.String()
	for _, v := range []any{s, &s, []Secret{s}, map[string]Secret{"a": s}, open{[]Secret{s}}, &open{[]Secret{s}}, closed{s}, &closed{s}, []closed{{s}}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%c", "%T", "%t", "%b"} {
			out += fmt.Sprintf(verb, v)
		}
	}
	asJSON, err := json.Marshal(map[string]any{"a": s, "b": open{[]Secret{s}}, "c": closed{s}})
	if err != nil {
		t.Fatal(err)
	}
	text, err := s.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	out += string(asJSON) + string(text) + s.String() + s.GoString()
	for _, leak := range []string{"WHMARK", fmt.Sprintf("%x", "WHMARK"), fmt.Sprint([]byte("WHMARK"))[1:19]} {
		if strings.Contains(out, leak) {
			t.Errorf("%q came out", leak)
		}
	}
	if !strings.Contains(out, "[secret]") {
		t.Error("nothing stands for the secret")
	}
}

// TestASecretThatIsNoneIsRefused, so that no signature is ever checked against
// an empty key (cases.md B71, B84).
func TestASecretThatIsNoneIsRefused(t *testing.T) {
	for _, tt := range []struct {
		name, provider, text string
		good                 bool
	}{
		{"empty", ProviderStripe, "", false},
		{"blanks", ProviderStripe, " \t\n", false},
		{"a secret key", ProviderStripe, "sk_test_KEYMARK", false},
		{"a prefix with nothing behind it", ProviderStripe, "whsec_", false},
		{"base64 without its padding", ProviderStandard, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLw", true},
		{"a publishable key", ProviderStripe, "pk_live_KEYMARK", false},
		{"a restricted key with a newline", ProviderStripe, " rk_test_KEYMARK\n", false},
		{"a signing secret", ProviderStripe, "whsec_x", true},
		{"a signing secret with a newline", ProviderStripe, "whsec_x\n", true},
		{"an empty one of GitHub", ProviderGitHub, " ", false},
		{"one of GitHub", ProviderGitHub, githubSecret, true},
		{"an empty hmac", ProviderHMAC, "", false},
		{"an empty standard", ProviderStandard, "", false},
		{"whsec_ alone", ProviderStandard, "whsec_", false},
		{"broken base64", ProviderStandard, "whsec_KEYMARK!", false},
		{"base64 with a blank before it", ProviderStandard, " " + standardSecret, true},
		{"an unknown provider", "paypal", "KEYMARK", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := NewSecret(tt.provider, tt.text)
			if (err == nil) != tt.good || s.empty() == tt.good {
				t.Errorf("NewSecret = %v; want it good: %v", err, tt.good)
			}
			if err != nil && strings.Contains(err.Error(), "KEYMARK") {
				t.Errorf("the error holds the text: %v", err)
			}
		})
	}
}

func TestTokenFile(t *testing.T) {
	quietLog := slog.New(slog.NewTextHandler(io.Discard, nil))
	t.Run("is made for its owner alone and stays", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "paidonce.db.token")
		first, err := LoadToken(path, quietLog)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(string(text)); len(got) != 43 || got != string(first.bytes()) {
			t.Errorf("the file holds %d characters; want the token's 43", len(got))
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v; want 0600", info.Mode().Perm())
		}
		again, err := LoadToken(path, quietLog)
		if err != nil {
			t.Fatal(err)
		}
		if again.sum() != first.sum() {
			t.Error("the second start has another token")
		}
	})
	t.Run("two of them differ", func(t *testing.T) {
		a, errA := LoadToken(filepath.Join(t.TempDir(), "a"), quietLog)
		b, errB := LoadToken(filepath.Join(t.TempDir(), "b"), quietLog)
		if errA != nil || errB != nil || a.sum() == b.sum() {
			t.Errorf("LoadToken = %v, %v, the same: %v", errA, errB, a.sum() == b.sum())
		}
	})
	t.Run("many at once agree", func(t *testing.T) {
		dir := t.TempDir()
		var wg sync.WaitGroup
		var mu sync.Mutex
		sums := map[[32]byte]bool{}
		for range 32 {
			wg.Go(func() {
				s, err := LoadToken(filepath.Join(dir, "token"), quietLog)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				sums[s.sum()] = true
			})
		}
		wg.Wait()
		if len(sums) != 1 {
			t.Errorf("%d tokens; want one", len(sums))
		}
		left, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(left) != 1 {
			t.Errorf("%d files are left; want the token alone", len(left))
		}
	})
	t.Run("one that others can read is used with a warning", func(t *testing.T) {
		if runtime.GOOS == "windows" {
			t.Skip("no such bits")
		}
		path := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(path, []byte(adminToken+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o640); err != nil { // whatever the umask
			t.Fatal(err)
		}
		var log bytes.Buffer
		s, err := LoadToken(path, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		if string(s.bytes()) != adminToken || !strings.Contains(log.String(), "chmod 600") || strings.Contains(log.String(), "TOKMARK") {
			t.Errorf("log %q", log.String())
		}
	})
	t.Run("an empty one is refused by name", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(path, []byte(" \n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadToken(path, quietLog); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("LoadToken = %v; want an error that names the file", err)
		}
	})
	t.Run("a directory that is not there is named", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "no", "token")
		if _, err := LoadToken(path, quietLog); err == nil || !strings.Contains(err.Error(), filepath.Dir(path)) {
			t.Errorf("LoadToken = %v; want an error that names the directory", err)
		}
	})
}

func TestAdminTokenMustFitAHeader(t *testing.T) {
	for _, text := range []string{"", " ", "a b", "a\x00b", "tökén"} {
		if _, err := NewToken(text); err == nil {
			t.Errorf("NewToken took %q", text)
		}
	}
}
