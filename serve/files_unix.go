//go:build unix

package serve

import (
	"errors"
	"syscall"
)

// descriptors returns how many files the process may open.
func descriptors() int {
	var lim syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &lim); err != nil {
		return 1 << 20
	}
	return int(min(lim.Cur, 1<<30))
}

func outOfDescriptors(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}
