// Package handshake begins TLS on a client's connection.
package handshake

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"time"
)

// ErrHTTP2 says that the server has chosen HTTP/2.
var ErrHTTP2 = errors.New("the server has chosen HTTP/2")

// timeout is how long the handshake may take.
const timeout = 5 * time.Second

// Do begins TLS with the server of a name, which chooses one of the protocols. It closes the
// connection where that fails, or with ErrHTTP2. An error is one of dialling: nothing of a
// request was sent.
func Do(ctx context.Context, nc net.Conn, o *tls.Config, name string, protocols ...string) (*tls.Conn, error) {
	o = o.Clone()
	o.ServerName, o.NextProtos = cmp.Or(o.ServerName, name), protocols
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	c := tls.Client(nc, o)
	if err := c.HandshakeContext(ctx); err != nil {
		nc.Close()
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: nc.RemoteAddr(), Err: err}
	}
	if c.ConnectionState().NegotiatedProtocol == "h2" {
		c.Close()
		return nil, ErrHTTP2
	}
	return c, nil
}

// Holds reports whether an idle connection has read something that nobody has asked for, or has
// ended. It is of no use any more then.
func Holds(c *tls.Conn) bool {
	_ = c.SetReadDeadline(time.Unix(1, 0)) // what was read is there all the same
	_, err := c.Read(make([]byte, 1))
	_ = c.SetReadDeadline(time.Time{})
	return !errors.Is(err, os.ErrDeadlineExceeded)
}

// Settle takes what has come on an idle connection that is of TLS's own, such as tickets, which
// follow the handshake. It reports whether there was nothing else as far as it has read, which
// may be nothing.
func Settle(c *tls.Conn) bool {
	_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := c.Read(make([]byte, 1))
	_ = c.SetReadDeadline(time.Time{})
	return errors.Is(err, os.ErrDeadlineExceeded)
}
