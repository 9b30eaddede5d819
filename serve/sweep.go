package serve

import (
	"net/http"
	"sync/atomic"
	"time"
)

// clock is the coarse time that connections note their beginnings in, so that a
// request costs no reading of the time and no timer. One goroutine advances it
// while there are connections, and ends those that have taken too long.
//
// Note: a deadline set on the connection at each request, as net/http does, costs
// two timer operations a request.
type clock struct {
	nanos atomic.Int64 // since zero, never 0 itself
	date  atomic.Pointer[[]byte]
	zero  time.Time
	sec   int64
	tick  time.Duration // fixed
	stop  chan struct{} // closed to end the goroutine, nil while there is none; guarded by engine.mu
}

// now returns the time as of the last tick, in nanoseconds.
func (k *clock) now() int64 { return k.nanos.Load() }

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
	go k.run(e, k.stop)
}

func (k *clock) stopLocked() {
	close(k.stop)
	k.stop = nil
}

func (k *clock) run(e *engine, stop chan struct{}) {
	ticker := time.NewTicker(k.tick)
	defer ticker.Stop()
	var due []*conn
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
		e.mu.Lock()
		if k.stop != stop { // another goroutine may have taken over
			e.mu.Unlock()
			return
		}
		k.set(time.Now())
		now := k.now()
		for c := e.first; c != nil; c = c.next {
			if c.due(now) != carryOn {
				due = append(due, c)
			}
		}
		e.mu.Unlock()
		for i, c := range due {
			c.rouse(now)
			due[i] = nil
		}
		due = due[:0]
	}
}

// tick returns how often limits are looked at: an eighth of the shortest, within
// reason. A limit is never applied early, and late by two ticks at most.
func (l *limits) tick() time.Duration {
	tick := 250 * time.Millisecond
	for _, d := range []time.Duration{l.header, l.idle, l.read, l.write, l.stall, l.grace, 8 * parkAfter} {
		if d > 0 {
			tick = min(tick, d/8)
		}
	}
	return max(tick, time.Millisecond)
}

// parkAfter is how long a connection is idle before it gives up its goroutine
// and its buffers.
const parkAfter = 500 * time.Millisecond

// phase is what a connection is about.
type phase uint32

const (
	phaseOpening  phase = iota // no byte yet, but for a TLS handshake
	phaseShaking               // in the TLS handshake
	phaseHeading               // in the head of a request
	phaseHandling              // the handler runs, or the answer is written
	phaseIdle                  // between requests
	phaseParked                // between requests, without a goroutine
	phaseHanded                // another server's
	phaseShed                  // closed in favour of another
)

// begin notes that a phase begins now.
func (c *conn) begin(p phase) {
	c.since.Store(c.e.clock.now())
	c.phase.Store(uint32(p))
}

// verdict is what is to become of a connection.
type verdict int

const (
	carryOn    verdict = iota
	park               // it has been idle for a while
	lapse              // its time is up: end it
	lapseRead          // the request's time is up
	lapseWrite         // the answer's time is up
	vanished           // somebody has closed it: its handler is to know
)

// due says what has come of waiting. It may be called from any goroutine, and
// what it says may be outdated at once: whoever acts on it asks again in the
// connection's own goroutine.
func (c *conn) due(now int64) verdict {
	e := c.e
	since := c.since.Load()
	spent := time.Duration(now-since) - e.clock.tick
	switch phase(c.phase.Load()) {
	case phaseOpening:
		if !e.s.closed.Load() { // without keep-alives new connections come all the same
			return ended(spent, e.limits.header)
		}
		return e.dueQuiet(now, since, e.limits.header)
	case phaseShaking:
		return c.dueShaking(now, since)
	case phaseHeading:
		if c.out.waiting() { // an answer before this head has not been taken yet
			if c.out.stalled(now, &e.limits) && !c.moved(now) {
				return lapse
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
		if e.parking != nil && c.fd != nil && spent > parkAfter {
			return park
		}
	case phaseHandling:
		if e.hooked && c.closed() {
			return vanished
		}
		return c.dueHandling(now, spent)
	case phaseHanded:
		return c.streams.due(now)
	}
	return carryOn
}

func ended(spent, limit time.Duration) verdict {
	if limit > 0 && spent > limit {
		return lapse
	}
	return carryOn
}

// dueQuiet is due where no request has begun. When there are to be no more
// requests, a connection is given a last while from that decision on.
func (e *engine) dueQuiet(now, since int64, limit time.Duration) verdict {
	if e.s.keepAlive() {
		return ended(time.Duration(now-since)-e.clock.tick, limit)
	}
	e.ending.CompareAndSwap(0, now)
	since = max(since, e.ending.Load())
	return ended(time.Duration(now-since)-e.clock.tick, max(e.limits.grace, 1))
}

// dueShaking is due in a handshake. While the server is ending, each step is given
// the last while anew, within the time for a head.
func (c *conn) dueShaking(now, since int64) verdict {
	e := c.e
	if !e.s.closed.Load() {
		return ended(time.Duration(now-since)-e.clock.tick, e.limits.header)
	}
	if n, _ := c.traffic(); c.shaken.Swap(n) != n {
		c.since.Store(now)
		since = now
	}
	if v := e.dueQuiet(now, since, e.limits.header); v != carryOn {
		return v
	}
	return ended(time.Duration(now-e.ending.Load())-e.clock.tick, e.limits.header)
}

func (c *conn) dueHandling(now int64, spent time.Duration) verdict {
	l := &c.e.limits
	if l.read > 0 && c.readBy.Load() == 0 && time.Duration(now-c.began.Load())-c.e.clock.tick > l.read && c.in.waiting() {
		return lapseRead
	}
	if l.write > 0 && c.writeBy.Load() == 0 && spent > l.write && !c.late.Load() {
		return lapseWrite
	}
	if c.readBy.Load() == 0 && c.in.stalled(now, l) {
		return lapseRead
	}
	if c.writeBy.Load() == 0 && c.out.stalled(now, l) && !c.moved(now) {
		return lapseWrite
	}
	return carryOn
}

// rouse has the connection's goroutine look at what is due. It waits for
// nothing: all other connections wait for the sweep.
func (c *conn) rouse(now int64) {
	if c.e.parking.lapse(c, now) {
		go c.end(http.StateClosed) // hooks and the farewell of TLS take their time
		return
	}
	if phase(c.phase.Load()) == phaseHanded {
		c.streams.lapse(now)
		return
	}
	c.gate.Lock()
	defer c.gate.Unlock()
	switch v := c.due(now); {
	case c.left || v == carryOn:
	case v == vanished:
		c.gone()
	case v == lapseWrite:
		c.late.Store(true)
		c.nc.SetWriteDeadline(longAgo)
	case v == lapse && (c.out.waiting() || phase(c.phase.Load()) == phaseShaking):
		c.stirred.Store(true)
		c.nudged.Store(true)
		c.nc.SetDeadline(longAgo) // it may be writing: an answer, or its part of a handshake
	default:
		c.nudged.Store(true)
		c.nc.SetReadDeadline(longAgo)
	}
}

var longAgo = time.Unix(1, 0)

// meter keeps how long one direction of a connection waits on the client, and
// how many bytes came of it.
type meter struct {
	from  atomic.Int64 // when the wait began, 0 = not waiting
	spent atomic.Int64 // nanoseconds waited before, in this window
	bytes atomic.Int64 // moved in this window
}

func (m *meter) begin(now int64) { m.from.Store(now) }

func (m *meter) waiting() bool { return m.from.Load() != 0 }

// end notes what came of a wait. Once a window is full and enough has come, a
// new one begins.
func (m *meter) end(now int64, n int, l *limits) {
	from := m.from.Swap(0)
	if from == 0 {
		return
	}
	spent := m.spent.Add(now - from)
	bytes := m.bytes.Add(int64(n))
	if l.stall > 0 && time.Duration(spent) >= l.stall && bytes >= l.least() {
		m.spent.Store(0)
		m.bytes.Store(0)
	}
}

// stalled reports whether the wait of now has filled a window with too little.
// If it has filled one in which enough came before, the next begins.
func (m *meter) stalled(now int64, l *limits) bool {
	from := m.from.Load()
	if from == 0 || l.stall == 0 || time.Duration(m.spent.Load()+now-from) <= l.stall {
		return false
	}
	if m.bytes.Load() < max(1, l.least()) {
		return true
	}
	m.renew(now)
	return false
}

// renew begins a window, unless the wait has ended by now.
func (m *meter) renew(now int64) {
	from := m.from.Load()
	if from == 0 {
		return
	}
	m.spent.Store(0)
	m.bytes.Store(0)
	m.from.CompareAndSwap(from, now)
}

// forget begins anew, while nothing waits.
func (m *meter) forget() {
	m.spent.Store(0)
	m.bytes.Store(0)
}

// least is the number of bytes that a window asks for.
func (l *limits) least() int64 { return int64(l.stall.Seconds() * float64(l.rate)) }
