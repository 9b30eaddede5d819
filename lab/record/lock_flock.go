//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package record

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lock takes the folder's exclusive lock. It lies on the folder itself, so it
// leaves no file and ends with the process, however that ends.
func lock(dir string) (unlock func() error, err error) {
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
		err = fmt.Errorf("%s: another process is writing this run", dir)
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d.Close, nil
}
