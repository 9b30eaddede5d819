// Package nonblock has code for package net's connections run on a socket that is neither
// waited for nor watched by the runtime.
package nonblock

import (
	"io"
	"net"
	"os"
	"syscall"
)

// ErrWait tells that nothing has come yet. crypto/tls takes it for a time-out, after which
// reading may go on, within a record too.
var ErrWait net.Error = waitError{}

type waitError struct{}

func (waitError) Error() string   { return "nothing has come yet" }
func (waitError) Timeout() bool   { return true }
func (waitError) Temporary() bool { return true }

// Socket reads and writes without waiting.
type Socket interface {
	Recv(p []byte) (int, syscall.Errno)
	Send(p []byte) (int, syscall.Errno)
}

const (
	// turn is how often a socket is read until the others have their turn.
	turn = 16
	// mostKept bounds the room for what is sent that is kept for later.
	mostKept = 64 << 10
)

// Conn is a connection on a socket. It is for one goroutine, which calls Ready when the
// socket has become readable, and Flush to send what was written.
type Conn struct {
	net.Conn // has the addresses; it is closed
	socket   Socket

	out  []byte // written
	sent int    // of out
	dry  bool   // nothing more has come
	left int    // reads in this turn
	last bool   // the peer sends no more: what is read ends
}

// New is a connection on s with was's addresses. It reads nothing before Ready.
func New(s Socket, was net.Conn) *Conn { return &Conn{Conn: was, socket: s} }

// Ready tells that something may have come; last, that the peer has closed its side.
func (c *Conn) Ready(last bool) {
	c.dry, c.left = false, turn
	c.last = c.last || last
}

// More reports whether reading stopped for the others' sake: the poller is to report the
// socket again.
func (c *Conn) More() bool { return !c.dry && c.left == 0 }

// Read implements net.Conn. It returns ErrWait where a socket's would wait.
func (c *Conn) Read(p []byte) (int, error) {
	for !c.dry && c.left > 0 {
		c.left--
		n, e := c.socket.Recv(p)
		switch {
		case e == syscall.EINTR:
		case e == syscall.EAGAIN:
			c.dry = true
		case e != 0:
			return 0, os.NewSyscallError("read", e)
		case n == 0:
			return 0, io.EOF
		default:
			// What comes after a read that left room is reported, but for the end.
			c.dry = n < len(p) && !c.last
			return n, nil
		}
	}
	return 0, ErrWait
}

// Write implements net.Conn. It keeps p for Flush, and never fails.
func (c *Conn) Write(p []byte) (int, error) {
	c.out = append(c.out, p...)
	return len(p), nil
}

// Unsent is how many bytes are written and not sent.
func (c *Conn) Unsent() int { return len(c.out) - c.sent }

// Drop gives up what is written and not sent.
func (c *Conn) Drop() { c.out, c.sent = nil, 0 }

// Flush sends what was written, as far as the socket takes it.
func (c *Conn) Flush() error {
	for c.sent < len(c.out) {
		n, e := c.socket.Send(c.out[c.sent:])
		switch e {
		case 0:
			c.sent += n
		case syscall.EINTR:
		case syscall.EAGAIN:
			return nil
		default:
			return os.NewSyscallError("write", e)
		}
	}
	if c.out, c.sent = c.out[:0], 0; cap(c.out) > mostKept {
		c.out = nil
	}
	return nil
}
