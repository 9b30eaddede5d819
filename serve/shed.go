package serve

import (
	"math"
	"time"
)

// shed closes a connection in favour of another: the one that has been longest
// without a whole request head; if there is none, the one that has been longest
// without a request; if there is none, the slowest of those that hold their
// place by being slow. It reports whether there was one.
func (e *engine) shed() bool {
	c, slow := e.victim()
	if c == nil {
		return false
	}
	c.cut(slow)
	if e.parking.end(c) {
		go c.end()
	}
	return true // else its own goroutine ends it
}

// victim picks the connection to close in favour of another, and marks it. One that is younger
// than the clock can tell may have sent a head that is not read yet; one that has been idle
// only as long as Shutdown would wait may be about to send one. Neither is a victim.
func (e *engine) victim() (c *conn, slow bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.clock.now()
	young := now - int64(2*e.clock.tick)
	idle := now - int64(e.limits.grace)
	rate := int64(crowdRate * e.limits.rate)
	var quiet, dragging *conn
	for c := e.first; c != nil; c = c.next { // the list is by age
		s := c.at()
		switch s.phase() {
		case phaseOpening, phaseShaking, phaseHeading:
			if s.since() < young && c.shedFrom(s) {
				return c, false
			}
		case phaseHandling, phaseHanded:
			if r := c.crawl(now); r < rate {
				dragging, rate = c, r
			}
		}
		if at := c.idleSince(s); at < idle {
			quiet, idle = c, at
		}
	}
	switch {
	case quiet != nil:
		if s := quiet.at(); quiet.idleSince(s) == idle && quiet.shedFrom(s) {
			return quiet, false
		}
	case dragging != nil && dragging.shedFrom(dragging.at()):
		return dragging, true
	}
	return nil, false
}

// shedFrom marks c as a victim if it is still in state s.
func (c *conn) shedFrom(s state) bool { return c.alter(s, phaseShed.from(s.since())) }

// idleSince returns since when c, in state s, has had no request, math.MaxInt64 if it
// has.
func (c *conn) idleSince(s state) int64 {
	switch s.phase() {
	case phaseIdle, phaseParked:
		return s.since()
	case phaseHanded:
		return c.streams.idleSince()
	}
	return math.MaxInt64
}

// A connection whose request or answer waits for the client holds its place by
// being slow if, while others wait for one, it moves less than crowdRate times
// Limits.MinRate over glimpseTime.
const (
	crowdRate   = 10
	glimpseTime = time.Second
)

// glimpse is what had gone over a connection at a time.
type glimpse struct {
	at    int64 // by the engine's clock
	bytes uint64
}

// crawl returns the bytes a second that c moves while it waits for its client;
// math.MaxInt64 if it does not wait, or that is not known yet.
func (c *conn) crawl(now int64) int64 {
	was := c.glimpse
	since := time.Duration(now - was.at)
	if !c.waits() {
		c.glimpse = glimpse{}
		return math.MaxInt64
	}
	if since < glimpseTime {
		return math.MaxInt64
	}
	bytes, ok := traffic(c.sight)
	if !ok {
		return math.MaxInt64
	}
	c.glimpse = glimpse{now, bytes}
	if was.at == 0 || since > 3*glimpseTime { // of an earlier crowd
		return math.MaxInt64
	}
	return int64(float64(bytes-was.bytes) / since.Seconds())
}

// waits reports whether c waits for its client in a body or an answer, and the
// handler has set no deadline of its own for that.
func (c *conn) waits() bool {
	if c.at().phase() == phaseHanded {
		return c.streams.waiting()
	}
	return c.in.Waiting() && c.readBy.Load() == 0 || c.out.Waiting() && c.writeBy.Load() == 0
}
