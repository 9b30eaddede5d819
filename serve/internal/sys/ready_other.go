//go:build !linux

package sys

// Readable needs ppoll(2) of Linux; elsewhere nothing is known to be readable.
func Readable(uintptr) bool { return false }
