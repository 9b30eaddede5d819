package serve

import (
	"math"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/tarehq/tare/serve/internal/meter"
)

// clock is the coarse time that connections note their beginnings in, so that a request costs
// no reading of the time and no timer. One goroutine advances it while there are connections,
// and ends those that have taken too long.
//
// Note: a deadline set on the connection at each request, as net/http does, costs two timer
// operations a request. Looking at all connections at each tick takes 2 to 6 ms where 50,000
// are idle; the wheel takes 0.003 of that (BenchmarkSweep).
type clock struct {
	nanos atomic.Int64 // since zero, never 0 itself
	date  atomic.Pointer[[]byte]
	zero  time.Time
	sec   int64
	tick  time.Duration // fixed
	stop  chan struct{} // closed to end the goroutine, nil while there is none; guarded by engine.mu
	early chan struct{} // has it look before the next tick
	all   atomic.Bool   // has it look at all connections at the next
}

// now returns the time as of the last tick, in nanoseconds.
func (k *clock) now() int64 { return k.nanos.Load() }

// sure returns the time until which a wait has lasted for certain at now: it may have begun a
// tick later than the clock said then.
func (k *clock) sure(now int64) int64 { return now - int64(k.tick) }

func (k *clock) set(now time.Time) {
	if k.zero.IsZero() {
		k.zero = now.Add(-1)
	}
	k.nanos.Store(int64(now.Sub(k.zero)))
	if sec := now.Unix(); sec != k.sec {
		k.sec = sec
		line := append([]byte("Date: "), now.UTC().Format(http.TimeFormat)+"\r\n"...)
		k.date.Store(&line)
	}
}

// startLocked has the clock go on while there are connections.
func (k *clock) startLocked(e *engine) {
	if k.stop != nil {
		return
	}
	k.stop = make(chan struct{})
	k.set(time.Now())
	e.wheel.Turn(k.now())
	go k.run(e, k.stop)
}

func (k *clock) stopLocked() {
	close(k.stop)
	k.stop = nil
}

func (k *clock) run(e *engine, stop chan struct{}) {
	ticker := time.NewTicker(k.tick)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
		case <-k.early:
		}
		e.mu.Lock()
		if k.stop != stop { // another goroutine may have taken over
			e.mu.Unlock()
			return
		}
		k.set(time.Now())
		now := k.now()
		if k.all.Swap(false) {
			for c := e.first; c != nil; c = c.next {
				e.wheel.Hasten(&c.node, now)
			}
		}
		e.mu.Unlock()
		e.sweep(now, (*conn).rouse)
		e.parking.relieve(now)
	}
}

// sweep looks at the connections of which something may be due, and rouses those of which it is.
// It returns at how many it has looked.
func (e *engine) sweep(now int64, rouse func(*conn, int64)) (looks int) {
	e.wheel.Turn(now)
	for node, c, ok := e.wheel.Next(); ok; node, c, ok = e.wheel.Next() {
		looks++
		next := now + 1
		if c.due(c.at(), now) == carryOn {
			next = max(next, c.horizon(now))
		} else {
			rouse(c, now)
		}
		e.wheel.PutBack(node, next)
		if sooner := c.horizon(now); sooner < next { // what changed before could not hasten it
			e.wheel.Hasten(node, max(sooner, now+1))
		}
	}
	return looks
}

// tick returns how often limits are looked at: an eighth of the shortest, within reason. A
// limit is never applied early, and late by two ticks at most.
func (l *limits) tick() time.Duration {
	tick := 250 * time.Millisecond
	for _, d := range []time.Duration{l.header, l.idle, l.read, l.write, l.stall, l.grace, 8 * parkAfter} {
		if d > 0 {
			tick = min(tick, d/8)
		}
	}
	return max(tick, time.Millisecond)
}

// parkAfter is how long a connection is idle before it gives up its goroutine and its buffers.
const parkAfter = 500 * time.Millisecond

// phase is what a connection is about.
type phase int64

const (
	phaseOpening  phase = iota // no byte yet, but for a TLS handshake
	phaseShaking               // in the TLS handshake
	phaseHeading               // in the head of a request
	phaseHandling              // the handler runs, or the answer is written
	phaseIdle                  // between requests
	phaseParked                // between requests, without a goroutine
	phaseHanded                // another server's
	phaseShed                  // closed in favour of another
	phases
)

// state is a phase and when it began, by the engine's clock, in one word: what another
// goroutine sees of them belongs together.
type state int64

const phaseBits = 3 // which leaves 36 years to the clock

func (p phase) from(since int64) state { return state(since<<phaseBits | int64(p)) }

func (s state) phase() phase { return phase(s & (1<<phaseBits - 1)) }

func (s state) since() int64 { return int64(s >> phaseBits) }

// at returns the connection's state.
func (c *conn) at() state { return state(c.state.Load()) }

// begin notes that a phase begins now. It reports false, and does nothing, if the connection
// has been shed: that is about to be closed, and no request may begin on it.
func (c *conn) begin(p phase) bool { return c.enter(p.from(c.e.clock.now())) }

// rename notes that what has gone on is another phase, as begin does.
func (c *conn) rename(p phase) { c.enter(p.from(c.at().since())) }

func (c *conn) enter(to state) bool {
	for s := c.at(); s.phase() != phaseShed; s = c.at() {
		if c.alter(s, to) {
			c.hasten(to.since() + c.e.lead[to.phase()])
			return true
		}
	}
	return false
}

// hasten has the sweep look at c by then. What makes something due earlier than horizon said
// calls it, as beginning a phase does. Mostly the sweep looks by then anyhow.
func (c *conn) hasten(at int64) {
	if at < c.node.At() {
		c.e.wheel.Hasten(&c.node, at)
	}
}

// alter changes the state if it is still s.
func (c *conn) alter(s, to state) bool { return c.state.CompareAndSwap(int64(s), int64(to)) }

// verdict is what is to become of a connection.
type verdict int

const (
	carryOn    verdict = iota
	park               // it has been idle for a while
	lapse              // its time is up: end it
	lapseRead          // the request's time is up
	lapseWrite         // the answer's time is up
	vanished           // somebody has closed it: its handler is to know
	overtake           // its handler takes its time: send the answers held back
)

// due says what has come of waiting in state s. It may be called from any goroutine, and what
// it says may be outdated at once: see rouse.
func (c *conn) due(s state, now int64) verdict {
	e := c.e
	since := s.since()
	spent := time.Duration(now-since) - e.clock.tick
	switch s.phase() {
	case phaseOpening:
		if !e.s.closed.Load() { // without keep-alives new connections come all the same
			return ended(spent, e.limits.header)
		}
		return e.dueQuiet(now, since, e.limits.header)
	case phaseShaking:
		return c.dueShaking(s, now)
	case phaseHeading:
		if c.out.Waiting() { // an answer before this head has not been taken yet
			if c.out.Stalled(e.clock.sure(now), e.limits.window) && !c.moved(now) {
				return lapseWrite
			}
			return carryOn
		}
		return ended(spent, e.limits.header)
	case phaseParked:
		if e.hooked && c.closed() {
			return lapse
		}
		return e.dueQuiet(now, since, e.limits.idle)
	case phaseIdle:
		if v := e.dueQuiet(now, since, e.limits.idle); v != carryOn {
			return v
		}
		if c.fd != nil && e.parking.able() && spent > parkAfter {
			return park
		}
	case phaseHandling:
		if e.hooked && c.closed() {
			return vanished
		}
		return c.dueHandling(s, now)
	case phaseHanded:
		return c.streams.due(now)
	}
	return carryOn
}

// never is later than anything.
const never = int64(math.MaxInt64 >> phaseBits)

// leads returns for each phase the least time from its beginning to anything that becomes due
// by it, as horizon says it exactly.
func (l *limits) leads() (lead [phases]int64) {
	grace := max(l.grace, 1)
	for p, ends := range [phases][]time.Duration{
		phaseOpening: {l.header, grace}, phaseShaking: {l.header, grace}, phaseHeading: {l.header, l.read},
		phaseHandling: {l.read, l.write}, phaseIdle: {l.idle, grace, parkAfter}, phaseParked: {l.idle}, phaseHanded: {l.stall},
	} {
		lead[p] = never >> 1
		for _, d := range ends {
			if d > 0 {
				lead[p] = min(lead[p], int64(d))
			}
		}
	}
	return lead
}

// horizon returns a time before which due is carryOn, unless a phase begins or something else
// hastens the sweep. What it goes by may change meanwhile: see sweep.
func (c *conn) horizon(now int64) int64 {
	e, l, s := c.e, &c.e.limits, c.at()
	since, at := s.since(), never
	switch s.phase() {
	case phaseOpening, phaseShaking:
		at = e.quietUntil(since, l.header)
	case phaseHeading:
		if !c.out.Waiting() {
			at = e.after(since, l.header)
		}
		at = min(at, c.readUp(now))
	case phaseIdle:
		at = e.quietUntil(since, l.idle)
		if c.fd != nil && e.parking.able() {
			at = min(at, e.after(since, parkAfter))
		}
	case phaseParked:
		at = e.quietUntil(since, l.idle)
		if e.hooked {
			at = min(at, now+hookEvery)
		}
		return at
	case phaseHandling:
		at = c.readUp(now)
		if c.writeBy.Load() == 0 && state(c.late.Load()) != s {
			at = min(at, e.after(since, l.write))
		}
		if c.held.Load() == held {
			at = min(at, since+int64(e.clock.tick)+1)
		}
		if e.hooked {
			at = min(at, now+hookEvery)
		}
	case phaseHanded:
		return c.streams.horizon(now)
	case phaseShed:
		return never
	}
	at = min(at, e.after(now, l.stall)) // a handler's own deadline ends with its request
	if c.readBy.Load() == 0 {
		at = min(at, e.stallsFrom(&c.in, now))
	}
	if c.writeBy.Load() == 0 {
		at = min(at, e.stallsFrom(&c.out, now))
	}
	return at
}

// hookEvery is how often a connection is looked at that a hook may have closed.
const hookEvery = int64(250 * time.Millisecond)

// after returns when a wait since then is over that has a limit, if any.
func (e *engine) after(since int64, limit time.Duration) int64 {
	if limit <= 0 {
		return never
	}
	return since + int64(e.clock.tick+limit) + 1
}

// quietUntil is after where no request has begun. While there are to be no more requests, each
// tick may end the wait.
func (e *engine) quietUntil(since int64, limit time.Duration) int64 {
	if !e.s.keepAlive() {
		return since
	}
	return e.after(since, limit)
}

// readUp is the horizon of the limit on reading a request. Where that is past, and no body is
// waited for, a reader sees for itself.
func (c *conn) readUp(now int64) int64 {
	at := c.e.after(c.began.Load(), c.e.limits.read)
	if c.readBy.Load() != 0 || at <= now && !c.in.Waiting() {
		return never
	}
	return at
}

// stallsFrom is the horizon of a stall.
func (e *engine) stallsFrom(m *meter.Meter, now int64) int64 {
	return min(never, m.StallsFrom(now, e.limits.window)) + int64(e.clock.tick)
}

func ended(spent, limit time.Duration) verdict {
	if limit > 0 && spent > limit {
		return lapse
	}
	return carryOn
}

// dueQuiet is due where no request has begun. When there are to be no more requests, a
// connection is given a last while from that decision on, unless Shutdown has no time for it.
func (e *engine) dueQuiet(now, since int64, limit time.Duration) verdict {
	if e.s.keepAlive() {
		return ended(time.Duration(now-since)-e.clock.tick, limit)
	}
	if e.hurried.Load() {
		return lapse
	}
	e.ending.CompareAndSwap(0, now)
	since = max(since, e.ending.Load())
	return ended(time.Duration(now-since)-e.clock.tick, max(time.Duration(e.grace.Load()), 1))
}

// dueShaking is due in a handshake. While the server is ending, each step is given the last
// while anew, within the time for a head.
func (c *conn) dueShaking(s state, now int64) verdict {
	e := c.e
	since := s.since()
	if !e.s.closed.Load() {
		return ended(time.Duration(now-since)-e.clock.tick, e.limits.header)
	}
	if n, _ := traffic(c.fd); c.shaken.Swap(n) != n {
		c.alter(s, phaseShaking.from(now))
		since = now
	}
	if v := e.dueQuiet(now, since, e.limits.header); v != carryOn {
		return v
	}
	return ended(time.Duration(now-e.ending.Load())-e.clock.tick, e.limits.header)
}

func (c *conn) dueHandling(s state, now int64) verdict {
	switch {
	case c.dueRead(now):
		return lapseRead
	case c.dueWrite(s, now):
		return lapseWrite
	case c.held.Load() == held && time.Duration(now-s.since()) > c.e.clock.tick:
		return overtake
	}
	return carryOn
}

// dueRead reports whether the time for the request's body is up.
func (c *conn) dueRead(now int64) bool {
	l := &c.e.limits
	if c.readBy.Load() != 0 {
		return false
	}
	if l.read > 0 && time.Duration(now-c.began.Load())-c.e.clock.tick > l.read && c.in.Waiting() {
		return true
	}
	return c.in.Stalled(c.e.clock.sure(now), l.window)
}

// dueWrite reports whether the time for the answer is up, if it has not been ended for that
// already.
func (c *conn) dueWrite(s state, now int64) bool {
	l := &c.e.limits
	if c.writeBy.Load() != 0 {
		return false
	}
	if l.write > 0 && time.Duration(now-s.since())-c.e.clock.tick > l.write && state(c.late.Load()) != s {
		return true
	}
	return c.out.Stalled(c.e.clock.sure(now), l.window) && !c.moved(now)
}

// rouse has the connection's goroutine look at what is due. It waits for nothing: all other
// connections wait for the sweep.
//
// The connection may be about its next request before the deadline is set that the last one has
// brought on. That does the next no harm: who reads asks what is due in its own goroutine
// before it gives up (woken, spuriousRead), and who writes gives up only in the state that was
// late, which the next request is not in: the clock stands still during the sweep, so what
// began since is not due (spuriousWrite, beginWrite).
func (c *conn) rouse(now int64) {
	if c.e.parking.lapse(c, now) {
		go c.end() // hooks and the farewell of TLS take their time
		return
	}
	if c.at().phase() == phaseHanded {
		c.streams.lapse(now)
		return
	}
	c.gate.Lock()
	defer c.gate.Unlock()
	s := c.at()
	c.enforceLocked(s, c.due(s, now))
}

// enforceLocked acts on what was due in state s.
func (c *conn) enforceLocked(s state, v verdict) {
	switch {
	case c.left || v == carryOn:
	case v == vanished:
		c.gone()
	case v == overtake:
		go c.sendHeld()
	case v == lapseWrite:
		c.late.Store(int64(s))
		c.nc.SetWriteDeadline(longAgo)
	case s.phase() == phaseShaking:
		c.nudged.Store(true)
		c.nc.SetDeadline(longAgo) // it may be writing its part
	default:
		c.nudged.Store(true)
		c.nc.SetReadDeadline(longAgo)
	}
}

var longAgo = time.Unix(1, 0)
