package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tarehq/tare/load/internal/check"
	"github.com/tarehq/tare/load/internal/dial"
	"github.com/tarehq/tare/load/internal/http1"
	"github.com/tarehq/tare/load/internal/http3"
	"github.com/tarehq/tare/load/internal/wire"
	"golang.org/x/net/http2"
)

// streamConn is a connection that carries several requests at a time.
type streamConn interface {
	http.RoundTripper
	Available() int // how many more it takes, as far as is known
	InFlight() int
	Err() error // why it ended; nil as long as it is open
	Close() error
	Take() (in, out int64) // bytes since the last call
}

// muxConn is one HTTP/2 or HTTP/3 connection that some workers share, opened when one of
// them needs it and again after it broke. Safe for concurrent use.
type muxConn struct {
	engine   *netEngine
	endpoint int
	open     func(ctx context.Context) (streamConn, *dial.Link, error)

	mu      sync.Mutex
	conn    streamConn   // nil when there is none
	taken   *atomic.Bool // a request found a stream of conn free
	carried bool         // conn has carried a request
}

func newMuxConn(e *netEngine, endpoint int) *muxConn {
	m := &muxConn{engine: e, endpoint: endpoint}
	if e.plan.opts.Protocol == HTTP3 {
		m.open = func(ctx context.Context) (streamConn, *dial.Link, error) { return e.dialer.DialHTTP3(ctx, endpoint) }
	} else {
		m.open = e.http2Opener(endpoint)
	}
	return m
}

// http2Opener opens connections to an endpoint, one at a time.
func (e *netEngine) http2Opener(endpoint int) func(ctx context.Context) (streamConn, *dial.Link, error) {
	var l *dial.Link
	reach := func(ctx context.Context, _, _ string) (_ net.Conn, err error) {
		if l, err = e.dialer.Dial(ctx, endpoint); err != nil {
			return nil, err
		}
		return l.Conn, nil
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	opener := &http.Transport{ // it pools none
		DialContext: reach, DialTLSContext: reach, Protocols: protocols,
		DisableCompression: true, MaxResponseHeaderBytes: http1.MaxHead,
		HTTP2: &http.HTTP2Config{},
	}
	if t := e.plan.opts.Timeout; t > 0 {
		// A connection that lost its peer would take request after request to
		// its time-out. It is given up no sooner than those are.
		opener.HTTP2.SendPingTimeout, opener.HTTP2.PingTimeout = max(t/2, time.Second), t
	}
	scheme := "http"
	if e.script.endpoints[endpoint].TLS {
		scheme = "https"
	}
	return func(ctx context.Context) (streamConn, *dial.Link, error) {
		// reach knows where to go; the address only has to be well-formed.
		conn, err := opener.NewClientConn(ctx, scheme, net.JoinHostPort(e.script.endpoints[endpoint].Host, "0"))
		if err != nil {
			return nil, nil, err
		}
		return http2Conn{conn, &l.Wire.Counter}, l, nil
	}
}

// http2Conn is net/http's connection and its bytes.
type http2Conn struct {
	*http.ClientConn
	*wire.Counter
}

// acquire returns the connection, opened if need be, whether a request found a stream of it
// free, to be set, and whether it had carried a request before.
func (m *muxConn) acquire(ctx context.Context, rec *recorder) (conn streamConn, taken *atomic.Bool, reused bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.conn != nil && m.conn.Err() != nil {
		m.conn = nil // closed
	}
	if m.conn == nil {
		var l *dial.Link
		if m.conn, l, err = m.open(ctx); err != nil {
			m.conn = nil
			return nil, nil, false, err
		}
		m.carried, m.taken = false, new(atomic.Bool)
		m.engine.opened(rec, l)
	}
	reused, m.carried = m.carried, true
	return m.conn, m.taken, reused, nil
}

// retire makes conn, which takes no more requests, give way to a new one. What
// is in flight on it is still answered; it closes with the last of that.
func (m *muxConn) retire(conn streamConn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.conn == conn {
		m.conn = nil
	}
	if conn.InFlight() == 0 {
		conn.Close()
	}
}

func (m *muxConn) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.conn != nil {
		m.conn.Close()
		m.conn = nil
	}
}

// runStreams is the engine for HTTP/2 and HTTP/3: net/http's and quic-go's client
// connections behind the goroutine engine's schedule and record.
func runStreams(p *plan) (closeAll func(), err error) {
	e := newNetEngine(p)
	streams := min(p.opts.Streams, maxStreams)
	groups := make(map[int][]*muxConn) // by the workers that share: k / streams
	var mu sync.Mutex
	e.workers = p.streamWorkers(streams)
	e.exchanger = func(k int, rec *recorder) exchanger {
		mu.Lock()
		defer mu.Unlock()
		conns, ok := groups[k/streams]
		if !ok {
			for i := range e.script.endpoints {
				conns = append(conns, newMuxConn(e, i))
			}
			groups[k/streams] = conns
		}
		return &streamExchanger{engine: e, rec: rec, cursor: e.script.cursor(k), conns: conns}
	}
	return e.drive(), nil
}

// streamWorkers is how many requests may be in flight. As many workers as streams share a
// connection to each server; a request with a connection of its own is the only stream of
// that. In the open loop no more connections than asked for are open so, but at least one
// to each server.
func (p *plan) streamWorkers(streams int) int {
	conns := min(int64(p.opts.Connections), 1<<32)
	each, servers := int64(streams), int64(len(p.script.endpoints))
	workers := conns * each
	switch share := p.script.share; {
	case share == 1: // none is shared
		workers = conns
	case p.open && share > 0: // each worker may have one besides those that it shares
		workers = (conns - servers) * each / (each + servers)
	case p.open:
		workers = max(1, conns/servers) * each
	}
	return int(min(max(1, workers), maxStreams))
}

// streamExchanger sends a worker's requests as streams of connections that it
// shares.
type streamExchanger struct {
	engine *netEngine
	rec    *recorder
	cursor *cursor
	conns  []*muxConn // by endpoint
	buf    []byte     // made for the first answer: what waits for one needs none
	body   check.Stream
}

// close closes the shared connections too: it comes when all workers are done.
func (x *streamExchanger) close() {
	for _, m := range x.conns {
		m.close()
	}
}

// exchange implements exchanger.
func (x *streamExchanger) exchange(o *outcome) (failure, error) {
	ctx, cancel := x.engine.bounded(o.start)
	defer cancel()
	alone := x.cursor.closing()
	req, target := x.cursor.request()
	m := x.conns[x.engine.script.targets[target].endpoint]
	if alone {
		m = newMuxConn(x.engine, m.endpoint)
		defer m.close()
	}
	var err error
	for idle := 0; idle < idleConns; {
		err = x.attempt(ctx, m, req, target, o)
		unsent, ok := errors.AsType[*unsentError](err)
		if !ok {
			break
		}
		if idle++; unsent.busy {
			idle = 0
		}
	}
	if ce, ok := errors.AsType[*connectError](err); ok {
		return connectFailure(err), dial.Explain(x.engine.script.endpoints[m.endpoint], ce.error)
	}
	if err != nil {
		kind := streamFailure(err, o.firstByte != 0)
		switch {
		case kind == failTimeout:
			err = lateAnswer(x.engine.plan.opts.Timeout)
		case isRefused(err):
			err = fmt.Errorf("%w: if the server allows fewer streams at a time, ask for fewer", err)
		case hungUp(err) && !x.engine.script.endpoints[m.endpoint].TLS: // by TLS HTTP/2 was agreed on
			err = fmt.Errorf("%w: if the server does not speak HTTP/2 on this port, use the other HTTP version", err)
		}
		return kind, err
	}
	return 0, nil
}

// hungUp reports whether err is net/http's for a server that does not begin with
// HTTP/2, but hangs up, as one does that has too many connections, or answers in
// HTTP/1.1. Neither is exported.
func hungUp(err error) bool {
	text := err.Error()
	return strings.Contains(text, "client conn could not be established") || strings.Contains(text, "looked like an HTTP/1.1 header")
}

// isRefused reports whether err is a stream's that the server refused unread, as one
// does that has as many as it allows: on a new connection streams begin before it is
// known how many that are.
func isRefused(err error) bool {
	se, ok := errors.AsType[http2.StreamError](err)
	return ok && se.Code == http2.ErrCodeRefusedStream
}

// connectError is an error from opening a connection.
type connectError struct{ error }

func (e *connectError) Unwrap() error { return e.error }

// unsentError is an error from a connection whose end the server had asked for before
// the request was sent. As with one that is found closed, the request goes out on the
// next, and on those after that while others come before it.
type unsentError struct {
	error
	busy bool // the connection had room, for others if not for this one
}

// idleConns is how many connections in a row a request goes through that had room for
// none.
const idleConns = 2

// isUnsent reports whether err is for a request that was not sent, because the connection
// takes no more. net/http does not export its.
func isUnsent(err error) bool {
	return errors.Is(err, http3.ErrUnsent) || err.Error() == "http2: client conn not usable"
}

// attempt sends req as a stream of m and takes in the answer.
func (x *streamExchanger) attempt(ctx context.Context, m *muxConn, req *http.Request, target int, o *outcome) error {
	conn, taken, reused, err := m.acquire(ctx, x.rec)
	if err != nil {
		return &connectError{err}
	}
	o.reused, o.streams = reused, 0
	if conn.Available() > 0 {
		taken.Store(true)
	} else {
		o.streams = conn.InFlight() // none where it is closed
	}
	resp, err := conn.RoundTrip(req.WithContext(ctx))
	if err == nil {
		o.firstByte = nanotime()
		err = x.read(resp, target, o)
	}
	o.bytesIn, o.bytesOut = conn.Take()
	if err != nil && isUnsent(err) {
		m.retire(conn)
		return &unsentError{err, taken.Load()}
	}
	return err
}

// errAnswerTooLong tells that an answer passed Options.MaxAnswer.
var errAnswerTooLong = errors.New("the answer is longer than allowed")

// read takes in the body and checks the answer.
func (x *streamExchanger) read(resp *http.Response, target int, o *outcome) error {
	defer resp.Body.Close()
	if err := http1.CheckStatus(resp.StatusCode); err != nil {
		return err // net/http takes any number
	}
	c := &x.engine.script.verify[target]
	x.body.Reset(c)
	if x.buf == nil {
		x.buf = make([]byte, maxRead)
	}
	var total int64
	for {
		n, err := resp.Body.Read(x.buf)
		if total += int64(n); total > x.engine.plan.opts.MaxAnswer {
			return errAnswerTooLong
		}
		x.body.Write(x.buf[:n])
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	o.status = resp.StatusCode
	o.verified = c.FieldsOK(resp.StatusCode, resp.Header) && x.body.OK()
	return nil
}

// streamFailure is the kind of failure that err, from a request on a stream, is.
// answering tells that the answer had begun.
func streamFailure(err error, answering bool) failure {
	broken := failReset
	if answering {
		broken = failShort
	}
	var se http2.StreamError // net/http's own makes itself into one
	switch {
	case dial.IsTimeout(err):
		return failTimeout
	case errors.As(err, &se) && se.Cause != nil && se.Cause.Error() == "received from peer":
		return broken
	case isBroken(err):
		return broken
	// Note: net/http does not export the errors of a connection that was
	// given up by the peer or closed between two requests.
	case strings.Contains(err.Error(), "GOAWAY"), strings.Contains(err.Error(), "client conn"):
		return broken
	}
	return failMalformed
}

// isBroken reports whether err tells that a connection ended or was cut.
func isBroken(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, context.Canceled)
}

// connectFailure is the kind of failure that err, from opening a connection,
// is.
func connectFailure(err error) failure {
	if dial.IsTimeout(err) {
		return failTimeout
	}
	return failRefused
}
