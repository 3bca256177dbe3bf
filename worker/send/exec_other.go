//go:build !unix

package send

import (
	"os"
	"os/exec"
)

// ownGroup does nothing: there are no process groups of the unix kind.
func ownGroup(*exec.Cmd) {}

// killGroup ends the program, but not its children.
func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

// bySignal reports whether the program was ended, rather than ended by itself.
// 1 is the exit code that Kill gives a program on Windows.
func bySignal(state *os.ProcessState, killed bool) bool {
	return killed && state.ExitCode() == 1
}
