package serve

import (
	"net"
	"reflect"

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

// mostLayers bounds how far what wraps something is gone into: it may wrap itself.
const mostLayers = 8

// innermost returns the listener that others wrap by embedding it.
func innermost(l net.Listener) net.Listener {
	for range mostLayers {
		within, ok := embedded[net.Listener](l)
		if !ok {
			break
		}
		l = within
	}
	return l
}

// embedded returns what outer, a structure or a pointer to one, embeds of a kind. It reads
// nothing else, which may be another goroutine's.
func embedded[T any](outer any) (within T, ok bool) {
	v := reflect.Indirect(reflect.ValueOf(outer))
	if v.Kind() != reflect.Struct {
		return within, false
	}
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.Anonymous && f.IsExported() && f.Type.Implements(reflect.TypeFor[T]()) {
			within, ok = v.Field(i).Interface().(T)
			return within, ok
		}
	}
	return within, false
}
