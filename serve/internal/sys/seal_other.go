//go:build !linux

package sys

import "errors"

// Seal is for Linux alone.
func Seal(uintptr) error { return errors.ErrUnsupported }

// Unseal is for Linux alone.
func Unseal(uintptr) error { return errors.ErrUnsupported }
