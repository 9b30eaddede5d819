package serve

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tarehq/tare/serve/internal/http1"
	"github.com/tarehq/tare/serve/internal/meter"
	"github.com/tarehq/tare/serve/internal/reply"
	"github.com/tarehq/tare/serve/internal/sys"
	"github.com/tarehq/tare/serve/internal/term"
	"github.com/tarehq/tare/serve/internal/wheel"
)

// conn is one connection. While requests come on it, one goroutine reads them, runs the handler
// and writes the answers; it alone touches the fields that are not atomic, except as noted.
type conn struct {
	e    *engine
	nc   net.Conn
	ctx  context.Context       // of its requests
	fd   syscall.RawConn       // of the socket, nil if it has none that can be polled
	bare bool                  // nc is the socket itself: it is read and written by fd
	try  func(fd uintptr) bool // tryRead, made once
	tls  *tls.ConnectionState
	term term.Term // of the context of the request at hand: few have an end, and a request is smaller without
	// sight is fd, or the socket that nc hides: how far the client is can be seen there,
	// but who wraps it may hold bytes of its own. nil: there is none.
	sight syscall.RawConn
	addr  netip.Addr // of the peer, if connections are limited by it

	remote string
	prev   *conn // guarded by engine.mu
	next   *conn
	node   wheel.Node[*conn] // in engine.wheel

	state   atomic.Int64  // a state
	began   atomic.Int64  // when the request began, by the engine's clock
	late    atomic.Int64  // the state in which the sweep ended writing, 0 = it has not; set with the deadline under gate
	nudged  atomic.Bool   // the sweep has set a read deadline; set with it under gate
	shaken  atomic.Uint64 // bytes that had gone over it when the sweep last looked at its handshake
	readBy  atomic.Int64  // the handler's own deadline, Unix nanoseconds, -1 none; set with it under gate
	writeBy atomic.Int64
	in, out meter.Meter

	held    atomic.Int32 // whether answers wait in buffers.out while a handler runs, and whose they are
	sending sync.Mutex   // locked by who sends them for the sweep

	lost    atomic.Bool // gone was called; set before it looks at cur
	greeted bool
	gate    sync.Mutex // guards left, taken and deadlines against the sweep, left against watch
	left    bool       // hijacked, or handed to another server
	taken   bool       // hijacked
	acked   uint64     // bytes of answers that the client had when the sweep last looked
	torn    error      // of writing: a part may be missing, nothing more is written, and no more requests are answered
	k       *buffers
	cur     atomic.Pointer[requestContext] // the request's, if it is followed
	seat    seat
	glimpse glimpse                // guarded by engine.mu
	streams *streams               // if it is handed over and speaks HTTP/2; set before its phase
	peek    atomic.Pointer[peeker] // watches for the peer's going where nothing else can
	unread  atomic.Bool            // there is a body that was not read to its end
	room    int32                  // of a buffer that takes a head and a body of its requests at once
}

// buffers is what a connection needs only while requests come.
type buffers struct {
	buf  []byte // read from the client
	r, w int    // of which buf[r:w] is unread
	pin  int    // buf[:pin] is in use by the handler and must stay as it is
	seen int    // how much of an incomplete head was searched for its end
	// skipped is how many bytes of empty lines before a head were dropped.
	skipped int

	out    []byte // answers not yet written
	before int    // out[:before] are those to earlier requests
	text   []byte // the answer's body while it may still fit a Content-Length

	head    http1.Head
	fields  http.Header   // of the answer, in Reuse mode
	sorting []reply.Field // the answer's fields
	told    uint8         // how many fields the last answer had, or more
	facts   facts
	x       *exchange         // of the request at hand
	roomy   *sys.RoomyRequest // that request, if it has room for path values
	values  []string          // its room for the values of fields
	inward  http.Header       // its fields
	socket  *socket
}

const (
	bufSize  = 4 << 10
	textSize = 2 << 10 // as net/http: a longer answer is chunked
)

func newBuffers() *buffers {
	return &buffers{
		buf:    make([]byte, bufSize),
		out:    make([]byte, 0, bufSize),
		text:   make([]byte, 0, textSize),
		socket: newSocket(),
	}
}

// outcome is what is to become of a connection after a step.
type outcome int

const (
	goOn   outcome = iota
	goPark         // it has been idle
	goEnd
	goLinger // end, but let the client read what was written
	goTorn   // end at once: another goroutine writes on it, and has its buffers
	goLeft   // it is somebody else's now
)

// serve runs the connection until it ends or is parked.
func (c *conn) serve() {
	how, whole := goEnd, false
	defer func() { // also if a handler calls runtime.Goexit, which nothing recovers
		if v := recover(); !whole {
			how = c.broken(v)
		}
		c.depart(how)
	}()
	how = c.converse()
	whole = true
}

// depart does what converse came to.
func (c *conn) depart(how outcome) {
	switch how {
	case goPark:
		c.giveBack()
		c.e.parking.hold(c) // from here on c is another goroutine's
	case goLeft:
	case goTorn:
		c.k = nil
		c.end()
	case goLinger:
		c.linger()
		c.end()
	default:
		c.end()
	}
}

// converse answers requests.
func (c *conn) converse() (how outcome) {
	c.takeBuffers()
	if !c.greeted {
		if c.e.hooked {
			c.readUntil(noDeadline)
		}
		if how = c.greet(); how != goOn {
			return how
		}
		c.greeted = true
	}
	for how = goOn; how == goOn; {
		how = c.step()
	}
	if (how == goEnd || how == goLinger) && c.flush() != nil {
		how = goEnd // the client reads nothing more
	}
	return how
}

// broken ends the request at hand, whose handler panicked with v or, if that is nil, ended its
// goroutine. What of its answer is written stays written, and so do the answers before it.
func (c *conn) broken(v any) outcome {
	if v != nil && v != http.ErrAbortHandler {
		trace := make([]byte, 64<<10)
		trace = trace[:runtime.Stack(trace, false)]
		c.e.s.logf("http: panic serving %v: %v\n%s", c.remote, v, trace)
	}
	x := c.k.x
	if x != nil && !x.gate.TryLock() {
		c.writeUntil(longAgo) // a goroutine that the handler left behind is writing
	} else if x != nil {
		x.gate.Unlock()
	}
	if x != nil && !x.retire() {
		x.ctx.end(context.Canceled)
		return goTorn
	}
	c.k.x = nil // not before: that goroutine may have been hijacking
	if c.left {
		c.letGo(x)
		return goLeft
	}
	if x != nil {
		x.abandon(c)
	}
	c.reclaim()
	if x != nil && x.res.decided && !x.res.sent {
		c.k.out = c.k.out[:c.k.before] // behind it is a head that is not complete
	}
	c.flush()
	return goEnd
}

// greet readies a new connection: the TLS handshake, and whose it is.
func (c *conn) greet() outcome {
	if addr := c.nc.RemoteAddr(); addr != nil {
		c.remote = addr.String()
	}
	if !c.e.count(c) {
		return goEnd
	}
	if t, ok := c.nc.(*tls.Conn); ok {
		if !c.shake(t) {
			return goEnd
		}
		if p := c.tls.NegotiatedProtocol; p != "" && p != "http/1.1" && p != "http/1.0" {
			return c.handOver(nil)
		}
	} else if t, ok := c.nc.(interface{ ConnectionState() tls.ConnectionState }); ok {
		state := t.ConnectionState()
		c.tls = &state
	}
	if c.tls == nil && c.e.protos.UnencryptedHTTP2() {
		if how := c.preface(); how != goOn {
			return how
		}
	}
	if !c.e.protos.HTTP1() {
		return goEnd
	}
	c.look()
	return goOn
}

// step answers one request, or reads a part of one.
func (c *conn) step() outcome {
	switch ok, err := c.parse(); {
	case err != nil:
		return c.refuse(err)
	case ok:
		return c.handle()
	}
	waiting := len(c.k.out) > 0
	if err := c.flush(); err != nil {
		return goEnd
	}
	if waiting && c.at().phase() == phaseHeading {
		c.heading() // the time until now was the answer's
	}
	return c.fill()
}

// fill waits for bytes of a request.
func (c *conn) fill() outcome {
	c.awaitRequest()
	for {
		n, err := c.receive()
		c.k.w += n
		if n > 0 {
			return goOn
		}
		if err == nil {
			continue
		}
		if how := c.woken(err); how != goOn {
			return how
		}
	}
}

// awaitRequest notes that it is the client's turn.
func (c *conn) awaitRequest() {
	if c.k.r != c.k.w || c.at().phase() != phaseHandling {
		return
	}
	c.k.r, c.k.w = 0, 0
	c.begin(phaseIdle)
}

// woken says what an error of waiting for a request means.
func (c *conn) woken(err error) outcome {
	if !isTimeout(err) {
		return goEnd
	}
	c.readUntil(noDeadline)
	s := c.at()
	switch c.due(s, c.e.clock.now()) {
	case lapse:
		if s.phase() == phaseHeading || !c.spoken() {
			return goEnd
		}
	case park:
		if c.k.r == c.k.w {
			return goPark
		}
	}
	return goOn
}

// fail ends writing and the request at hand: the connection is of no more use.
func (c *conn) fail(err error) {
	c.torn = err
	c.gone()
}

// linger lets the client read what was written before the connection ends: it would lose it if
// what it still sends were answered by a reset, as TCP does. A connection that cannot tell it
// that nothing more comes, or that knows no deadlines, is left as it is for that time.
func (c *conn) linger() {
	const patience = 500 * time.Millisecond
	const most = 1 << 20
	until := time.Now().Add(patience)
	w, ok := c.nc.(interface{ CloseWrite() error })
	if ok && w.CloseWrite() != nil {
		return
	}
	if !ok && !c.overTCP() {
		return
	}
	if !ok || c.readUntil(until) != nil {
		time.Sleep(patience)
		return
	}
	n, _ := io.CopyBuffer(io.Discard, io.LimitReader(onlyReader{c.nc}, most), c.k.buf)
	if n == most {
		time.Sleep(time.Until(until)) // the rest stays unread, which holds the client up
	}
}

type onlyReader struct{ io.Reader }

// overTCP reports whether the client's address is one of TCP, whatever wraps the socket.
func (c *conn) overTCP() bool {
	addr := c.nc.RemoteAddr()
	return addr != nil && strings.HasPrefix(addr.Network(), "tcp")
}

// end closes the connection.
func (c *conn) end() {
	c.giveBack()
	c.e.parking.leave(c)
	if isTimeout(c.torn) {
		c.abort()
	}
	c.nc.Close()
	c.e.unlink(c)
	c.setState(http.StateClosed)
}

// cut closes the socket at once, with a reset or not, from another goroutine than the
// connection's, and without the farewell of TLS, which may have to wait for the client.
// What the handler has taken it leaves alone. The poller does not tell of what is
// closed on this side: who calls it takes c out of the parking afterwards.
func (c *conn) cut(reset bool) {
	c.gate.Lock()
	if c.taken {
		c.gate.Unlock()
		return
	}
	if reset {
		c.abort()
	} else {
		c.beneath().Close()
	}
	c.gate.Unlock()
	c.gone()
}

// abort resets the connection of a client that does not take its answer. The kernel would keep
// what it holds of it, up to megabytes, for as long as such a client likes.
func (c *conn) abort() {
	nc := c.beneath()
	if s, ok := nc.(interface{ SetLinger(int) error }); ok {
		s.SetLinger(0)
	}
	nc.Close()
}

// beneath returns the connection that TLS is spoken on, if it is.
func (c *conn) beneath() net.Conn {
	if t, ok := c.nc.(*tls.Conn); ok {
		return t.NetConn()
	}
	return c.nc
}

// takeBuffers has the connection have buffers.
func (c *conn) takeBuffers() {
	if c.k == nil {
		c.k = c.e.exchanges.Get().(*buffers)
	}
}

// waitsForNothing reports whether the buffers hold nothing that the connection needs
// while it waits for its next request.
func (k *buffers) waitsForNothing() bool {
	return k.r == k.w && k.pin == 0 && k.seen == 0 && k.skipped == 0 && len(k.out) == 0
}

// giveBack returns the buffers, whatever is in them.
func (c *conn) giveBack() {
	if c.k == nil {
		return
	}
	k := c.k
	c.k = nil
	k.r, k.w, k.pin, k.seen, k.skipped = 0, 0, 0, 0, 0
	if cap(k.buf) > 4*bufSize || cap(k.out) > 4*bufSize {
		return
	}
	k.out, k.text = k.out[:0], k.text[:0]
	clear(k.fields)
	if c.e.s.Reuse && k.x != nil && !k.x.ctx.tied() {
		k.forget()
	} else {
		k.x, k.roomy, k.values, k.inward = nil, nil, nil, nil // a handler may have kept them
	}
	c.e.exchanges.Put(k)
}

// give takes the connection out of the engine's hands, for good if it is taken.
func (c *conn) give(taken bool) {
	c.gate.Lock()
	c.left, c.taken = true, taken
	c.gate.Unlock()
	c.unpeek()
	c.nc.SetDeadline(noDeadline)
	c.e.parking.leave(c)
}

func (c *conn) setState(s http.ConnState) {
	if hook := c.e.s.ConnState; hook != nil {
		hook(c.nc, s)
	}
}
