//go:build !linux

package sys

import "errors"

// HalfOpen needs sock_diag(7) of Linux.
func HalfOpen(uintptr) (bool, error) { return false, errors.ErrUnsupported }
