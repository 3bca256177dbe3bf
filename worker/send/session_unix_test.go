//go:build unix

package send

import "syscall"

// ownSession lets a child leave the process group of its parent.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
