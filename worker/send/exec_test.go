package send

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"paidonce/store"
)

func newExec(t *testing.T, cfg ExecConfig) *Exec {
	t.Helper()
	x, err := NewExec(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// TestExecGives: the program gets its arguments as they are, the body, and of
// the environment only what is meant for it.
func TestExecGives(t *testing.T) {
	dir := t.TempDir()
	x := newExec(t, ExecConfig{
		Argv: program("echo", "$HOME; rm -rf *", "a b"),
		Dir:  dir,
		Environ: []string{"PATH=/bin", "HOME=/home/shop", "LANG=C.UTF-8", "STRIPE_API_KEY=sk_test_KEYMARK",
			"SMTP_URL=smtp://u:SMTPMARK@h", "PAIDONCE_ADMIN_TOKEN=TOKMARK", "PAIDONCE_KEY=OLDMARK", "SHOP_DIR=/srv/shop", "SHOP_DIR_TOO=MARK"},
		Pass: []string{"SHOP_DIR"},
	})
	c := testClaim()
	a := x.Send(t.Context(), c)
	if a.Outcome != store.OutcomeDone || a.Status != 0 || a.Error != "" {
		t.Fatalf("Send = %+v; want done", a)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(a.Body)), "\n")
	want := []string{
		"body=" + string(c.Body), `args=["$HOME; rm -rf *" "a b"]`, "dir=" + real,
		"PATH=/bin", "HOME=/home/shop", "LANG=C.UTF-8", "SHOP_DIR=/srv/shop",
		"PAIDONCE_KEY=" + c.Key, "PAIDONCE_OPERATION=order.paid", "PAIDONCE_ORDER=ORD-1", "PAIDONCE_ATTEMPT=3",
	}
	lines = slices.DeleteFunc(lines, func(s string) bool { return strings.HasPrefix(s, "PWD=") || strings.HasPrefix(s, "SYSTEMROOT=") })
	slices.Sort(lines)
	slices.Sort(want)
	if !slices.Equal(lines, want) {
		t.Errorf("the program got\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}

func TestExecOutcome(t *testing.T) {
	notExecutable := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(notExecutable, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		argv   []string
		dir    string
		want   store.Outcome
		status int
		says   string
	}{
		{"exit 0 is done", program("exit", "0"), "", store.OutcomeDone, 0, ""},
		{"exit 1 is refused", program("exit", "1"), "", store.OutcomeRefused, 1, "exited with 1"},
		{"exit 64 is refused", program("exit", "64"), "", store.OutcomeRefused, 64, "exited with 64"},
		{"exit 75 may go again", program("exit", "75"), "", store.OutcomeAgain, 75, "exited with 75"},
		{"exit 137 is a code like any other", program("exit", "137"), "", store.OutcomeRefused, 137, "exited with 137"},
		{"ended by a signal it may have done its work", program("die"), "", store.OutcomeUnknown, 0, "killed"},
		{"a file that is not there has not run", []string{"/nowhere/program"}, "", store.OutcomeAgain, 0, "no such program"},
		{"a name that is not in PATH has not run", []string{"no-such-program-here"}, "", store.OutcomeAgain, 0, "in PATH"},
		{"a directory that is not there", program("exit", "0"), "/nowhere", store.OutcomeAgain, 0, "directory"},
		{"a file that may not be executed has not run", []string{notExecutable}, "", store.OutcomeAgain, 0, "may not be executed"},
		{"a directory is not a program", []string{filepath.Dir(notExecutable)}, "", store.OutcomeAgain, 0, "did not start"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := newExec(t, ExecConfig{Argv: tt.argv, Dir: tt.dir}).Send(t.Context(), testClaim())
			if a.Outcome != tt.want || a.Status != tt.status || !strings.Contains(a.Error, tt.says) || (a.Error == "") != (tt.says == "") {
				t.Errorf("Send = %+v; want %s, %d, %q", a, tt.want, tt.status, tt.says)
			}
			if slices.Contains(tt.argv, "exit") && tt.dir == "" {
				if got := string(a.Body); got != "said on output\nsaid on error output\n" {
					t.Errorf("Body = %q; want both outputs", got)
				}
			}
		})
	}
}

// TestExecLargeStreams: a program that does not read its input, or that writes
// without end, neither blocks nor fills the memory.
func TestExecLargeStreams(t *testing.T) {
	c := testClaim()
	c.Body = bytes.Repeat([]byte("y"), 4<<20)
	a := newExec(t, ExecConfig{Argv: program("write", "3000000")}).Send(t.Context(), c)
	if a.Outcome != store.OutcomeDone {
		t.Fatalf("Send = %s %q; want done", a.Outcome, a.Error)
	}
	body := string(a.Body)
	if len(body) > store.MaxAnswerBody || !strings.HasPrefix(body, "BEGINxxx") || !strings.HasSuffix(body, "xxxEND") {
		t.Errorf("Body has %d bytes: %.20q … %q", len(body), body, body[len(body)-20:])
	}
	if want := fmt.Sprintf("\n… %d bytes left out …\n", 3000008-excerptHead-excerptTail); !strings.Contains(body, want) {
		t.Errorf("Body does not say %q", want)
	}
}

func TestExcerpt(t *testing.T) {
	for _, tt := range []struct {
		name  string
		write int
		step  int
		cut   bool
	}{
		{"nothing is nothing", 0, 1, false},
		{"what fits is kept whole", store.MaxAnswerBody, 7, false},
		{"what fits is kept whole, written at once", store.MaxAnswerBody, store.MaxAnswerBody, false},
		{"one byte more is cut", store.MaxAnswerBody + 1, 7, true},
		{"much more is cut", 100_000, 4096, true},
		{"much more is cut, byte by byte", 5000, 1, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			all := make([]byte, tt.write)
			for i := range all {
				all[i] = byte('a' + i%26)
			}
			var x excerpt
			for rest := all; len(rest) > 0; {
				n := min(tt.step, len(rest))
				_, _ = x.Write(rest[:n])
				rest = rest[n:]
			}
			want := all
			if tt.cut {
				want = fmt.Appendf(nil, "%s\n… %d bytes left out …\n%s", all[:excerptHead], tt.write-excerptHead-excerptTail, all[tt.write-excerptTail:])
			}
			if got := x.Bytes(); !bytes.Equal(got, want) || len(got) > store.MaxAnswerBody {
				t.Errorf("%d bytes: %q\nwant %d: %q", len(got), got, len(want), want)
			}
		})
	}
}

// TestExecCut: whoever of the group is left when the time is up is killed, and
// the outcome is what the program itself said, if it said anything.
func TestExecCut(t *testing.T) {
	for _, tt := range []struct {
		name string
		part []string
		want store.Outcome
	}{
		{"a program that hangs may have done its work", []string{"hang"}, store.OutcomeUnknown},
		{"so may one that has closed its output", []string{"closed"}, store.OutcomeUnknown},
		{"its children end with it", []string{"parent", "stays"}, store.OutcomeUnknown},
		{"a child that outlives it ends too, and its exit code counts", []string{"parent", "ends"}, store.OutcomeDone},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			listener, gone := expect(t, stop)
			a := newExec(t, ExecConfig{Argv: program(tt.part[0], append(tt.part[1:], listener)...)}).Send(ctx, testClaim())
			if a.Outcome != tt.want {
				t.Errorf("Send = %+v (%s); want %s", a, a.Body, tt.want)
			}
			if a.Outcome == store.OutcomeUnknown && !strings.Contains(a.Error, "stopping") {
				t.Errorf("Error = %q; want that paidonce is stopping", a.Error)
			}
			<-gone // hangs if it lives on
		})
	}
}

// TestExecTimeLimit: the time limit ends a program like the end of ctx does.
func TestExecTimeLimit(t *testing.T) {
	listener, _ := expect(t, func() {})
	a := newExec(t, ExecConfig{Argv: program("hang", listener), Timeout: 50 * time.Millisecond}).Send(t.Context(), testClaim())
	if a.Outcome != store.OutcomeUnknown || !strings.Contains(a.Error, "had not ended after 50ms") {
		t.Errorf("Send = %+v; want unknown after the time limit", a)
	}
}

// TestExecEscaped: a child that left the group and holds the output does not
// hold up Send.
func TestExecEscaped(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a second")
	}
	ctx, stop := context.WithCancel(t.Context())
	listener, gone := expect(t, stop)
	a := newExec(t, ExecConfig{Argv: program("parent", "escaped", listener)}).Send(ctx, testClaim())
	if a.Outcome != store.OutcomeDone || string(a.Body) != "parent ends\n" {
		t.Errorf("Send = %+v (%s); want done", a, a.Body)
	}
	select {
	case <-gone:
		t.Error("the child was to outlive this, else the test shows nothing")
	default:
	}
}

func TestExecNotStartedWhenStopped(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	a := newExec(t, ExecConfig{Argv: program("exit", "0")}).Send(ctx, testClaim())
	if a.Outcome != store.OutcomeAgain || len(a.Body) != 0 {
		t.Errorf("Send = %+v; want again, without a run", a)
	}
}

func TestExecZeroByte(t *testing.T) {
	c := testClaim()
	c.Order = "ORD\x001"
	if a := newExec(t, ExecConfig{Argv: program("exit", "0")}).Send(t.Context(), c); a.Outcome != store.OutcomeRefused {
		t.Errorf("Send = %+v; want refused", a)
	}
}

func TestNewExecRefuses(t *testing.T) {
	for _, tt := range []struct {
		name string
		cfg  ExecConfig
	}{
		{"no program", ExecConfig{}},
		{"an empty program", ExecConfig{Argv: []string{""}}},
		{"a zero byte in an argument", ExecConfig{Argv: []string{"a", "b\x00"}}},
		{"a variable with its value", ExecConfig{Argv: []string{"a"}, Pass: []string{"A=B"}}},
		{"a variable without a name", ExecConfig{Argv: []string{"a"}, Pass: []string{""}}},
		{"a secret of paidonce", ExecConfig{Argv: []string{"a"}, Pass: []string{"PAIDONCE_ADMIN_TOKEN"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := NewExec(tt.cfg); err == nil {
				t.Error("NewExec accepts it")
			}
		})
	}
}

// expect listens for one child. When it has dialed in, then is called; when it
// is gone, the channel is closed.
func expect(t *testing.T, then func()) (address string, gone <-chan struct{}) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		conn, err := listener.Accept()
		if err != nil {
			return // the test is over
		}
		defer context.AfterFunc(t.Context(), func() { conn.Close() })()
		then()
		_, _ = conn.Read(make([]byte, 1))
	}()
	t.Cleanup(func() { listener.Close() })
	return listener.Addr().String(), over
}
