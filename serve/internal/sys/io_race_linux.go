//go:build race || 386 || arm || mips || mipsle

package sys

import (
	"errors"
	"syscall"
)

// The race detector takes what one goroutine writes to a socket and another
// reads from one for an order between the two, as it is: a test may set a
// variable, send a request and have the handler read it. It is told by package
// syscall, so that under it reading and writing go that way. So they do where package
// syscall does not know the calls of sockets, or has other sizes for them.

// Read is as elsewhere, but waits if the socket has been told to block.
func Read(fd uintptr, p []byte) (int, syscall.Errno) {
	n, err := syscall.Read(int(fd), p)
	return max(n, 0), errnoOf(err)
}

// Write is as elsewhere, but waits where Read does.
func Write(fd uintptr, p []byte) (int, syscall.Errno) {
	n, err := syscall.Write(int(fd), p)
	return max(n, 0), errnoOf(err)
}

// WriteBoth is as elsewhere, but takes two calls.
func WriteBoth(fd uintptr, a, b []byte) (int, syscall.Errno) {
	n, errno := Write(fd, a)
	if errno != 0 || n < len(a) {
		return n, errno
	}
	m, _ := Write(fd, b)
	return n + m, 0
}

func errnoOf(err error) syscall.Errno {
	var errno syscall.Errno
	errors.As(err, &errno)
	return errno
}
