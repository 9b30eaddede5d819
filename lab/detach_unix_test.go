//go:build unix

package lab_test

import (
	"os/exec"
	"syscall"
)

// detach has a command run in a session of its own.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
