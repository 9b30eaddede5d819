package serve

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarehq/tare/serve/internal/sys"
)

// parking holds the connections that wait without a goroutine, and those whose
// peers are watched for going. One goroutine serves it, once there is something
// to hold.
type parking struct {
	mu     sync.Mutex
	poller *sys.Poller
	failed atomic.Bool // there is no poller to be had, or not for more
	held   map[int32]*conn
	tags   int32
	gaveUp int   // how many were parked since relieve last looked
	credit int   // how many more were in this burst than a collection has paid for
	lately int64 // when the last of them was, by the engine's clock
}

// seat is a connection's place in the parking.
type seat struct {
	fd      int32
	tag     int32
	watched bool
	parked  bool
}

func newParking() *parking { return &parking{held: map[int32]*conn{}} }

// enterLocked readies c's seat, and the poller if this is the first.
func (p *parking) enterLocked(c *conn) bool {
	if p.failed.Load() || c.fd == nil {
		return false
	}
	if p.poller == nil {
		poller, err := sys.NewPoller()
		if err != nil {
			p.failed.Store(true)
			return false
		}
		p.poller = poller
		go p.run(poller)
	}
	if c.seat.tag == 0 {
		if c.fd.Control(func(fd uintptr) { c.seat.fd = int32(fd) }) != nil {
			return false
		}
		p.tags++
		c.seat.tag = p.tags
		p.held[c.seat.fd] = c
	}
	return true
}

// addLocked registers c. The socket is held open meanwhile: once it is closed,
// its descriptor may be another's.
func (p *parking) addLocked(c *conn, readable bool) bool {
	var err error
	if c.fd.Control(func(uintptr) { err = p.poller.Add(c.seat.fd, c.seat.tag, readable) }) != nil {
		return false // it is closed
	}
	if err != nil {
		p.failed.Store(true)
	}
	return err == nil
}

// able reports whether there is a poller to hold connections, as far as is known.
func (p *parking) able() bool { return !p.failed.Load() }

// watch asks to be told when c's peer goes. It reports false where that cannot
// be had.
func (p *parking) watch(c *conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.enterLocked(c) {
		return false
	}
	if !c.seat.watched {
		c.seat.watched = p.addLocked(c, false)
	}
	return c.seat.watched
}

// hold parks c, whose goroutine ends: from here on it belongs to the parking. If
// it cannot be parked, a goroutine goes on waiting.
func (p *parking) hold(c *conn) {
	p.mu.Lock()
	ok := p.enterLocked(c)
	if ok {
		c.seat.parked, c.seat.watched = true, false
		c.rename(phaseParked)
		if ok = p.addLocked(c, true); !ok {
			c.seat.parked = false
		}
		p.gaveUp++
		p.lately = c.e.clock.now()
	}
	p.mu.Unlock()
	if !ok {
		c.rename(phaseIdle)
		go c.serve()
	}
}

// relieve returns to the system, after a burst, the memory of the connections that have
// become idle. The runtime would do so at its next collection, up to two minutes later.
// It collects only where that costs less than the burst did: there is no more live heap
// than the connections gave up (TestBurstMemory). Few may follow where many were: on a busy
// machine a burst comes in parts (TestBurstInParts).
func (p *parking) relieve(now int64) {
	const many, few, each = 1000, 100, 8 << 10 // connections, and what each had at least: its stack
	const over = 30 * time.Second
	p.mu.Lock()
	defer p.mu.Unlock()
	quiet := time.Duration(now - p.lately)
	if quiet > over {
		p.credit = 0
	}
	if n := p.gaveUp; quiet < time.Second || n < few || n < many && p.credit == 0 {
		return
	}
	p.credit, p.gaveUp = p.credit+p.gaveUp, 0
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	if cost := 2 * int(live[0].Value.Uint64()/each); cost <= p.credit {
		p.credit -= cost
		go func() {
			runtime.GC() // one collection leaves what is in pools, such as buffers
			debug.FreeOSMemory()
		}()
	}
}

// end takes c out if it is parked, and reports whether it was.
func (p *parking) end(c *conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := c.seat.parked
	c.seat.parked = false
	return was
}

// lapse takes c out if it is parked and its time is up, and reports whether it
// did. It may have parked, or been woken, since the sweep looked at it.
func (p *parking) lapse(c *conn, now int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !c.seat.parked || c.due(c.at(), now) != lapse || c.spoken() {
		return false
	}
	c.seat.parked = false
	return true
}

// leave forgets c, which is about to be closed or given away.
func (p *parking) leave(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.seat.tag != 0 && p.held[c.seat.fd] == c {
		delete(p.held, c.seat.fd)
	}
	c.seat = seat{}
}

// run acts on what the poller reports, until the engine is done with it.
func (p *parking) run(poller *sys.Poller) {
	for poller.Wait(p.report) == nil {
	}
}

func (p *parking) report(ev sys.Event) {
	p.mu.Lock()
	c := p.held[ev.FD]
	if c == nil || c.seat.tag != ev.Tag {
		p.mu.Unlock()
		return // of a connection that has ended since
	}
	c.seat.watched = false
	parked := c.seat.parked
	c.seat.parked = false
	p.mu.Unlock()
	if !parked {
		c.gone()
		return
	}
	c.rename(phaseIdle)
	go c.serve()
}

// close ends the parking's goroutine.
func (p *parking) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed.Store(true)
	p.restLocked()
}

// rest ends the goroutine until there is something to hold again.
func (p *parking) rest() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.restLocked()
}

func (p *parking) restLocked() {
	if p.poller != nil {
		p.poller.Close()
		p.poller = nil
	}
}
