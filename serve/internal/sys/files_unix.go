//go:build unix

package sys

import (
	"errors"
	"syscall"
)

// Descriptors returns how many files the process may open.
func Descriptors() int {
	var lim syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &lim); err != nil {
		return 1 << 20
	}
	return int(min(lim.Cur, 1<<30))
}

// OutOfDescriptors reports whether err says that there are no more file descriptors.
func OutOfDescriptors(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// Unblock has calls on fd return that cannot be done at once.
func Unblock(fd uintptr) { syscall.SetNonblock(int(fd), true) }
