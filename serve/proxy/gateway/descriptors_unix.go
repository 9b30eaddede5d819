//go:build unix

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

// keepPrivate has the path of a Unix socket that is about to be listened on be its owner's alone. Linux
// makes the path with the socket's mode.
func keepPrivate(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), 0o600) }) // others have no such mode
}

// sendSockets passes listening sockets on to the process at the other end of a Unix socket,
// and whether the service manager keeps the Unix one among them. They stay open here.
func sendSockets(to net.Conn, sockets []net.Listener, kept bool) error {
	conn, ok := to.(*net.UnixConn)
	if !ok || len(sockets) > mostSockets {
		return fmt.Errorf("%d sockets by %T; want at most %d by a Unix socket", len(sockets), to, mostSockets)
	}
	var fds []int
	defer func() {
		for _, fd := range fds {
			_ = syscall.Close(fd)
		}
	}()
	for _, l := range sockets {
		fd, err := duplicate(l)
		if err != nil {
			return err
		}
		fds = append(fds, fd)
	}
	word := "s"
	if kept {
		word = "k"
	}
	_, _, err := conn.WriteMsgUnix([]byte(word), syscall.UnixRights(fds...), nil)
	return err
}

// duplicate returns a descriptor of a socket's own. Note: File would do, but that the kernel
// has one flag of blocking for all descriptors of a socket, which File.Fd may set.
func duplicate(l net.Listener) (fd int, err error) {
	s, ok := l.(syscall.Conn)
	if !ok {
		return 0, fmt.Errorf("%T shows no descriptor", l)
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return 0, err
	}
	cerr := raw.Control(func(own uintptr) {
		if fd, err = syscall.Dup(int(own)); err == nil {
			syscall.CloseOnExec(fd)
		}
	})
	return fd, errors.Join(cerr, err)
}

// receiveSockets returns what sendSockets has passed on.
func receiveSockets(from net.Conn) (sockets []net.Listener, kept bool, err error) {
	conn, ok := from.(*net.UnixConn)
	if !ok {
		return nil, false, fmt.Errorf("no sockets come by %T", from)
	}
	word, rights := make([]byte, 1), make([]byte, syscall.CmsgSpace(4*mostSockets))
	n, m, _, _, err := conn.ReadMsgUnix(word, rights)
	if err != nil {
		return nil, false, err
	}
	if n != 1 || word[0] != 's' && word[0] != 'k' {
		return nil, false, fmt.Errorf("got %q, want sockets", word[:n])
	}
	messages, err := syscall.ParseSocketControlMessage(rights[:m])
	if err != nil {
		return nil, false, err
	}
	var files []*os.File
	for _, m := range messages {
		fds, err := syscall.ParseUnixRights(&m)
		if err != nil {
			continue // something else about the message
		}
		for _, fd := range fds {
			syscall.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "a socket of the former process"))
		}
	}
	sockets, err = listeners(files)
	return sockets, word[0] == 'k', err
}
