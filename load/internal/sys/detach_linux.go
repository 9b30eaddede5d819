package sys

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// Detach takes nc's socket out of the runtime's poller, which would wake up with each
// answer, and closes nc. The socket is non-blocking, and the caller's to close.
func Detach(nc net.Conn) (fd int, err error) {
	defer nc.Close()
	s, ok := nc.(syscall.Conn)
	if !ok {
		return -1, fmt.Errorf("detaching a socket: %T has none: %w", nc, errors.ErrUnsupported)
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return -1, err
	}
	var refused error
	err = raw.Control(func(own uintptr) { fd, refused = unix.FcntlInt(own, unix.F_DUPFD_CLOEXEC, 0) })
	if err = cmp.Or(err, refused); err != nil {
		return -1, err
	}
	return fd, nil
}
