// Package wire counts the bytes of connections.
package wire

import (
	"net"
	"sync/atomic"
)

// Counter is what passed to and from the transport layer. Safe for concurrent use.
type Counter struct{ in, out atomic.Int64 } // bytes not yet taken

// Take is the bytes read and written since the last call. The latter may be
// less than zero, after a write that was cut short.
func (c *Counter) Take() (in, out int64) { return c.in.Swap(0), c.out.Swap(0) }

// Conn is a connection that counts.
type Conn struct {
	net.Conn
	Counter
}

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.in.Add(int64(n))
	return n, err
}

// Write counts p before it writes: in HTTP/2 an answer may come before the call
// that wrote its request returns. What was not written is taken off again.
func (c *Conn) Write(p []byte) (int, error) {
	c.out.Add(int64(len(p)))
	n, err := c.Conn.Write(p)
	c.out.Add(int64(n - len(p)))
	return n, err
}
