package serve

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tarehq/tare/serve/internal/meter"
)

// asleep makes an engine whose clock only its caller moves.
func asleep(s *Server) *engine {
	s.Limits.MaxConns = -1
	e := newEngine(s)
	e.open = 1 // the first connection starts no clock
	e.wheel.Turn(e.clock.now())
	return e
}

// Idlers makes n parked connections without sockets, and returns what passes a tick of the
// clock by: clients that ask once a minute ask, and then the sweep looks. By walking it looks
// at all, which is the plain way. looks returns at how many it has looked.
func Idlers(n int, walking bool) (pass func(), looks func() int) {
	e := asleep(&Server{})
	conns := make([]*conn, n)
	for i := range conns {
		c := &conn{e: e}
		e.link(c)
		c.begin(phaseIdle)
		c.rename(phaseParked)
		if walking {
			e.wheel.Remove(&c.node)
		}
		conns[i] = c
	}
	looked, next := 0, 0
	asking := max(1, n*int(e.clock.tick)/int(time.Minute))
	return func() {
		now := e.clock.nanos.Add(int64(e.clock.tick))
		for range asking {
			c := conns[next%n]
			c.begin(phaseIdle)
			c.rename(phaseParked)
			next++
		}
		if !walking {
			looked += e.sweep(now, func(*conn, int64) {})
			return
		}
		e.mu.Lock()
		for c := e.first; c != nil; c = c.next {
			c.due(c.at(), now)
			looked++
		}
		e.mu.Unlock()
	}, func() int { return looked }
}

// Horizons has connections without sockets live under random limits, and returns an error if
// something is due of one that the sweep would not look at.
func Horizons(seed uint64, steps int) error {
	rnd := rand.New(rand.NewPCG(seed, 1))
	some := func() time.Duration { return time.Duration(rnd.IntN(4)-1) * 700 * time.Millisecond } // none, default, some
	s := &Server{
		ReadTimeout: some(), ReadHeaderTimeout: some(), WriteTimeout: some(), IdleTimeout: some(),
		Limits: Limits{StallTimeout: some(), ShutdownGrace: some(), MinRate: rnd.IntN(3) * 1000},
	}
	e := asleep(s)
	conns := make([]*conn, 20)
	for i := range conns {
		conns[i] = &conn{e: e}
		e.link(conns[i])
	}
	for step := range steps {
		now := e.clock.nanos.Add(int64(e.clock.tick) + rnd.Int64N(int64(e.clock.tick)/8))
		if rnd.IntN(500) == 0 {
			s.muted.Store(!s.muted.Load())
			e.ending.Store(0)
			for _, c := range conns {
				e.wheel.Hasten(&c.node, now)
			}
		}
		for _, c := range conns {
			at := c.at()
			if v := c.due(at, now); v != carryOn && c.node.At() > now {
				return fmt.Errorf("seed %d, step %d: %d is due in phase %d since %d, at %d of a clock that ticks by %v; it is looked at at %d",
					seed, step, v, at.phase(), at.since(), now, e.clock.tick, c.node.At())
			}
		}
		e.sweep(now, func(*conn, int64) {})
		for _, c := range conns {
			if rnd.IntN(8) == 0 {
				c.live(rnd)
			}
		}
	}
	return nil
}

// live does one of the things that a connection may do in its phase.
func (c *conn) live(rnd *rand.Rand) {
	now, w := c.e.clock.now(), c.e.limits.window
	switch c.at().phase() {
	case phaseOpening, phaseIdle:
		switch rnd.IntN(4) {
		case 0:
			c.heading()
		case 1:
			c.rename(phaseParked)
		default:
			c.began.Store(now)
			c.begin(phaseHandling)
		}
	case phaseParked:
		c.rename(phaseIdle)
	case phaseHeading:
		c.begin(phaseHandling)
	case phaseHandling:
		for _, m := range []*meter.Meter{&c.in, &c.out} {
			if m.Waiting() {
				m.End(now, rnd.IntN(2000), w)
			} else if rnd.IntN(2) == 0 {
				m.Begin(now)
			}
		}
		if c.dueRead(now) { // readConn sees it
			c.in.End(now, 0, w)
		}
		switch rnd.IntN(6) {
		case 0:
			c.holdBack()
		case 1:
			c.held.Store(notHeld)
		case 2:
			c.readBy.Store(-1)
		case 3:
			c.writeBy.Store(-1)
		case 4:
			c.answered(now, w)
		}
	}
}

// answered ends a request as settle does.
func (c *conn) answered(now int64, w meter.Window) {
	c.in.End(now, 0, w)
	c.out.End(now, 0, w)
	c.held.Store(notHeld)
	if c.readBy.Swap(0) != 0 || c.writeBy.Swap(0) != 0 {
		c.writeBy.Store(0)
		c.hasten(now)
	}
	c.begin(phaseIdle)
}
