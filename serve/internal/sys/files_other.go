//go:build !unix

package sys

// Descriptors returns how many files the process may open, where nothing says
// so: very many.
func Descriptors() int { return 1 << 20 }

// OutOfDescriptors needs the errors of Unix.
func OutOfDescriptors(error) bool { return false }

// Unblock is for the descriptors of Unix.
func Unblock(uintptr) {}
