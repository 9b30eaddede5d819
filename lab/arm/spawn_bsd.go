//go:build unix && !linux

package arm

import (
	"errors"
	"syscall"
)

// childAttr puts a child into a process group. The guard alone ends it when
// tare dies: there is no parent-death signal here.
func childAttr(group int) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pgid: group}
}

// groupLives reports whether a process of the group is left.
func groupLives(group int) bool { return !errors.Is(syscall.Kill(-group, 0), syscall.ESRCH) }
