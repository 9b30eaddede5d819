//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package flock

import (
	"errors"
	"fmt"
	"runtime"
)

// Folder has nothing to offer here: folders cannot be locked.
func Folder(string) (unlock func() error, err error) {
	return nil, fmt.Errorf("locking a folder on %s: %w (it takes flock)", runtime.GOOS, errors.ErrUnsupported)
}
