package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// runMain makes the test binary the program itself, for tests that need a
// process to signal.
const runMain = "PAIDONCE_TEST_RUN_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(runMain) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// child is a serve in a process of its own.
type child struct {
	*exec.Cmd
	public string // HOST:PORT
	log    *bufio.Scanner
	ended  chan error
}

func startChild(t *testing.T) *child {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("there are no such signals on Windows")
	}
	c := &child{Cmd: exec.Command(os.Args[0], "serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"), ended: make(chan error, 1)}
	c.Dir = t.TempDir()
	c.Env = []string{runMain + "=1", "STRIPE_WEBHOOK_SECRET=" + goodSecret}
	stderr, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill() })
	c.log = bufio.NewScanner(stderr)
	var ready struct{ Listen string }
	if err := json.Unmarshal(c.waitForLine(t, "serve: ready"), &ready); err != nil {
		t.Fatal(err)
	}
	c.public = ready.Listen
	return c
}

// waitForLine reads the log up to the line that holds text.
func (c *child) waitForLine(t *testing.T, text string) []byte {
	t.Helper()
	var before strings.Builder
	for c.log.Scan() {
		if strings.Contains(c.log.Text(), text) {
			return c.log.Bytes()
		}
		before.WriteString(c.log.Text() + "\n")
	}
	t.Fatalf("the log ends without %q:\n%s", text, before.String())
	return nil
}

// wait begins to wait for the end of the process, after all of its log.
func (c *child) wait() {
	go func() {
		for c.log.Scan() {
		}
		c.ended <- c.Wait()
	}()
}

func TestTheFirstSignalEndsServeInGoodOrder(t *testing.T) {
	for _, sig := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		t.Run(sig.String(), func(t *testing.T) {
			c := startChild(t)
			if err := c.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			c.waitForLine(t, "serve: stopped")
			c.wait()
			if err := <-c.ended; err != nil {
				t.Errorf("it ended with %v; want exit 0", err)
			}
		})
	}
}

func TestTheSecondSignalEndsServeAtOnce(t *testing.T) {
	c := startChild(t)
	// A sender that never finishes: an orderly end waits for it.
	conn, err := net.Dial("tcp", c.public)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST /webhooks/stripe HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 64)); err != nil { // 100 Continue
		t.Fatal(err)
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	c.waitForLine(t, "serve: stopping")
	c.wait()
	// The handler of signals is taken away just after that line; until then a
	// signal is lost, so they are repeated as an impatient person would.
	impatient := time.NewTicker(20 * time.Millisecond)
	defer impatient.Stop()
	deadline := time.NewTimer(grace / 2)
	defer deadline.Stop()
	for {
		_ = c.Process.Signal(syscall.SIGTERM) // it may have ended
		select {
		case err = <-c.ended:
			if state, ok := c.ProcessState.Sys().(syscall.WaitStatus); !ok || !state.Signaled() || state.Signal() != syscall.SIGTERM {
				t.Errorf("it ended with %v; want an end by the signal", err)
			}
			return
		case <-impatient.C:
		case <-deadline.C:
			t.Fatal("it waits for what is in hand although it was told twice")
		}
	}
}
