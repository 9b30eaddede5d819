// Package ahead gives what was read of a connection too early to who reads on.
package ahead

import (
	"io"
	"net"
)

// Reader reads what was read ahead, then the rest.
type Reader struct {
	ahead []byte
	from  io.Reader
}

// NewReader returns a reader of ahead, which it keeps, and then of from.
func NewReader(ahead []byte, from io.Reader) *Reader { return &Reader{ahead, from} }

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (int, error) {
	if len(r.ahead) == 0 {
		return r.from.Read(p)
	}
	n := copy(p, r.ahead)
	r.ahead = r.ahead[n:]
	return n, nil
}

// Conn is a connection of which something was read ahead.
type Conn struct {
	net.Conn
	from Reader
}

// NewConn returns nc, of which ahead was read.
func NewConn(nc net.Conn, ahead []byte) *Conn { return &Conn{nc, Reader{ahead, nc}} }

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) { return c.from.Read(p) }
