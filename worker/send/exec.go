package send

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"paidonce/store"
)

const (
	// execTimeout is for one run of a program (design.md §6).
	execTimeout = 60 * time.Second
	// lastWords is how long the output of killed programs is still read: only
	// one that left the process group can still hold it open.
	lastWords = time.Second
	// exTempFail is EX_TEMPFAIL of sysexits.h: try again later.
	exTempFail = 75
)

// ExecConfig is what main decides for one target of kind exec.
type ExecConfig struct {
	// Argv is the program and its arguments, never a shell's text. A program
	// without a slash is looked up in the PATH of paidonce; one with a
	// relative path is found from Dir.
	Argv []string
	// Dir is where it runs; "" is where paidonce runs.
	Dir string
	// Environ is the environment of paidonce, as os.Environ returns it. Of it
	// the program gets what ExecEnvNames and Pass name, and nothing else.
	Environ []string
	// Pass names more variables to hand on. Names that begin with PAIDONCE_
	// are refused.
	Pass []string
	// Timeout is for one run; 0 is 60 s.
	Timeout time.Duration
}

// Exec runs one program per effect. It is safe for concurrent use.
type Exec struct {
	argv    []string
	dir     string
	environ []string
	timeout time.Duration
}

// NewExec returns a sender that runs one program. It does not look whether the
// program is there: it may be put there later.
func NewExec(cfg ExecConfig) (*Exec, error) {
	if len(cfg.Argv) == 0 || cfg.Argv[0] == "" {
		return nil, errors.New("exec effect: no program is named")
	}
	for _, s := range append([]string{cfg.Dir}, cfg.Argv...) {
		if strings.ContainsRune(s, 0) {
			return nil, errors.New("exec effect: program, arguments and directory must not hold a zero byte")
		}
	}
	environ, err := passed(cfg.Environ, cfg.Pass)
	if err != nil {
		return nil, fmt.Errorf("exec effect: %w", err)
	}
	x := &Exec{argv: append([]string(nil), cfg.Argv...), dir: cfg.Dir, environ: environ, timeout: cfg.Timeout}
	if x.timeout <= 0 {
		x.timeout = execTimeout
	}
	return x, nil
}

// Send runs the program with c.Body on its standard input, and PAIDONCE_KEY,
// PAIDONCE_OPERATION, PAIDONCE_ORDER and PAIDONCE_ATTEMPT in its environment:
//
//   - exit 0 is done, 75 (EX_TEMPFAIL) again, any other exit code refused.
//   - a program that cannot be started: again, for nothing has run and the
//     operator can mend it.
//   - ended by a signal, by the time limit or because ctx ended: unknown, for
//     it may have done its work.
//
// The run lasts until the program has ended and nobody holds its output open.
// At the time limit the whole process group is killed; if the program itself
// had ended by then, its exit code counts. So what should live on must have its
// output elsewhere. Outside unix only the program itself is killed.
//
// Output and error output, in the order they came, are the Body, with the
// middle left out where it is long.
func (x *Exec) Send(ctx context.Context, c store.EffectClaim) store.Answer {
	environ := append(x.environ[:len(x.environ):len(x.environ)],
		"PAIDONCE_KEY="+c.Key,
		"PAIDONCE_OPERATION="+c.Operation,
		"PAIDONCE_ORDER="+c.Order,
		"PAIDONCE_ATTEMPT="+strconv.FormatInt(c.Attempt, 10))
	if strings.Contains(c.Key+c.Operation+c.Order, "\x00") {
		return failed(store.OutcomeRefused, "the effect cannot be put into an environment: it holds a zero byte")
	}
	if ctx.Err() != nil {
		return failed(store.OutcomeAgain, "not started, because paidonce is stopping")
	}
	r, err := start(x.argv, x.dir, environ, c.Body)
	if err != nil {
		return failed(store.OutcomeAgain, fmt.Sprintf("%s did not start: %s", x.argv[0], startFailure(err)))
	}
	call, cancel := context.WithTimeout(ctx, x.timeout)
	defer cancel()
	killed := r.wait(call)
	a := x.judge(ctx, r.cmd.ProcessState, killed)
	a.Body = r.output.Bytes()
	return a
}

func (x *Exec) judge(ctx context.Context, state *os.ProcessState, killed bool) store.Answer {
	switch {
	case state == nil:
		return failed(store.OutcomeUnknown, x.argv[0]+" ran, and what became of it could not be learned")
	case bySignal(state, killed) && !killed:
		return failed(store.OutcomeUnknown, fmt.Sprintf("%s ended by %s", x.argv[0], state))
	case bySignal(state, killed) && ctx.Err() != nil:
		return failed(store.OutcomeUnknown, x.argv[0]+" was "+stopping)
	case bySignal(state, killed):
		return failed(store.OutcomeUnknown, fmt.Sprintf("%s had not ended after %s and was killed", x.argv[0], x.timeout))
	}
	a := store.Answer{Status: state.ExitCode()}
	switch a.Status {
	case 0:
		a.Outcome = store.OutcomeDone
		return a
	case exTempFail:
		a.Outcome = store.OutcomeAgain
	default:
		a.Outcome = store.OutcomeRefused
	}
	a.Error = cutText(fmt.Sprintf("%s exited with %d", x.argv[0], a.Status))
	return a
}

// startFailure says why a program did not start.
func startFailure(err error) string {
	var errno syscall.Errno
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "there is no such program in PATH"
	case errors.Is(err, exec.ErrDot):
		return "it is in the current directory, which must be written ./"
	case errors.Is(err, fs.ErrNotExist):
		return "there is no such program or directory"
	case errors.Is(err, fs.ErrPermission):
		return "it may not be executed"
	case errors.As(err, &errno):
		return errno.Error()
	default:
		return "the system refused it"
	}
}

// run is a program that has been started.
type run struct {
	cmd    *exec.Cmd
	stdin  *os.File // our end
	stdout *os.File // our end
	output excerpt
	read   chan struct{} // closed once nobody holds the output open
}

// start starts a program in a process group of its own. The pipes are made here
// and not by os/exec, whose Wait would collect the program, and with it the
// name of the group, before its output has ended.
func start(argv []string, dir string, environ []string, body []byte) (*run, error) {
	theirIn, ourIn, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirIn.Close()
	ourOut, theirOut, err := os.Pipe()
	if err != nil {
		ourIn.Close()
		return nil, err
	}
	defer theirOut.Close()
	r := &run{cmd: exec.Command(argv[0], argv[1:]...), stdin: ourIn, stdout: ourOut, read: make(chan struct{})}
	r.cmd.Dir, r.cmd.Env = dir, environ
	r.cmd.Stdin, r.cmd.Stdout, r.cmd.Stderr = theirIn, theirOut, theirOut
	ownGroup(r.cmd)
	if err := r.cmd.Start(); err != nil {
		ourIn.Close()
		ourOut.Close()
		return nil, err
	}
	go func() { // a program need not read its input
		_, _ = r.stdin.Write(body)
		r.stdin.Close()
	}()
	go func() {
		_, _ = io.Copy(&r.output, r.stdout)
		close(r.read)
	}()
	return r, nil
}

// wait returns when the program has ended and its output too, or has been
// killed because ctx ended. Then the state of r.cmd says how it ended.
//
// The output is waited for first: until Wait the program keeps its number even
// when it has ended, so that the group which is killed is the right one.
func (r *run) wait(ctx context.Context) (killed bool) {
	select {
	case <-r.read:
	case <-ctx.Done():
		killed = true
		killGroup(r.cmd)
	}
	ended := make(chan struct{})
	go func() {
		_ = r.cmd.Wait() // what it says is in the ProcessState
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		if !killed { // it closed its output and runs on
			killed = true
			killGroup(r.cmd)
		}
		<-ended
	}
	if killed {
		select {
		case <-r.read:
		case <-time.After(lastWords):
		}
	}
	r.stdin.Close()
	go r.stdout.Close() // not waited for: outside unix it waits for the reader
	return killed
}
