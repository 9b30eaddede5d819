package serve

import (
	"github.com/tarehq/tare/serve/internal/sys"
)

// transmitPlainly writes by the net.Conn, in pieces small enough that each is
// progress to go by.
func (c *conn) transmitPlainly(p []byte) (done int, err error) {
	const piece = 16 << 10
	for done < len(p) && err == nil {
		var n int
		c.beginWrite()
		n, err = c.nc.Write(p[done:min(len(p), done+piece)])
		c.out.End(c.e.clock.now(), n, c.e.limits.window)
		done += n
	}
	return done, err
}

// beginWrite notes that a write begins which cannot go on once it was cut short, such
// as by TLS. A write deadline that the sweep has set for something else is taken off
// first; the gate keeps the sweep from setting one when it has seen what was before.
func (c *conn) beginWrite() {
	c.gate.Lock()
	defer c.gate.Unlock()
	c.out.Begin(c.e.clock.now())
	c.relentLocked()
}

// closed reports whether a hook has closed the connection, of which a poller
// tells nothing.
func (c *conn) closed() bool {
	return c.fd != nil && c.fd.Control(func(uintptr) {}) != nil
}

// spoken reports whether something has come that was not read yet. Where the
// processors are busy a client may have kept its time and the server not.
func (c *conn) spoken() (yes bool) {
	if c.fd != nil {
		c.fd.Control(func(fd uintptr) { yes = sys.Readable(fd) })
	}
	return yes
}
