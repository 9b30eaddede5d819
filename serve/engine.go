package serve

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarehq/tare/serve/internal/http1"
	"github.com/tarehq/tare/serve/internal/listener"
	"github.com/tarehq/tare/serve/internal/meter"
	"github.com/tarehq/tare/serve/internal/reply"
	"github.com/tarehq/tare/serve/internal/sys"
	"github.com/tarehq/tare/serve/internal/wheel"
)

// engine is what a Server runs on: its settings as they were when it began to
// serve, its connections, and the clock that their time limits are kept by.
type engine struct {
	s        *Server
	handler  http.Handler
	chained  atomic.Bool // requests go through a chain, whose state they bring along
	crowded  atomic.Bool // and its layers keep more values than that has room for
	routed   atomic.Bool // a router keeps path values in requests, which bring room along
	options  http1.Options
	protos   http.Protocols
	limits   limits
	fields   sys.PathFields   // by which requests offer room to routers
	contexts sys.ContextField // by which they get their contexts
	lines    reply.Lines

	// shadow is the standard library's server with the same settings. It serves
	// HTTP/2 and is what handlers find under http.ServerContextKey.
	shadow *http.Server
	handed *handover

	hooked    bool      // somebody else may hold net.Conns
	exchanges sync.Pool // of *buffers
	clock     clock
	wheel     *wheel.Wheel[*conn] // when the sweep looks at each connection
	lead      [phases]int64
	parking   *parking
	grace     atomic.Int64 // limits.grace, or what Shutdown finds it to be
	ending    atomic.Int64 // by the clock, when it was seen that keep-alives end
	hurried   atomic.Bool  // connections get no grace

	mu      sync.Mutex
	first   *conn // oldest; linked by conn.next
	last    *conn
	open    int
	accepts int                // listeners that are accepted from
	from    map[netip.Addr]int // connections by address, if limited
	drained chan struct{}      // closed when open is 0 and Shutdown waits
	freed   chan struct{}      // told when a connection ends
}

// limits are the server's limits with the defaults filled in; zero is none.
type limits struct {
	header, idle, read, write, stall, grace time.Duration
	fields, headerBytes                     int
	conns, connsPerAddr                     int
	rate                                    int
	drain                                   int64
	window                                  meter.Window // in which rate is asked for
}

func newEngine(s *Server) *engine {
	e := &engine{
		s:       s,
		handler: s.Handler,
		protos:  s.protocols(),
		options: http1.Options{MaxFields: s.Limits.MaxHeaders, Lenient: s.Lenient},
		limits: limits{
			header: s.headerTimeout(), idle: s.idleTimeout(),
			read: max(0, s.ReadTimeout), write: max(0, s.WriteTimeout),
			stall:        or(s.Limits.StallTimeout, defaultStallTimeout),
			grace:        or(s.Limits.ShutdownGrace, defaultGrace),
			fields:       or(s.Limits.MaxHeaders, http1.DefaultMaxFields),
			headerBytes:  s.headerBytes(),
			conns:        or(s.Limits.MaxConns, sys.Descriptors()*9/10),
			connsPerAddr: max(0, s.Limits.MaxConnsPerAddr),
			rate:         or(s.Limits.MinRate, defaultMinRate),
			drain:        or(s.Limits.MaxDrain, defaultDrain),
		},
		fields: sys.FindPathFields(), contexts: sys.FindContextField(),
		hooked: s.ConnState != nil || s.ConnContext != nil,
		freed:  make(chan struct{}, 1),
	}
	e.limits.window = meter.Window{Stall: e.limits.stall, Least: int64(e.limits.stall.Seconds() * float64(e.limits.rate))}
	if e.handler == nil {
		e.handler = http.DefaultServeMux
	}
	if e.limits.connsPerAddr > 0 {
		e.from = map[netip.Addr]int{}
	}
	e.exchanges.New = func() any { return newBuffers() }
	e.handed = newHandover(e)
	e.shadow = e.handed.server
	e.shadow.SetKeepAlivesEnabled(!s.muted.Load())
	e.parking = newParking()
	e.clock.tick, e.lead = e.limits.tick(), e.limits.leads()
	e.wheel, e.clock.early = wheel.New[*conn](e.clock.tick), make(chan struct{}, 1)
	e.grace.Store(int64(e.limits.grace))
	e.clock.set(time.Now())
	return e
}

// accept serves what l accepts until l fails for good.
func (e *engine) accept(base context.Context, l *listener.Listener) error {
	e.mu.Lock()
	e.accepts++
	e.mu.Unlock()
	defer e.leave()
	patience, last := backoff{e: e}, 50 // pauses for want of descriptors once the server has ended
	for {
		nc, err := l.Accept()
		if err != nil {
			switch late := isTimeout(err); {
			case !e.s.closed.Load():
				if !temporary(err) {
					return err
				}
			case !late && (last == 0 || !sys.OutOfDescriptors(err)) || !l.Pending():
				return http.ErrServerClosed
			case late:
				continue
			default:
				last--
			}
			patience.wait(err)
			continue
		}
		patience.reset()
		ctx := base
		if e.s.ConnContext != nil {
			if ctx = e.s.ConnContext(base, nc); ctx == nil {
				panic("ConnContext returned nil")
			}
		}
		if c := e.admit(ctx, nc); c != nil {
			c.setState(http.StateNew)
			go c.serve()
		}
	}
}

// admit takes a connection in, making room for it if it must. It returns nil if
// its address has too many already.
func (e *engine) admit(ctx context.Context, nc net.Conn) *conn {
	c := &conn{e: e, nc: nc, ctx: ctx}
	c.find()
	if e.from != nil && c.fd != nil {
		c.addr = addrOf(nc)
	}
	for !e.link(c) {
		if e.over(c) {
			nc.Close()
			return nil
		}
		if e.s.closed.Load() {
			continue
		}
		e.shed()
		select {
		case <-e.freed:
		case <-time.After(50 * time.Millisecond):
		}
	}
	return c
}

// link adds c to the connections unless a limit stands against it.
func (e *engine) link(c *conn) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.overLocked(c) || e.limits.conns > 0 && e.open >= e.limits.conns && !e.s.closed.Load() {
		return false
	}
	e.countLocked(c)
	if e.open++; e.open == 1 {
		e.clock.startLocked(e) // it stood still: c's time goes from now
	}
	c.begin(phaseOpening)
	e.wheel.Add(&c.node, c, c.at().since()+e.lead[phaseOpening])
	if c.prev = e.last; c.prev == nil {
		e.first = c
	} else {
		c.prev.next = c
	}
	e.last = c
	return true
}

// count counts c by its peer's address where only its own goroutine may ask for that: a
// connection that is not the system's may have to read it, as one of the PROXY protocol does,
// and nobody else is to wait for it. It reports false if that address has too many already.
func (e *engine) count(c *conn) bool {
	if e.from == nil || c.fd != nil {
		return true
	}
	addr := addrOf(c.nc)
	e.mu.Lock()
	defer e.mu.Unlock()
	c.addr = addr
	if e.overLocked(c) {
		c.addr = netip.Addr{} // it is not among those that unlink takes off
		return false
	}
	e.countLocked(c)
	return true
}

// countLocked adds c to the connections of its peer's address, if that is known.
func (e *engine) countLocked(c *conn) {
	if e.from != nil && c.addr.IsValid() {
		e.from[c.addr]++
	}
}

func (e *engine) over(c *conn) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.overLocked(c)
}

func (e *engine) overLocked(c *conn) bool {
	return e.from != nil && c.addr.IsValid() && e.from[c.addr] >= e.limits.connsPerAddr
}

// unlink removes c, which may have been removed before.
func (e *engine) unlink(c *conn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c.prev == nil && e.first != c {
		return
	}
	if c.prev == nil {
		e.first = c.next
	} else {
		c.prev.next = c.next
	}
	if c.next == nil {
		e.last = c.prev
	} else {
		c.next.prev = c.prev
	}
	c.prev, c.next = nil, nil
	e.wheel.Remove(&c.node)
	if e.from != nil && c.addr.IsValid() {
		if e.from[c.addr]--; e.from[c.addr] == 0 {
			delete(e.from, c.addr)
		}
	}
	if e.open--; e.open == 0 {
		e.clock.stopLocked()
		if e.drained != nil {
			close(e.drained)
			e.drained = nil
		}
		e.restLocked()
	}
	select {
	case e.freed <- struct{}{}:
	default:
	}
}

// leave notes that a listener is done with.
func (e *engine) leave() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.accepts--
	e.restLocked()
}

// restLocked leaves no goroutine behind where there is neither a listener nor a
// connection: nobody need call Close on a server whose listener has failed.
func (e *engine) restLocked() {
	if e.open == 0 && e.accepts == 0 {
		e.parking.rest()
	}
}

// backoff waits while accepting fails for want of something that may come back.
type backoff struct {
	e     *engine
	pause time.Duration
	said  time.Time
}

func (b *backoff) reset() { b.pause = 0 }

// wait frees a descriptor if that is what is missing, says once a second what is wrong, and
// waits at most 100 ms, so that serving goes on within 250 ms of there being descriptors again.
func (b *backoff) wait(err error) {
	if now := time.Now(); now.Sub(b.said) >= time.Second {
		b.said = now
		b.e.s.logf("http: Accept error: %v; retrying", err)
	}
	if sys.OutOfDescriptors(err) && !b.e.s.closed.Load() && b.e.shed() {
		b.pause = 0
		return
	}
	b.pause = min(max(2*b.pause, 5*time.Millisecond), 100*time.Millisecond)
	time.Sleep(b.pause)
}

// temporary reports whether accepting may succeed later.
func temporary(err error) bool {
	if sys.OutOfDescriptors(err) {
		return true
	}
	var t interface{ Temporary() bool }
	return errors.As(err, &t) && t.Temporary()
}

func addrOf(nc net.Conn) netip.Addr {
	addr := nc.RemoteAddr()
	if addr == nil {
		return netip.Addr{}
	}
	ap, err := netip.ParseAddrPort(addr.String())
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap()
}
