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

	"github.com/tarehq/tare/serve/client/transport/internal/handshake"
	"github.com/tarehq/tare/serve/internal/http1"
)

// Options of a transport. The zero value is right for calls between services.
type Options struct {
	// Dial opens connections. Nil: by TCP, within 3 s.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// HeaderTimeout is how long an answer's header may take once the request was sent.
	// 0: 60 s; negative: for ever.
	HeaderTimeout time.Duration
	// IdleTimeout is how long an idle connection is kept. 0: 50 s.
	IdleTimeout time.Duration
	// Idle is the most idle connections of a host. 0: 512.
	Idle int
	// HeaderBytes is the most bytes of an answer's header. 0: 64 KiB.
	HeaderBytes int
	// TLS is for requests of the scheme https. Its NextProtos are set, to HTTP/2, if Other is
	// there for that, and HTTP/1.1. Nil: such requests are Other's, too.
	TLS *tls.Config
	// Other sends requests of other schemes, and those to hosts that choose HTTP/2. Nil: they
	// are an error.
	Other http.RoundTripper
}

const (
	dialTimeout   = 3 * time.Second
	headerTimeout = 60 * time.Second
	idleTimeout   = 50 * time.Second
	idleConns     = 512
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
}

// Transport sends requests. It is safe for concurrent use; its zero value is ready to use.
type Transport struct {
	Options

	mu    sync.Mutex
	hosts map[string]*host
}

// host is the connections to one address.
type host struct {
	next  atomic.Int64 // when overdue looks at conns, by clock
	http2 atomic.Bool  // it has chosen HTTP/2: its requests are Options.Other's

	mu    sync.Mutex
	conns map[*conn]struct{}
	watch *time.Timer // calls overdue; nil: not yet
	idle  []*conn     // the one used last at the end
	sweep *time.Timer // nil: none is idle
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
		return t.Other.RoundTrip(r)
	}
	if r.URL == nil || r.URL.Scheme != "http" && !secure || r.URL.Host == "" {
		closeBody(r)
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
	hints := hintsOf(r.Context())
	for {
		if h.http2.Load() {
			return t.Other.RoundTrip(r)
		}
		c, err := t.conn(r, h, address)
		if err == handshake.ErrHTTP2 && t.Other != nil {
			h.http2.Store(true)
			continue
		}
		if err != nil {
			closeBody(r)
			return nil, err
		}
		res, err := c.exchange(r, hints)
		if err != errStale {
			return res, err
		}
	}
}

// hostOf returns where a request goes.
func (t *Transport) hostOf(r *http.Request) (h *host, address string) {
	address, port, key := r.URL.Host, "80", ""
	if r.URL.Scheme == "https" {
		port, key = "443", "https://"
	}
	if r.URL.Port() == "" {
		address = net.JoinHostPort(r.URL.Hostname(), port)
	}
	return t.host(key + address), address
}

// valid returns what no server could take, or would take for more than one field.
func valid(r *http.Request) error {
	host := cmp.Or(r.Host, r.URL.Host)
	switch {
	case r.Method != "" && !http1.ValidFieldName(r.Method): // both are tokens
		return fmt.Errorf("%q is not a method", r.Method)
	case strings.ContainsFunc(host, func(c rune) bool { return c <= ' ' || c >= 0x7f || c == '/' }):
		return fmt.Errorf("%q is not a host", host)
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

func (t *Transport) host(key string) *host {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.hosts[key]
	if h == nil {
		if t.hosts == nil {
			t.hosts = map[string]*host{}
		}
		h = &host{conns: map[*conn]struct{}{}}
		h.next.Store(never)
		t.hosts[key] = h
	}
	return h
}

// conn returns an idle connection that has not ended, or a new one. Of a request without a
// body that can wait until it is sent: it goes on another connection then.
func (t *Transport) conn(r *http.Request, h *host, address string) (*conn, error) {
	for {
		c := h.take()
		if c == nil {
			break
		}
		if c.socket != nil && !hasBody(r) || c.quiet() {
			c.reused = true
			return c, nil
		}
		c.close()
	}
	dial := t.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	ctx := r.Context()
	if within, ok := ctx.(interface{ Unwrap() context.Context }); ok { // who dials may keep it
		ctx = within.Unwrap()
	}
	nc, err := dial(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if r.URL.Scheme != "https" {
		return newConn(t, h, nc), nil
	}
	protocols := []string{"h2", "http/1.1"}
	if t.Other == nil {
		protocols = protocols[1:]
	}
	secure, err := handshake.Do(ctx, nc, t.TLS, r.URL.Hostname(), protocols...)
	if err != nil {
		return nil, err
	}
	c := newConn(t, h, secure)
	state := secure.ConnectionState()
	c.secure, c.state = secure, &state
	if s, ok := nc.(syscall.Conn); ok {
		c.raw, _ = s.SyscallConn() // what failed tells nothing
	}
	return c, nil
}

func (h *host) take() *conn {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(h.idle)
	if n == 0 {
		return nil
	}
	c := h.idle[n-1]
	h.idle[n-1] = nil
	h.idle = h.idle[:n-1]
	return c
}

// keep has a connection wait for a next request.
func (t *Transport) keep(h *host, c *conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.idle) >= cmp.Or(t.Idle, idleConns) {
		h.dropLocked(c)
		return
	}
	c.since = time.Now()
	h.idle = append(h.idle, c)
	if h.sweep == nil {
		h.sweep = time.AfterFunc(cmp.Or(t.IdleTimeout, idleTimeout), func() { t.clean(h) })
	}
}

func (h *host) dropLocked(c *conn) {
	delete(h.conns, c)
	if c.secure != nil { // whose Close writes, which may take seconds
		go c.nc.Close()
		return
	}
	c.nc.Close()
}

// clean closes connections that have been idle for too long: those at the beginning.
func (t *Transport) clean(h *host) {
	timeout := cmp.Or(t.IdleTimeout, idleTimeout)
	h.mu.Lock()
	defer h.mu.Unlock()
	old := 0
	for old < len(h.idle) && time.Since(h.idle[old].since) >= timeout {
		h.dropLocked(h.idle[old])
		old++
	}
	h.idle = append(h.idle[:0], h.idle[old:]...)
	if len(h.idle) == 0 {
		h.sweep = nil
		return
	}
	h.sweep.Reset(timeout - time.Since(h.idle[0].since))
}

// CloseIdleConnections closes those that are idle now.
func (t *Transport) CloseIdleConnections() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, h := range t.hosts {
		h.mu.Lock()
		for _, c := range h.idle {
			h.dropLocked(c)
		}
		h.idle = nil
		h.mu.Unlock()
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

func (t *traced) Inform(status int, header http.Header) error {
	if t == nil || t.Got1xxResponse == nil {
		return nil
	}
	return t.Got1xxResponse(status, textproto.MIMEHeader(header))
}
