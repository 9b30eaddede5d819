//go:build !linux

package serve

import "syscall"

// socket is for systems whose calls the engine makes itself.
type socket struct{}

func newSocket() *socket { return nil }

func (c *conn) receive() (int, error)          { return c.nc.Read(c.space()) }
func (c *conn) transmit(p []byte) (int, error) { return c.transmitPlainly(p) }
func (c *conn) together(p []byte) []byte       { return p }

func (c *conn) find() {}
func (c *conn) look() {}

func traffic(syscall.RawConn) (uint64, bool) { return 0, false }

func (c *conn) moved(int64) bool { return false }
