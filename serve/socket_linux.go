package serve

import (
	"crypto/tls"
	"io"
	"net"
	"os"
	"syscall"

	"github.com/tarehq/tare/serve/internal/sys"
	"github.com/tarehq/tare/serve/internal/wrapped"
)

// socket reads and writes a bare connection by system calls of its own, which
// do not tell the scheduler: they cannot block. Waiting is the runtime's, as for
// every net.Conn.
type socket struct {
	c     *conn
	p     []byte
	n     int
	errno syscall.Errno

	write func(fd uintptr) bool // made once
}

func newSocket() *socket {
	s := &socket{}
	s.write = s.tryWrite
	return s
}

// tryRead reads what has come of a request. While there is nothing, the connection has no
// buffers: of thousands that wait, those that are answered have some.
func (c *conn) tryRead(fd uintptr) bool {
	c.takeBuffers()
	s := c.k.socket
	for p := c.space(); ; {
		s.n, s.errno = sys.Read(fd, p)
		switch {
		case s.errno == syscall.EINTR:
			continue
		case s.errno != syscall.EAGAIN:
			return true
		case c.k.waitsForNothing():
			c.giveBack()
		}
		return false
	}
}

func (s *socket) tryWrite(fd uintptr) bool {
	for {
		n, errno := sys.Write(fd, s.p[s.n:])
		switch errno {
		case 0:
			if s.n += n; s.n == len(s.p) {
				return true
			}
		case syscall.EINTR:
		case syscall.EAGAIN:
			s.c.out.Begin(s.c.e.clock.now())
			return false
		default:
			s.errno = errno
			return true
		}
	}
}

// receive reads what has come into the buffers, waiting for something to come.
func (c *conn) receive() (int, error) {
	if !c.bare {
		return c.nc.Read(c.space())
	}
	if c.try == nil {
		c.try = c.tryRead
	}
	err := c.fd.Read(c.try)
	c.takeBuffers() // if the time was up, or the connection ended
	s := c.k.socket
	switch {
	case err != nil:
		return 0, err
	case s.errno != 0:
		return 0, &net.OpError{Op: "read", Net: "tcp", Source: c.nc.LocalAddr(), Addr: c.nc.RemoteAddr(), Err: os.NewSyscallError("read", s.errno)}
	case s.n == 0:
		return 0, io.EOF
	}
	return s.n, nil
}

// transmit writes p and returns how much of it was taken, which is less than
// all only with an error.
func (c *conn) transmit(p []byte) (int, error) {
	if !c.bare {
		return c.transmitPlainly(p)
	}
	s := c.k.socket
	s.c, s.p, s.n, s.errno = c, p, 0, 0
	err := c.fd.Write(s.write)
	if c.out.Waiting() {
		c.out.End(c.e.clock.now(), s.n, c.e.limits.window)
	}
	if err == nil && s.errno != 0 {
		err = &net.OpError{Op: "write", Net: "tcp", Source: c.nc.LocalAddr(), Addr: c.nc.RemoteAddr(), Err: os.NewSyscallError("write", s.errno)}
	}
	return s.n, err
}

// together writes what waits, and then p, by one call and as much as the socket takes at
// once. It returns what is left of p; of what waits something may be left, too.
func (c *conn) together(p []byte) []byte {
	k, n := c.k, 0
	if c.bare && len(k.out) > 0 && c.torn == nil {
		c.fd.Write(func(fd uintptr) bool {
			n, _ = sys.WriteBoth(fd, k.out, p) // an error comes again
			return true
		})
	}
	waited := min(n, len(k.out))
	k.out, k.before = k.out[:copy(k.out, k.out[waited:])], 0
	return p[n-waited:]
}

// find looks for the connection's socket.
func (c *conn) find() {
	c.fd = wrapped.Socket(c.beneath())
	_, secret := c.nc.(*tls.Conn)
	c.bare = c.fd != nil && !secret
	c.sight = c.fd
}

// look looks for the socket that a listener hides. It is for the connection's own
// goroutine, before it writes: what wraps the socket may wait for the client when it is
// asked for it, or panic. The sweep looks at sight only while an answer waits (Meter.Begin).
func (c *conn) look() {
	defer func() { _ = recover() }() // then nothing is seen of it
	for i, nc := 0, c.beneath(); c.sight == nil && nc != nil && i < wrapped.Layers; i++ {
		nc = wrapped.Conn(nc)
		c.sight = wrapped.Socket(nc)
	}
}

// traffic returns how many bytes have gone over a socket, both ways; false if that is
// not known.
func traffic(raw syscall.RawConn) (bytes uint64, ok bool) {
	if raw == nil {
		return 0, false
	}
	var err error
	if raw.Control(func(fd uintptr) { bytes, err = sys.Moved(fd) }) != nil {
		return 0, false
	}
	return bytes, err == nil
}

// moved reports whether the client has acknowledged enough of an answer since
// it was last asked, or all there is of it, since then it is not the client that
// is waited for. A new window begins then.
func (c *conn) moved(now int64) bool {
	if c.sight == nil {
		return false
	}
	var acked uint64
	var left int
	var err, lerr error
	if c.sight.Control(func(fd uintptr) {
		acked, err = sys.Acked(fd)
		left, lerr = sys.Unacked(fd)
	}) != nil || err != nil || lerr != nil {
		return false
	}
	enough := left == 0 || int64(acked-c.acked) >= max(1, c.e.limits.window.Least)
	c.acked = acked
	if enough {
		c.out.Renew(now)
	}
	return enough
}
