//go:build !linux

package sys

// TellsReadable says that Readable does not know.
const TellsReadable = false

// Readable needs ppoll(2) of Linux; elsewhere nothing is known to be readable.
func Readable(uintptr) bool { return false }
