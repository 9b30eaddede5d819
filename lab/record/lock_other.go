//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package record

import (
	"errors"
	"fmt"
	"runtime"
)

// lock has nothing to offer here: folders cannot be locked.
func lock(string) (unlock func() error, err error) {
	return nil, fmt.Errorf("locking a folder on %s: %w (it takes flock)", runtime.GOOS, errors.ErrUnsupported)
}
