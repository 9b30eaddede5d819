package transport

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tarehq/tare/serve/client/internal/ending"
	"github.com/tarehq/tare/serve/client/transport/internal/handshake"
	"github.com/tarehq/tare/serve/client/transport/internal/pool"
	"github.com/tarehq/tare/serve/internal/http1"
	"github.com/tarehq/tare/serve/internal/wrapped"
)

// Options of a transport. The zero value is right for calls between services.
type Options struct {
	// Dial opens connections. Nil: by TCP, within 3 s.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// HeaderTimeout is how long an answer's header may take once the request was sent, and how
	// long the host may take for 32 KiB of a body before that. 0: 60 s; negative: for ever.
	HeaderTimeout time.Duration
	// IdleTimeout is how long an idle connection is kept. 0: 50 s.
	IdleTimeout time.Duration
	// Idle is the most idle connections of a host. 0: 512.
	Idle int
	// Conns is the most open connections of a host, in use or idle; one that was upgraded counts
	// until it is closed. To a host that speaks HTTP/2 it is the most streams: requests that are
	// under way, until the answer's body was read or closed. Requests beyond wait, and go out in
	// the order in which they came. 0: as many as there are requests.
	Conns int
	// Queue is how many requests may wait for a connection of a host, or a stream, and
	// QueueTimeout how long: then they fail with a [BusyError]. 0: 1024, and 1 s; negative: none
	// waits. A request's context that has a method HaveTurn is told by it that the wait is over.
	Queue        int
	QueueTimeout time.Duration
	// Warm is how many connections KeepWarm keeps open, at most Idle and Conns. 0: none.
	Warm int
	// HeaderBytes is the most bytes of an answer's header. 0: 64 KiB.
	HeaderBytes int
	// TLS is for requests of the scheme https. Its NextProtos are set, to HTTP/2, if Other is
	// there for that, and HTTP/1.1. Nil: such requests are Other's, too.
	TLS *tls.Config
	// Other sends requests of other schemes, and those to hosts that speak HTTP/2. Nil: they
	// are an error.
	Other http.RoundTripper
	// UnencryptedHTTP2 says that hosts speak HTTP/2 without TLS: requests of the scheme http are
	// Other's, too.
	UnencryptedHTTP2 bool
}

const (
	dialTimeout   = 3 * time.Second
	headerTimeout = 60 * time.Second
	idleTimeout   = 50 * time.Second
	idleConns     = 512
	queued        = 1024
	queueTimeout  = time.Second
	headerBytes   = 64 << 10
)

// Hints is what a request's context may know: it costs less than other ways to say it. Such
// a context with a method Unwrap is not used once RoundTrip has returned and the answer's
// body was read, if the request has none: what goes on beside uses the one in it.
type Hints interface {
	// HeaderTimeout stands for Options.HeaderTimeout, if it is above 0.
	HeaderTimeout() time.Duration
	// Inform is called with each informational answer, in place of a trace of package
	// httptrace. An error ends the call.
	Inform(status int, header http.Header) error
	// Header returns an empty map for the fields of the next answer, informational ones
	// among them. Nil: one is made.
	Header() http.Header
	// Memory returns what the call is kept in. Nil: it takes its own.
	Memory() *Memory
}

// Transport sends requests. It is safe for concurrent use; its zero value is ready to use.
type Transport struct {
	Options

	mu      sync.Mutex
	hosts   map[string]*host
	sweepAt int // so many hosts are looked through for those that nobody uses
}

// leastHosts are not looked through.
const leastHosts = 64

// host is the connections to one address.
type host struct {
	next     atomic.Int64 // when overdue looks at conns, by clock
	http2    atomic.Bool  // it has chosen HTTP/2: its requests are Options.Other's
	entering atomic.Int64 // calls that have it, and no place in its pool yet
	pool     *pool.Pool[*conn]

	mu    sync.Mutex
	conns map[*conn]struct{}
	watch *time.Timer // calls overdue; nil: not yet

	warming int                // by how many it is to be kept warm; guarded by Transport.mu, as is what follows
	cool    context.CancelFunc // ends that
	used    bool               // since hosts were looked through
}

// errStale says that a connection ended before anything of the request was sent on it.
// Where no other may be tried it becomes errEnded.
var (
	errStale = errors.New("stale")
	errEnded = errors.New("the connection ended before the request was sent")
)

// RoundTrip sends the request.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	secure := r.URL != nil && r.URL.Scheme == "https" && t.TLS != nil
	if r.URL != nil && r.URL.Scheme != "http" && !secure && t.Other != nil {
		t.tellTurn(r)
		return t.Other.RoundTrip(r)
	}
	if r.URL == nil || r.URL.Scheme != "http" && !secure || r.URL.Host == "" {
		closeBody(r)
		if r.URL != nil && r.URL.Scheme == "https" && t.TLS == nil {
			return nil, errors.New("transport: the scheme https needs Options.TLS, such as new(tls.Config)")
		}
		return nil, errors.New("transport: want an absolute URL of the scheme http")
	}
	if err := valid(r); err != nil {
		closeBody(r)
		return nil, fmt.Errorf("transport: %w", err)
	}
	if r.Context().Err() != nil { // nothing goes out, also where a connection is at hand
		closeBody(r)
		return nil, context.Cause(r.Context())
	}
	h, address := t.hostOf(r)
	if h.http2.Load() && t.Conns <= 0 {
		h.entering.Add(-1)
		return t.Other.RoundTrip(r)
	}
	c, is, err := h.pool.Take(r.Context())
	h.entering.Add(-1)
	if err != nil {
		closeBody(r)
		return nil, t.busy(h, address, err)
	}
	t.tellTurn(r)
	hints := hintsOf(r.Context())
	for {
		switch {
		case is:
			if c.reused = true; !c.fits(r) {
				c, is = h.pool.Instead(c)
				continue
			}
		case h.http2.Load():
			return t.stream(h, r)
		default:
			c, err = t.open(dialContext(r), h, address, secure)
			if err == handshake.ErrHTTP2 && t.Other != nil {
				h.http2.Store(true)
				return t.stream(h, r)
			}
			if err != nil {
				h.pool.Free()
				closeBody(r)
				return nil, err
			}
		}
		res, err := c.exchange(r, hints)
		if err != errStale {
			return res, err
		}
		c, is = h.pool.Instead(c)
	}
}

// tellTurn has a request's context know that the request waits for no other one any more.
func (t *Transport) tellTurn(r *http.Request) {
	if t.Conns <= 0 {
		return
	}
	if waits, ok := r.Context().(interface{ HaveTurn() }); ok {
		waits.HaveTurn()
	}
}

// stream has Other send a request, which has a place in the host's pool until its answer is over.
func (t *Transport) stream(h *host, r *http.Request) (*http.Response, error) {
	res, err := t.Other.RoundTrip(r)
	if err == nil && res.Body == http.NoBody {
		h.pool.Free()
		return res, nil
	}
	return ending.With(res, err, sync.OnceFunc(h.pool.Free))
}

// BusyError says that a request was not sent, since as many connections to its host were in use
// as may be open, or as many streams of HTTP/2 were open.
type BusyError struct {
	Address string // host:port
	Conns   int    // may be open
	Streams bool   // they are streams of HTTP/2
	Err     error  // why it waits no more
}

func (e *BusyError) Error() string {
	what := "connection"
	if e.Streams {
		what = "stream"
	}
	return fmt.Sprintf("transport: no %s to %s is free, of %d at most: %v", what, e.Address, e.Conns, e.Err)
}

// Unwrap returns why it waits no more.
func (e *BusyError) Unwrap() error { return e.Err }

// EndedError is the end of a connection that had been kept, in place of an answer: most often the host
// keeps idle ones for less long. Nobody knows whether it has begun the request.
type EndedError struct{ error }

// busy returns why there is no connection.
func (t *Transport) busy(h *host, address string, err error) error {
	if err == pool.ErrFull || err == pool.ErrLate {
		return &BusyError{address, t.Conns, h.http2.Load(), err}
	}
	return err
}

// hostOf returns where a request goes.
func (t *Transport) hostOf(r *http.Request) (h *host, address string) {
	address, port, secure := r.URL.Host, "80", r.URL.Scheme == "https"
	if secure {
		port = "443"
	}
	if r.URL.Port() == "" {
		address = net.JoinHostPort(r.URL.Hostname(), port)
	}
	return t.host(address, secure), address
}

// valid returns what no server could take, or would take for more than one field.
func valid(r *http.Request) error {
	host := cmp.Or(r.Host, r.URL.Host)
	switch {
	case r.Method != "" && !http1.ValidFieldName(r.Method): // both are tokens
		return fmt.Errorf("%q is not a method", r.Method)
	case strings.ContainsFunc(host, func(c rune) bool { return c <= ' ' || c >= 0x7f || c == '/' }):
		return fmt.Errorf("%q is not a host", host)
	case strings.ContainsFunc(r.URL.RawQuery+r.URL.Opaque, func(c rune) bool { return c <= ' ' || c == 0x7f }): // paths are escaped
		return fmt.Errorf("%q is not a target", r.URL.RequestURI())
	}
	for _, fields := range []http.Header{r.Header, r.Trailer} {
		for name, values := range fields {
			if !http1.ValidFieldName(name) {
				return fmt.Errorf("%q is not a field's name", name)
			}
			for _, v := range values {
				if !http1.ValidFieldValue(v) {
					return fmt.Errorf("the field %s has a value that cannot be sent", name)
				}
			}
		}
	}
	return nil
}

func closeBody(r *http.Request) {
	if r.Body != nil {
		r.Body.Close()
	}
}

// host returns a host, which is kept for the caller until that takes one off entering.
func (t *Transport) host(address string, secure bool) *host {
	key := address
	if secure {
		key = "https://" + address
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.hosts[key]
	if h == nil {
		if t.hosts == nil {
			t.hosts = map[string]*host{}
		}
		t.forgetLocked()
		h = &host{conns: map[*conn]struct{}{}}
		h.http2.Store(t.UnencryptedHTTP2 && !secure)
		h.next.Store(never)
		h.pool = pool.New(pool.Options[*conn]{
			Open: t.Conns, Queue: max(cmp.Or(t.Queue, queued), 0), Wait: cmp.Or(t.QueueTimeout, queueTimeout),
			Idle: cmp.Or(t.Idle, idleConns), IdleTimeout: cmp.Or(t.IdleTimeout, idleTimeout),
			Close: h.drop, Useless: func(c *conn) bool { return !c.quiet() },
		})
		t.hosts[key] = h
	}
	h.used = true
	h.entering.Add(1)
	return h
}

// forgetLocked forgets hosts that nobody uses, now and then: addresses come and go, as those of
// pods do. That one has chosen HTTP/2 by TLS is worth knowing while it is asked.
func (t *Transport) forgetLocked() {
	if len(t.hosts) < max(t.sweepAt, leastHosts) {
		return
	}
	for key, h := range t.hosts {
		if h.entering.Load() == 0 && h.warming == 0 && (!h.used || t.UnencryptedHTTP2 || !h.http2.Load()) && h.pool.Unused() {
			delete(t.hosts, key)
		}
		h.used = false
	}
	t.sweepAt = 2 * len(t.hosts)
}

// drop closes a connection, and waits for nothing.
func (h *host) drop(c *conn) {
	c.forget()
	if c.secure != nil { // whose Close writes, which may take seconds
		go c.nc.Close()
		return
	}
	c.nc.Close()
}

// dialContext is what connections for a request are opened by: who dials may keep it.
func dialContext(r *http.Request) context.Context {
	if within, ok := r.Context().(interface{ Unwrap() context.Context }); ok {
		return within.Unwrap()
	}
	return r.Context()
}

// open opens a connection, which has a place in the host's pool already.
func (t *Transport) open(ctx context.Context, h *host, address string, secure bool) (*conn, error) {
	dial := t.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	nc, err := dial(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if !secure {
		return newConn(t, h, nc), nil
	}
	protocols := []string{"h2", "http/1.1"}
	if t.Other == nil {
		protocols = protocols[1:]
	}
	name, _, _ := net.SplitHostPort(address) // it has a port
	tc, err := handshake.Do(ctx, wrapped.Direct(nc), t.TLS, name, protocols...)
	if err != nil {
		return nil, err
	}
	c := newConn(t, h, tc)
	state := tc.ConnectionState()
	c.secure, c.state = tc, &state
	if s, ok := nc.(syscall.Conn); ok {
		c.raw, _ = s.SyscallConn() // what failed tells nothing
	}
	return c, nil
}

// KeepWarm keeps Options.Warm connections to an address, host:port, open for requests of a
// scheme, until stop is called. One that ends is opened again, within about a second; what
// cannot be opened is tried less and less often, each half minute at last. Hosts that speak
// HTTP/2 are left to Options.Other, which keeps none open.
func (t *Transport) KeepWarm(scheme, address string) (stop func()) {
	secure := scheme == "https"
	if t.Warm <= 0 || secure && t.TLS == nil || !secure && (scheme != "http" || t.UnencryptedHTTP2) {
		return func() {}
	}
	h := t.host(address, secure)
	defer h.entering.Add(-1)
	t.mu.Lock()
	defer t.mu.Unlock()
	if h.warming++; h.warming == 1 {
		ctx, cancel := context.WithCancel(context.Background())
		h.cool = cancel
		go h.pool.KeepOpen(ctx, min(t.Warm, cmp.Or(t.Idle, idleConns)), func(ctx context.Context) (*conn, error) {
			c, err := t.open(ctx, h, address, secure)
			if err == handshake.ErrHTTP2 {
				h.http2.Store(true)
				cancel()
			}
			return c, err
		})
	}
	return sync.OnceFunc(func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if h.warming--; h.warming == 0 {
			h.cool()
		}
	})
}

// CloseIdleConnections closes those that are idle now. KeepWarm opens none for half a minute.
func (t *Transport) CloseIdleConnections() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, h := range t.hosts {
		h.pool.CloseIdle()
	}
	if o, ok := t.Other.(interface{ CloseIdleConnections() }); ok {
		o.CloseIdleConnections()
	}
}

// hintsOf returns the hints of a context, or those that its trace stands for.
func hintsOf(ctx context.Context) Hints {
	if h, ok := ctx.(Hints); ok {
		return h
	}
	return (*traced)(httptrace.ContextClientTrace(ctx))
}

// traced is a trace; nil for none.
type traced httptrace.ClientTrace

func (*traced) HeaderTimeout() time.Duration { return 0 }
func (*traced) Header() http.Header          { return nil }
func (*traced) Memory() *Memory              { return nil }

func (t *traced) Inform(status int, header http.Header) error {
	if t == nil || t.Got1xxResponse == nil {
		return nil
	}
	return t.Got1xxResponse(status, textproto.MIMEHeader(header))
}
