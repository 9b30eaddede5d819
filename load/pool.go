package load

import (
	"slices"
	"sync"

	"github.com/tarehq/tare/load/internal/sys"
)

// http1Pool holds connections between requests, and bounds how many there are. Safe
// for concurrent use.
type http1Pool struct {
	most int // no fewer than requests that are in flight at a time

	mu   sync.Mutex
	idle [][]*http1Conn // by endpoint; last in, first out: few stay warm
	open int            // those that carry a request too
}

func newHTTP1Pool(endpoints, most int) *http1Pool {
	return &http1Pool{most: most, idle: make([][]*http1Conn, endpoints)}
}

// take is a connection to endpoint i for a request that begins now. Nil is leave to
// open one, for which another may have been closed.
func (p *http1Pool) take(i int, alone bool, now int64) *http1Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !alone && len(p.idle[i]) > 0 {
		c := p.pop(i)
		if now-c.begun <= lookAfter || !sys.HungUp(c.Wire.Conn) {
			return c
		}
		c.shut(false)
		p.open--
	}
	if p.open == p.most {
		p.evict()
	}
	p.open++
	return nil
}

// pop takes the connection to endpoint i that was used last.
func (p *http1Pool) pop(i int) *http1Conn {
	n := len(p.idle[i]) - 1
	c := p.idle[i][n]
	p.idle[i][n], p.idle[i] = nil, p.idle[i][:n]
	return c
}

// evict closes the connection to some endpoint that has been idle longest. There is
// one, for fewer requests are in flight than there may be connections.
func (p *http1Pool) evict() {
	for i, idle := range p.idle {
		if len(idle) > 0 {
			idle[0].shut(true)
			p.idle[i] = slices.Delete(idle, 0, 1)
			p.open--
			return
		}
	}
}

// put gives a connection back.
func (p *http1Pool) put(i int, c *http1Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle[i] = append(p.idle[i], c)
}

// leave tells of a connection that is closed, or could not be opened.
func (p *http1Pool) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open--
}

// close closes what is idle: everything when all requests have ended.
func (p *http1Pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.idle {
		for len(p.idle[i]) > 0 {
			p.pop(i).shut(true)
			p.open--
		}
	}
}
