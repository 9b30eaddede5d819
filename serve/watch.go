package serve

import (
	"context"
	"sync"
)

// watch has r end when the connection's peer goes, and reports false if it has
// gone. With a poller that costs one system call a connection, however many
// requests ask. r is not over; the connection may be the handler's by now, and
// then nobody but the handler reads it.
func (c *conn) watch(r *requestContext) bool {
	c.gate.Lock()
	defer c.gate.Unlock()
	if c.left {
		return true
	}
	c.cur.Store(r)
	if c.lost.Load() {
		return false
	}
	if !c.e.parking.watch(c) {
		c.peekIf()
	}
	return true
}

// gone ends the request at hand: the peer has closed or reset the connection, or
// nothing can be read or written on it any more. Who asks only afterwards is told, too.
func (c *conn) gone() {
	c.lost.Store(true)
	if r := c.cur.Load(); r != nil {
		r.end(context.Canceled)
	}
}

// peeker reads a byte ahead in a goroutine of its own, where nothing else tells
// that the peer has gone. What it reads is the next request's.
type peeker struct {
	mu      sync.Mutex
	ended   chan struct{} // nil = not reading
	stopped bool          // the read was told to end
	b       [1]byte
	n       int
}

// bodyRead tells that the request's body has ended: from here on what comes is
// a next request, and may be peeked at.
func (c *conn) bodyRead() {
	c.unread.Store(false)
	p := c.peek.Load()
	if p == nil || c.cur.Load() == nil {
		return
	}
	c.gate.Lock()
	defer c.gate.Unlock()
	if !c.left {
		c.peekAt(p)
	}
}

// peekIf begins to peek, at once if the request's body is not in the way; else
// bodyRead does.
func (c *conn) peekIf() {
	p := c.peek.Load()
	if p == nil {
		p = &peeker{}
		c.peek.Store(p)
	}
	if !c.unread.Load() {
		c.peekAt(p)
	}
}

func (c *conn) peekAt(p *peeker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended != nil || p.n > 0 || c.k.r < c.k.w || c.cur.Load() == nil { // the handler may have returned since
		return
	}
	p.stopped = false
	p.ended = make(chan struct{})
	go c.peekOn(p, p.ended)
}

func (c *conn) peekOn(p *peeker, ended chan<- struct{}) {
	for {
		n, err := c.nc.Read(p.b[:])
		p.mu.Lock()
		if n == 0 && isTimeout(err) && !p.stopped {
			c.nc.SetReadDeadline(noDeadline) // before unpeek sets its own
			p.mu.Unlock()
			continue
		}
		p.n = n
		if err != nil && !p.stopped {
			c.gone()
		}
		p.mu.Unlock()
		close(ended)
		return
	}
}

// unpeek ends peeking, and puts what it read into the buffer.
func (c *conn) unpeek() {
	p := c.peek.Load()
	if p == nil {
		return
	}
	p.mu.Lock()
	ended := p.ended
	p.stopped = true
	if ended != nil {
		c.nc.SetReadDeadline(longAgo)
	}
	p.mu.Unlock()
	if ended == nil {
		return
	}
	<-ended
	c.nc.SetReadDeadline(noDeadline)
	p.ended = nil
	if p.n > 0 {
		c.space()[0] = p.b[0]
		c.k.w++
		p.n = 0
	}
}
