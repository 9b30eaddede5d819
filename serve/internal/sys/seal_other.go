//go:build !linux || 386 || s390x

package sys

import "errors"

// Seal needs setsockopt(2) of Linux, by a system call of its own.
func Seal(uintptr) error { return errors.ErrUnsupported }

// Duplicate is not asked for where Seal is not to be had.
func Duplicate(uintptr) (int, error) { return -1, errors.ErrUnsupported }

// Unseal is not asked for either.
func Unseal(int) {}
