package transport

import (
	"math"
	"time"
)

// Answers' headers have a time, but a deadline on a connection costs two operations on a
// timer for each request, most of which are answered long before. Here a connection notes
// when its answer is due, and one timer of the host looks at all of them when the first of
// those that it has seen is: that is as exact, and at a steady rate a look in each such time.

const (
	never  = math.MaxInt64
	lapsed = -1 // what was due, and its connection is told
)

var epoch = time.Now()

// clock is the time in nanoseconds; it does not go back.
func clock() int64 { return int64(time.Since(epoch)) }

// limit has a connection's reads fail after d, unless its due is taken back before.
func (h *host) limit(c *conn, d time.Duration) {
	due := clock() + max(int64(d), 1)
	c.due.Store(due)
	if due >= h.next.Load() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if due < h.next.Load() {
		h.lookLocked(due)
	}
}

// overdue ends the waits whose time is up.
func (h *host) overdue() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.next.Store(never) // whoever is not seen by this look sees that, and waits for the lock
	now, next := clock(), int64(never)
	for c := range h.conns {
		switch due := c.due.Load(); {
		case due <= 0:
		case due > now:
			next = min(next, due)
		case c.due.CompareAndSwap(due, lapsed):
			_ = c.nc.SetReadDeadline(longAgo) // of a connection that was closed: it has ended
		}
	}
	if next != never {
		h.lookLocked(next)
	}
}

// lookLocked has overdue look then.
func (h *host) lookLocked(at int64) {
	h.next.Store(at)
	d := time.Duration(max(at-clock(), 0))
	if h.watch == nil {
		h.watch = time.AfterFunc(d, h.overdue)
		return
	}
	h.watch.Reset(d)
}
