package transport

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"

	"github.com/tarehq/tare/serve/internal/sys"
)

// socket is a connection's own, which is read and written by system calls that do not tell
// the scheduler: they cannot block. Waiting is the runtime's, as for every net.Conn.
//
// Note: a call that tells it wakes the thread that watches over threads (sysmon), which
// sleeps deeply while nothing runs. At a few thousand requests a second that is twice as
// many switches of threads as the request needs (BenchmarkProxy).
type socket struct {
	c    *conn
	p    []byte // to read into; nil: the connection's buffer
	n    int
	err  error
	step func(fd uintptr) bool // made once
}

func newSocket(c *conn) *socket {
	s := &socket{c: c}
	s.step = s.try
	return s
}

// errFull says that a socket does not take all of a request at once.
var errFull = errors.New("the socket is full")

// receive sends what is unsent and reads into p, waiting for something to come. If p is nil
// it reads into the connection's buffer, which it takes once something has come.
func (c *conn) receive(p []byte) (int, error) {
	s := c.socket
	if s == nil {
		return c.receivePlainly(p)
	}
	for {
		s.p, s.n, s.err = p, 0, nil
		err := c.raw.Read(s.step)
		s.p = nil
		if err != nil {
			return 0, err
		}
		if s.err != errFull {
			return s.n, s.err
		}
		out := c.unsent
		c.unsent = nil
		if _, err := c.nc.Write(out); err != nil {
			return 0, err
		}
	}
}

// try is called before the runtime waits for something to come, and each time it has. What
// came before its first call the runtime may not tell. So a request goes only where nothing
// has come, and then there is nothing to read until the runtime says so.
func (s *socket) try(fd uintptr) bool {
	if len(s.c.unsent) > 0 {
		early := sys.Readable(fd)
		if early && s.c.reused {
			s.err = errStale
			return true
		}
		if s.err = s.send(fd); s.err != nil {
			return true
		}
		if !early {
			s.rest()
			return false
		}
	}
	p := s.p
	if p == nil {
		s.c.takeRoom()
		p = s.c.room
	}
	for {
		n, errno := sys.Read(fd, p)
		switch {
		case errno == syscall.EINTR:
			continue
		case errno == syscall.EAGAIN:
			s.rest()
			return false
		case errno != 0:
			s.err = s.c.failure("read", errno)
		case n == 0:
			s.err = io.EOF
		}
		s.n = n
		return true
	}
}

// rest has the connection wait without a buffer, if it needs none.
func (s *socket) rest() {
	if s.p == nil {
		s.c.release()
	}
}

// send sends what is unsent, as much as the socket takes.
func (s *socket) send(fd uintptr) error {
	c := s.c
	for begun := false; len(c.unsent) > 0; {
		n, errno := sys.Write(fd, c.unsent)
		switch {
		case errno == 0:
			c.unsent, begun = c.unsent[n:], true
		case errno == syscall.EINTR:
		case errno == syscall.EAGAIN:
			return errFull
		case begun:
			return c.failure("write", errno)
		default:
			return errStale
		}
	}
	return nil
}

func (c *conn) failure(call string, errno syscall.Errno) error {
	return &net.OpError{Op: call, Net: "tcp", Source: c.nc.LocalAddr(), Addr: c.nc.RemoteAddr(), Err: os.NewSyscallError(call, errno)}
}
