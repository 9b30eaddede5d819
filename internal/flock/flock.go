// Package flock lets one process at a time write to a folder.
package flock

import "errors"

// ErrHeld says that somebody else has the lock.
var ErrHeld = errors.New("another process is writing to this folder")
