package send

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The programs that TestExec… runs are this test binary, told by its first
// argument what to be.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "child" {
		child(os.Args[2], os.Args[3:])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// program is the argv of a child.
func program(part string, args ...string) []string {
	return append([]string{os.Args[0], "child", part}, args...)
}

func child(part string, args []string) {
	switch part {
	case "echo": // what it was given
		body, _ := io.ReadAll(os.Stdin)
		wd, _ := os.Getwd()
		fmt.Printf("body=%s\nargs=%q\ndir=%s\n%s\n", body, args, wd, strings.Join(os.Environ(), "\n"))
	case "exit": // CODE, without a look at its input
		code, _ := strconv.Atoi(args[0])
		fmt.Println("said on output")
		fmt.Fprintln(os.Stderr, "said on error output")
		os.Exit(code)
	case "write": // more than anyone keeps
		n, _ := strconv.Atoi(args[0])
		w := bufio.NewWriter(os.Stdout)
		fmt.Fprint(w, "BEGIN")
		for range n {
			w.WriteByte('x')
		}
		fmt.Fprint(w, "END")
		w.Flush()
	case "die": // by a signal
		p, _ := os.FindProcess(os.Getpid())
		_ = p.Kill()
		select {}
	case "hang": // ADDRESS: dials in, and stays
		dialIn(args[0])
		hang()
	case "closed": // ADDRESS: closes its output, dials in, and stays
		os.Stdout.Close()
		os.Stderr.Close()
		dialIn(args[0])
		hang()
	case "parent": // HOW ADDRESS: leaves a child that holds the output, and ends or stays
		ours, theirs, _ := os.Pipe()
		cmd := exec.Command(os.Args[0], "child", "orphan", args[1])
		cmd.Stdin, cmd.Stdout, cmd.Stderr = ours, os.Stdout, os.Stderr
		if args[0] == "escaped" {
			cmd.SysProcAttr = ownSession()
		}
		if err := cmd.Start(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		ours.Close()
		if args[0] != "stays" {
			fmt.Println("parent ends")
			os.Exit(0) // theirs is closed by that, which the orphan waits for
		}
		theirs.Close()
		hang()
	case "orphan": // ADDRESS: waits for its parent's end, dials in, and stays
		_, _ = io.Copy(io.Discard, os.Stdin)
		dialIn(args[0])
		hang()
	}
}

// dialed is what a child leaves open: it is closed when the child is gone.
var dialed net.Conn

func dialIn(address string) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	dialed = conn
}

// hang ends by being killed, or with the test that it dialed in to. A polite
// signal does not end it. The minute is for a test that fails.
func hang() {
	signal.Ignore(syscall.SIGTERM, os.Interrupt)
	if dialed == nil {
		<-time.After(time.Minute)
	} else {
		_, _ = dialed.Read(make([]byte, 1))
	}
	os.Exit(0)
}
