//go:build !unix

package send

import "syscall"

func ownSession() *syscall.SysProcAttr { return nil }
