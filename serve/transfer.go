package serve

import (
	"errors"
	"net"
	"os"
	"time"
)

// space returns room to read into. The buffer doubles as it fills, but for a
// head to no more than that may take: a slow client holds on to it.
func (c *conn) space() []byte {
	const least = bufSize / 4
	k := c.k
	if k.r == k.w {
		k.r, k.w = k.pin, k.pin
	}
	if k.w == 0 && len(k.buf) < int(c.room) {
		k.buf = make([]byte, c.room)
	}
	if len(k.buf)-k.w >= least {
		return k.buf[k.w:]
	}
	most := c.e.limits.headerBytes + bufSize
	free := k.r - k.pin
	if free >= len(k.buf)/2 || free >= least && len(k.buf) >= most {
		k.w = k.pin + copy(k.buf[k.pin:], k.buf[k.r:k.w])
		k.r = k.pin
		return k.buf[k.w:]
	}
	// What is pinned stays in the old memory, for those who hold it.
	size := 2 * len(k.buf)
	if len(k.buf) < most {
		size = min(size, most)
	}
	grown := make([]byte, size)
	k.w = copy(grown, k.buf[k.r:k.w])
	k.r, k.pin, k.buf = 0, 0, grown
	return k.buf[k.w:]
}

// more reads more of a body into the buffer.
func (c *conn) more() error {
	n, err := c.readConn(c.space())
	c.k.w += n
	if n > 0 {
		return nil
	}
	return err
}

// read reads of a body of which left bytes are to come: those in the buffer first. What asks
// for little, as io.ReadAll does, gets it out of the buffer, not by system calls.
func (c *conn) read(p []byte, left int64) (int, error) {
	k := c.k
	if k.r == k.w && int64(len(p)) < min(left, bufSize) {
		if err := c.more(); err != nil {
			return 0, err
		}
	}
	if k.r < k.w {
		n := copy(p, k.buf[k.r:k.w])
		k.r += n
		return n, nil
	}
	return c.readConn(p)
}

// readConn reads off the connection while the handler runs.
func (c *conn) readConn(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	c.in.Begin(c.e.clock.now())
	now := c.e.clock.now() // the sweep looks at what waits when its time is up: whoever is later sees it (readUp)
	defer func() { c.in.End(c.e.clock.now(), n, c.e.limits.window) }()
	for {
		if c.dueRead(now) {
			return 0, os.ErrDeadlineExceeded
		}
		n, err = c.nc.Read(p)
		if n > 0 || err == nil || !isTimeout(err) || !c.spuriousRead() {
			return n, err
		}
		now = c.e.clock.now()
	}
}

// spuriousRead reports whether a time-out is the sweep's, and outdated, and has put back the
// deadline that stands then. One that is not the sweep's is somebody's who holds the net.Conn.
func (c *conn) spuriousRead() bool {
	c.gate.Lock()
	defer c.gate.Unlock()
	own := c.readBy.Load()
	if !c.nudged.Load() || own == 0 && c.dueRead(c.e.clock.now()) {
		return false
	}
	c.nudged.Store(false)
	return c.nc.SetReadDeadline(until(own)) == nil
}

// readUntil sets the read deadline in place of whatever there is.
func (c *conn) readUntil(t time.Time) error {
	c.gate.Lock()
	defer c.gate.Unlock()
	c.nudged.Store(false)
	return c.nc.SetReadDeadline(t)
}

// spuriousWrite is spuriousRead for writing.
func (c *conn) spuriousWrite() bool {
	c.gate.Lock()
	defer c.gate.Unlock()
	return c.relentLocked()
}

// relentLocked puts back the write deadline that stands if the sweep has set one in
// another state, or before the handler has set its own, and reports whether it had.
func (c *conn) relentLocked() bool {
	late, own := state(c.late.Load()), c.writeBy.Load()
	if late == 0 || own == 0 && late == c.at() {
		return false
	}
	c.late.Store(0)
	return c.nc.SetWriteDeadline(until(own)) == nil
}

// writeUntil sets the write deadline in place of whatever there is, but not if the connection
// is somebody else's by now.
func (c *conn) writeUntil(t time.Time) {
	c.gate.Lock()
	defer c.gate.Unlock()
	if c.left {
		return
	}
	c.late.Store(0)
	c.nc.SetWriteDeadline(t)
}

func isTimeout(err error) bool {
	t, ok := errors.AsType[net.Error](err)
	return ok && t.Timeout()
}

// put adds to what is to be written, and writes once there is enough.
func (c *conn) put(p []byte) error {
	k := c.k
	if len(k.out)+len(p) <= bufSize {
		k.out = append(k.out, p...)
		return nil
	}
	p = c.together(p)
	if err := c.flush(); err != nil {
		return err
	}
	return c.write(p)
}

// Answers to earlier requests may be held back in buffers.out, to go with that to the
// request at hand. While its handler adds nothing to that they are also the sweep's to
// send, if the handler takes its time. conn.held says how it stands with them.
const (
	notHeld int32 = iota
	held
	taken // by the sweep's goroutine, which has conn.sending locked
)

// release leaves the answers held back to the sweep, until the next reclaim.
func (w *response) release() {
	if w.c.k.before > 0 && !w.done.Load() {
		w.c.holdBack()
	}
}

// holdBack leaves them to the sweep that comes when the request at hand has lasted a tick.
func (c *conn) holdBack() {
	c.held.Store(held)
	c.hasten(c.at().since() + int64(c.e.clock.tick) + 1)
}

// sendHeld sends what is held back, and leaves what the handler has begun. It waits for
// the client, so that the sweep needs a goroutine for it.
func (c *conn) sendHeld() {
	c.sending.Lock()
	defer c.sending.Unlock()
	if !c.held.CompareAndSwap(held, taken) {
		return
	}
	k := c.k
	c.write(k.out[:k.before])
	k.facts.shift(k.before, k.before)
	k.out = k.out[:copy(k.out, k.out[k.before:])]
	k.before = 0
	c.held.Store(notHeld)
}

// reclaim makes buffers.out this goroutine's alone again, once sendHeld is done with it.
func (c *conn) reclaim() {
	if c.held.Load() == notHeld || c.held.CompareAndSwap(held, notHeld) {
		return
	}
	c.sending.Lock()
	defer c.sending.Unlock()
}

// flush writes what is to be written.
func (c *conn) flush() error {
	c.reclaim()
	if len(c.k.out) == 0 {
		return c.torn
	}
	return c.empty()
}

// empty writes buffers.out.
func (c *conn) empty() error {
	err := c.write(c.k.out)
	c.k.out, c.k.before = c.k.out[:0], 0
	return err
}

// sendNow writes s, which must not wait for anything.
func (c *conn) sendNow(s string) error {
	c.reclaim()
	c.k.out = append(c.k.out, s...)
	return c.flush()
}

// write writes all of p, within the limits.
func (c *conn) write(p []byte) error {
	for len(p) > 0 && c.torn == nil {
		n, err := c.transmit(p)
		p = p[n:]
		// TLS is of no more use once a write was cut short.
		if err != nil && (c.tls != nil || !isTimeout(err) || !c.spuriousWrite()) {
			c.fail(err)
		}
	}
	return c.torn
}
