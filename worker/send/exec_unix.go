//go:build unix

package send

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup puts the program and its children into a process group of their own.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

// killGroup ends everything in the program's group.
func killGroup(cmd *exec.Cmd) {
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
}

// bySignal reports whether the program was ended, rather than ended by itself.
func bySignal(state *os.ProcessState, _ bool) bool {
	status, ok := state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled()
}
