//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package flock

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Folder takes a folder's exclusive lock. It lies on the folder itself, so it
// leaves no file and ends with the process, however that ends. If it is taken,
// the error wraps [ErrHeld]; where the system has none, errors.ErrUnsupported.
func Folder(dir string) (unlock func() error, err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(d.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err != syscall.EINTR {
			break
		}
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = fmt.Errorf("%s: %w", dir, ErrHeld)
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d.Close, nil
}
