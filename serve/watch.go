package serve

import (
	"context"
	"sync"
)

// watch has r end when the connection's peer goes. With a poller that costs one
// system call a connection, however many requests ask.
func (c *conn) watch(r *requestContext) {
	c.cur.Store(r)
	if c.severed.Load() {
		c.gone()
		return
	}
	if c.e.parking.watch(c) {
		return
	}
	c.peekIf(r)
}

// gone ends the request at hand: the peer has closed or reset the connection.
func (c *conn) gone() {
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
	if r := c.cur.Load(); r != nil && c.peek != nil {
		c.peekAt()
	}
}

// peekIf begins to peek, at once if the request's body is not in the way.
func (c *conn) peekIf(r *requestContext) {
	if c.peek == nil {
		c.peek = &peeker{}
	}
	if c.k.head.Length == 0 {
		c.peekAt()
	}
}

func (c *conn) peekAt() {
	p := c.peek
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended != nil || p.n > 0 || c.k.r < c.k.w {
		return
	}
	p.stopped = false
	p.ended = make(chan struct{})
	go c.peekOn(p.ended)
}

func (c *conn) peekOn(ended chan<- struct{}) {
	p := c.peek
	for {
		n, err := c.nc.Read(p.b[:])
		p.mu.Lock()
		if n == 0 && isTimeout(err) && !p.stopped {
			p.mu.Unlock()
			c.nc.SetReadDeadline(noDeadline) // the sweep's, and outdated
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
	p := c.peek
	if p == nil {
		return
	}
	p.mu.Lock()
	ended := p.ended
	p.stopped = true
	p.mu.Unlock()
	if ended == nil {
		return
	}
	c.nc.SetReadDeadline(longAgo)
	<-ended
	c.nc.SetReadDeadline(noDeadline)
	p.ended = nil
	if p.n > 0 {
		c.space()[0] = p.b[0]
		c.k.w++
		p.n = 0
	}
}
