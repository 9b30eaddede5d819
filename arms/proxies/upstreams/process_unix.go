//go:build unix

package upstreams

import "syscall"

// apart has a process be in no group of this one's.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// lives reports whether a process is there.
func lives(pid int) bool { return syscall.Kill(pid, 0) == nil }
