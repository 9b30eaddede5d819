//go:build !linux

package transport

// socket is for systems whose calls the transport makes itself.
type socket struct{}

func newSocket(*conn) *socket { return nil }

func (c *conn) receive(p []byte) (int, error) { return c.receivePlainly(p) }
