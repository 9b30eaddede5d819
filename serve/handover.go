package serve

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarehq/tare/serve/internal/ahead"
)

// handover passes connections to the standard library's server, which speaks
// HTTP/2 and the protocols of Server.TLSNextProto.
type handover struct {
	e      *engine
	server *http.Server
	conns  sync.Map     // net.Conn as handed over → *conn
	under  atomic.Int32 // connections being handed over
}

func newHandover(e *engine) *handover {
	s := e.s
	h := &handover{e: e}
	protos := e.protos
	h.server = &http.Server{
		Addr: s.Addr, Handler: &guard{e, e.handler}, DisableGeneralOptionsHandler: s.DisableGeneralOptionsHandler,
		TLSConfig:   &tls.Config{NextProtos: []string{"h2"}},
		ReadTimeout: e.limits.read, ReadHeaderTimeout: cmp.Or(e.limits.header, -1), // zero would be ReadTimeout
		WriteTimeout: streamTimeout(&e.limits), IdleTimeout: cmp.Or(e.limits.idle, -1),
		MaxHeaderBytes: e.limits.headerBytes, TLSNextProto: s.TLSNextProto,
		ErrorLog: log.New(logWriter{s}, "", 0), HTTP2: http2Config(s, &e.limits), Protocols: &protos,
		BaseContext: handedContext, ConnState: h.state,
	}
	h.server.RegisterOnShutdown(func() { // who has found it by http.ServerContextKey means this server
		if !s.closed.Load() {
			s.Shutdown(context.Background())
		}
	})
	return h
}

// streamTimeout has the other server make a write deadline for each stream even
// if there is no such limit: stream.allowEnd adjusts it.
func streamTimeout(l *limits) time.Duration {
	const never = 100 * 365 * 24 * time.Hour
	if l.write == 0 && l.stall > 0 {
		return never
	}
	return l.write
}

// http2Config has connections end on which nothing can be written any more.
func http2Config(s *Server, l *limits) *http.HTTP2Config {
	var config http.HTTP2Config
	if s.HTTP2 != nil {
		config = *s.HTTP2
	}
	config.WriteByteTimeout = cmp.Or(config.WriteByteTimeout, l.stall)
	return &config
}

// logWriter has the other server log where this one does, which may be changed
// while it serves.
type logWriter struct{ s *Server }

func (w logWriter) Write(line []byte) (int, error) {
	w.s.logf("%s", line)
	return len(line), nil
}

// handedContext gives a connection the context that it came with.
func handedContext(l net.Listener) context.Context { return l.(*handedListener).ctx }

// state passes changes of state on, but for the first: it was told of before.
func (h *handover) state(nc net.Conn, s http.ConnState) {
	if s == http.StateClosed || s == http.StateHijacked {
		h.forget(nc)
	}
	if s == http.StateNew || h.e.s.ConnState == nil {
		return
	}
	if a, ok := nc.(*ahead.Conn); ok {
		nc = a.Conn
	}
	h.e.s.ConnState(nc, s)
}

// take hands c over as nc. It reports false if there is nobody to take it. The
// connection counts as one of the engine's until the other server is done.
func (h *handover) take(c *conn, nc net.Conn) bool {
	h.conns.Store(nc, c)
	l := &handedListener{nc: nc, ctx: c.ctx}
	if c.streams != nil {
		l.ctx = c.streams.context()
	}
	h.server.Serve(l) // returns at once: the connection is served in a goroutine of its own
	if l.nc != nil {
		h.forget(nc)
		return false
	}
	return true
}

func (h *handover) forget(nc net.Conn) {
	if c, ok := h.conns.LoadAndDelete(nc); ok {
		h.e.unlink(c.(*conn))
	}
}

// handedListener accepts the one connection that is handed over.
type handedListener struct {
	nc  net.Conn
	ctx context.Context
}

func (l *handedListener) Accept() (net.Conn, error) {
	if l.nc == nil {
		return nil, net.ErrClosed
	}
	nc := l.nc
	l.nc = nil
	return nc, nil
}

func (l *handedListener) Close() error   { return nil }
func (l *handedListener) Addr() net.Addr { return handedAddr{} }

type handedAddr struct{}

func (handedAddr) Network() string { return "handed" }
func (handedAddr) String() string  { return "handed over" }

// handOver gives the connection away, with what was read of it.
func (c *conn) handOver(read []byte) outcome {
	nc := c.nc
	if read != nil {
		nc = ahead.NewConn(nc, read)
	}
	if read != nil || c.tls.NegotiatedProtocol == "h2" {
		c.streams = newStreams(c)
	}
	h := c.e.handed
	h.under.Add(1)
	defer h.under.Add(-1)
	c.begin(phaseHanded)
	c.give(false)
	if !h.take(c, nc) {
		nc.Close()
		c.setState(http.StateClosed)
	}
	c.k = nil
	return goLeft
}

// prefaceLine opens HTTP/2 with prior knowledge (RFC 9113, 3.4).
const prefaceLine = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// preface waits for enough bytes to tell HTTP/2 from HTTP/1.
func (c *conn) preface() outcome {
	for {
		got := c.k.buf[c.k.r:c.k.w] // fill may have taken other buffers
		n := min(len(got), len(prefaceLine))
		if !bytes.Equal(got[:n], []byte(prefaceLine)[:n]) {
			if c.at().phase() == phaseHeading {
				c.active() // parse takes it that whoever noted the head's beginning did
			}
			return goOn
		}
		if n == len(prefaceLine) {
			return c.handOver(bytes.Clone(got))
		}
		if how := c.fill(); how != goOn {
			return how
		}
		if c.at().phase() == phaseOpening {
			c.heading()
		}
	}
}

// shake performs the TLS handshake within the time for a head.
func (c *conn) shake(t *tls.Conn) bool {
	c.turn(phaseOpening, phaseShaking, c.at().since())
	if err := t.HandshakeContext(c.ctx); err != nil {
		c.shakeFailed(err)
		return false
	}
	state := t.ConnectionState()
	c.tls = &state
	since := c.at().since()
	if !c.e.s.keepAlive() {
		since = c.e.clock.now() // its request is on the way
	}
	c.turn(phaseShaking, phaseOpening, since)
	return true
}

// turn goes from one phase to the other, which counts from since, and where the
// sweep's deadlines for the first do not hold.
func (c *conn) turn(from, to phase, since int64) {
	c.gate.Lock()
	defer c.gate.Unlock()
	for s := c.at(); s.phase() == from; s = c.at() {
		if !c.alter(s, to.from(since)) {
			continue // the sweep has counted anew
		}
		if c.nudged.Swap(false) {
			c.nc.SetDeadline(noDeadline)
		}
		return
	}
}

// shakeFailed tells a client that speaks HTTP where TLS is due.
func (c *conn) shakeFailed(err error) {
	reason := err.Error()
	if re, ok := err.(tls.RecordHeaderError); ok && re.Conn != nil && looksLikeHTTP(re.RecordHeader) {
		re.Conn.Write([]byte("HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"))
		re.Conn.Close()
		reason = "client sent an HTTP request to an HTTPS server"
	}
	c.e.s.logf("http: TLS handshake error from %s: %v", c.remote, reason)
}

func looksLikeHTTP(head [5]byte) bool {
	switch string(head[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "OPTIO":
		return true
	}
	return false
}
