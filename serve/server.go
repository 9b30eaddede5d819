package serve

import (
	"cmp"
	"context"
	"crypto/tls"
	"log"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarehq/tare/serve/internal/http1"
	"github.com/tarehq/tare/serve/internal/listener"
	"github.com/tarehq/tare/serve/internal/wrapped"
)

// Server serves HTTP. Its fields and methods are those of http.Server, with the
// same meaning except where they say otherwise; the zero value is ready to use.
// Fields must not be changed once it serves. Its methods are safe for concurrent
// use.
type Server struct {
	// Addr is the TCP address to listen on, host:port; ":http" if empty.
	Addr string
	// Handler answers requests; nil is http.DefaultServeMux.
	Handler http.Handler
	// DisableGeneralOptionsHandler passes OPTIONS * to Handler, which is
	// otherwise answered with 200 and no body.
	DisableGeneralOptionsHandler bool
	// TLSConfig is for ServeTLS and ListenAndServeTLS, which clone it.
	TLSConfig *tls.Config

	// ReadTimeout is the most time from a request's first byte to the end of
	// its body. Zero or less: none, but see Limits.StallTimeout.
	ReadTimeout time.Duration
	// ReadHeaderTimeout is the most time from a request's first byte to the end
	// of its head, and from a connection's opening, its TLS handshake included,
	// to the first request's first byte; also for an HTTP/2 preface. Zero: ReadTimeout, or 10
	// s if that is zero too (http.Server: none). Less: none.
	ReadHeaderTimeout time.Duration
	// WriteTimeout is the most time from the end of a request's head to the end
	// of the answer. Zero or less: none, but see Limits.StallTimeout.
	WriteTimeout time.Duration
	// IdleTimeout is how long a connection is kept between two requests. Zero:
	// ReadTimeout, or 3 minutes if that is zero too (http.Server: for ever).
	// Less: for ever.
	IdleTimeout time.Duration
	// MaxHeaderBytes is the most bytes of a request's head. Zero: 64 KiB
	// (http.Server: 1 MiB).
	MaxHeaderBytes int

	// TLSNextProto serves the connections that agreed on one of its protocols
	// by ALPN. If it is not nil, HTTP/2 is not served of itself.
	TLSNextProto map[string]func(*http.Server, *tls.Conn, http.Handler)
	// ConnState is called as a connection's state changes. It may close the
	// connection. Deadlines that it, a handler or ConnContext sets on the
	// connection itself hold while a body is read or an answer written;
	// between requests the server's limits rule.
	ConnState func(net.Conn, http.ConnState)
	// ErrorLog is for what goes wrong beside requests; nil is the standard
	// logger.
	ErrorLog *log.Logger
	// BaseContext gives the context that all of a listener's requests derive
	// from; nil is the background context.
	BaseContext func(net.Listener) context.Context
	// ConnContext may derive a context for all requests of a connection.
	ConnContext func(ctx context.Context, c net.Conn) context.Context
	// HTTP2 configures HTTP/2.
	HTTP2 *http.HTTP2Config
	// Protocols are the protocols served. Nil is HTTP/1 and, with TLS, HTTP/2.
	Protocols *http.Protocols

	// Reuse hands a connection's requests to the handler in the same memory:
	// the *http.Request, its headers and URL with every string in them, and its
	// context hold until the handler returns and must not be kept. It saves
	// three to six allocations a request. What must outlive the handler must be copied,
	// each string of it (strings.Clone): Request.Clone shares them. So
	// http.TimeoutHandler and others that leave a goroutine behind with the
	// request do not go with it, nor do tracers that export spans later.
	Reuse bool
	// Limits guard the server against clients; the zero value is safe.
	Limits Limits
	// Lenient lets in what http.Server lets in and this server refuses.
	Lenient Lenient

	closed atomic.Bool // Shutdown or Close was called
	muted  atomic.Bool // keep-alives are switched off

	mu         sync.Mutex
	engine     *engine // made by the first Serve
	listeners  map[*listener.Listener]struct{}
	accepting  sync.WaitGroup // a listener each
	onShutdown []func()
}

// Limits bound what clients can make a server hold and wait for. In each field
// zero stands for a safe default and less than zero for no limit.
type Limits struct {
	// MaxHeaders is the most header fields of a request. Zero: 100.
	MaxHeaders int
	// MaxConns is the most connections at a time. Beyond it the one that has
	// been longest about a request's head is closed in favour of a new one, or
	// else the one that has been idle longest, or else (Linux) the slowest of
	// those that move less than ten times MinRate while the server waits for
	// them; if there is none, new ones wait.
	// So it is where the process has no more file descriptors. Zero: nine in
	// ten of those that it may open.
	MaxConns int
	// MaxConnsPerAddr is the most connections at a time from one IP address;
	// more are closed as they come. The address is what the connection's
	// RemoteAddr returns, which with the PROXY protocol is the client's. Zero: as
	// many as MaxConns, since many clients may come through one proxy.
	MaxConnsPerAddr int
	// StallTimeout is how long a request's body or an answer may stop on the
	// client's part; at most twice that if it went on well before. Zero: 30 s.
	StallTimeout time.Duration
	// MinRate is the least bytes a second, over a StallTimeout, at which a
	// body must come or an answer be taken while the server waits for it.
	// HTTP/2 looks at an answer by pieces of 16 KiB, one of which must be taken
	// in a StallTimeout. Zero: 100.
	MinRate int
	// MaxDrain is the most bytes of an unread body that are read to keep a
	// connection. Zero: 256 KiB, as http.Server.
	MaxDrain int64
	// ShutdownGrace is how long Shutdown waits for a further request on an idle
	// connection before closing it, so that no request crosses with its end.
	// Zero: 250 ms; less than zero: not at all. Shutdown looks at it again.
	ShutdownGrace time.Duration
}

// Lenient switches to http.Server's reading of requests where this server's
// strictness can hurt a client. The zero value is strict. Its fields, each a bool, are
// BareLF, Fold, SameLengths, LengthAndChunked, OldChunked, OtherHost, RawTarget, UserInfo,
// Connect, ConnectPath, EmptyHost and Preface: docs/strictness.md says what each lets in.
type Lenient = http1.Lenient

// The limits that zero stands for.
const (
	defaultHeaderTimeout = 10 * time.Second
	defaultIdleTimeout   = 3 * time.Minute
	defaultHeaderBytes   = 64 << 10
	defaultStallTimeout  = 30 * time.Second
	defaultMinRate       = 100
	defaultDrain         = 256 << 10
	defaultGrace         = 250 * time.Millisecond
)

// or returns v, or the default if v is zero; less than zero is none, which
// callers see as zero.
func or[T int | int64 | time.Duration](v, def T) T {
	switch {
	case v == 0:
		return def
	case v < 0:
		return 0
	}
	return v
}

func (s *Server) headerTimeout() time.Duration {
	if s.ReadHeaderTimeout == 0 && s.ReadTimeout != 0 {
		return max(0, s.ReadTimeout)
	}
	return or(s.ReadHeaderTimeout, defaultHeaderTimeout)
}

func (s *Server) idleTimeout() time.Duration {
	if s.IdleTimeout == 0 && s.ReadTimeout != 0 {
		return max(0, s.ReadTimeout)
	}
	return or(s.IdleTimeout, defaultIdleTimeout)
}

func (s *Server) headerBytes() int {
	if s.MaxHeaderBytes > 0 {
		return s.MaxHeaderBytes
	}
	return defaultHeaderBytes
}

// protocols returns what is served, as http.Server works it out.
func (s *Server) protocols() http.Protocols {
	if s.Protocols != nil {
		return *s.Protocols
	}
	var p http.Protocols
	p.SetHTTP1(true)
	_, own := s.TLSNextProto["h2"]
	p.SetHTTP2(own || s.TLSNextProto == nil && standardHTTP2())
	return p
}

// standardHTTP2 reports whether http.Server would serve HTTP/2 of itself, which
// GODEBUG=http2server=0 keeps it from.
func standardHTTP2() bool {
	var s http.Server
	s.Serve(&handedListener{})
	return s.TLSNextProto["h2"] != nil
}

func (s *Server) logf(format string, args ...any) {
	if s.ErrorLog != nil {
		s.ErrorLog.Printf(format, args...)
		return
	}
	log.Printf(format, args...)
}

// keepAlive reports whether connections may serve further requests.
func (s *Server) keepAlive() bool { return !s.closed.Load() && !s.muted.Load() }

// SetKeepAlivesEnabled sets whether connections are kept between requests, as
// they are by default. Switching it off closes idle connections after
// Limits.ShutdownGrace.
func (s *Server) SetKeepAlivesEnabled(v bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.engine != nil && s.muted.Load() == v {
		s.engine.ending.Store(0) // from the first look on that sees it muted
	}
	s.muted.Store(!v)
	if s.engine != nil {
		s.engine.clock.all.Store(true)
		s.engine.shadow.SetKeepAlivesEnabled(v)
	}
}

// ListenAndServe listens on Addr and serves. It returns when the server fails,
// or http.ErrServerClosed once Shutdown or Close was called.
func (s *Server) ListenAndServe() error {
	if s.closed.Load() {
		return http.ErrServerClosed
	}
	l, err := s.listen(":http")
	if err != nil {
		return err
	}
	return s.Serve(l)
}

// listen listens on Addr without MPTCP, whose sockets cannot be sealed before they close.
func (s *Server) listen(addr string) (net.Listener, error) {
	var config net.ListenConfig
	config.SetMultipathTCP(false)
	return config.Listen(context.Background(), "tcp", cmp.Or(s.Addr, addr))
}

// ListenAndServeTLS listens on Addr and serves TLS with the certificate and key
// in these files, which may be empty if TLSConfig has certificates.
func (s *Server) ListenAndServeTLS(certFile, keyFile string) error {
	if s.closed.Load() {
		return http.ErrServerClosed
	}
	l, err := s.listen(":https")
	if err != nil {
		return err
	}
	defer l.Close()
	return s.ServeTLS(l, certFile, keyFile)
}

// ServeTLS serves TLS on l; see ListenAndServeTLS.
func (s *Server) ServeTLS(l net.Listener, certFile, keyFile string) error {
	config := &tls.Config{}
	if s.TLSConfig != nil {
		config = s.TLSConfig.Clone()
	}
	protos := s.protocols()
	config.NextProtos = slices.DeleteFunc(slices.Clone(config.NextProtos), func(p string) bool {
		return p == "h2" && !protos.HTTP2() || p == "http/1.1" && !protos.HTTP1()
	})
	if protos.HTTP2() && !slices.Contains(config.NextProtos, "h2") {
		config.NextProtos = append(config.NextProtos, "h2")
	}
	if protos.HTTP1() && !slices.Contains(config.NextProtos, "http/1.1") {
		config.NextProtos = append(config.NextProtos, "http/1.1")
	}
	if len(config.Certificates) == 0 && config.GetCertificate == nil && config.GetConfigForClient == nil || certFile != "" || keyFile != "" {
		cert, err := tls.LoadX509KeyPair(certFile, keyFile)
		if err != nil {
			return err
		}
		config.Certificates = []tls.Certificate{cert}
	}
	if err := standardTLS(config.Clone(), protos, maps.Clone(s.TLSNextProto)); err != nil {
		return err
	}
	beneath := l
	if s.ConnContext == nil && s.ConnState == nil && config.GetConfigForClient == nil { // who may want TCP's own
		beneath = wrapped.DirectListener{Listener: l}
	}
	return s.serve(listener.New(tls.NewListener(beneath, config), wrapped.Listener(l)))
}

// standardTLS returns what http.Server has against the configuration, such as that
// it lacks the ciphers that HTTP/2 needs.
func standardTLS(config *tls.Config, protos http.Protocols, next map[string]func(*http.Server, *tls.Conn, http.Handler)) error {
	s := http.Server{TLSConfig: config, Protocols: &protos, TLSNextProto: next}
	if err := s.ServeTLS(&handedListener{}, "", ""); err != net.ErrClosed {
		return err
	}
	return nil
}

// Serve accepts connections from l and serves each in a goroutine of its own.
// It closes l when it returns: with http.ErrServerClosed once Shutdown or Close
// was called, else with the error of a listener that is of no more use. Running
// out of file descriptors is not such an error.
func (s *Server) Serve(l net.Listener) error {
	return s.serve(listener.New(l, wrapped.Listener(l)))
}

func (s *Server) serve(once *listener.Listener) error {
	defer once.Close()
	e, err := s.admit(once)
	if err != nil {
		return err
	}
	defer s.dismiss(once)
	base := context.Background()
	if s.BaseContext != nil {
		if base = s.BaseContext(once.Listener); base == nil {
			panic("BaseContext returned a nil context")
		}
	}
	return e.accept(context.WithValue(base, http.ServerContextKey, e.shadow), once)
}

// admit notes a listener, so that Shutdown finds it.
func (s *Server) admit(l *listener.Listener) (*engine, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed.Load() {
		return nil, http.ErrServerClosed
	}
	if s.engine == nil {
		s.engine = newEngine(s)
	}
	if s.listeners == nil {
		s.listeners = map[*listener.Listener]struct{}{}
	}
	s.listeners[l] = struct{}{}
	s.accepting.Add(1)
	return s.engine, nil
}

func (s *Server) dismiss(l *listener.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, l)
	s.accepting.Done()
}

// RegisterOnShutdown has Shutdown call f in a goroutine of its own, for instance
// to end hijacked connections.
func (s *Server) RegisterOnShutdown(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onShutdown = append(s.onShutdown, f)
}

// ListenAndServe serves h on addr with an otherwise zero Server.
func ListenAndServe(addr string, h http.Handler) error {
	return (&Server{Addr: addr, Handler: h}).ListenAndServe()
}

// ListenAndServeTLS serves h on addr by TLS with an otherwise zero Server.
func ListenAndServeTLS(addr, certFile, keyFile string, h http.Handler) error {
	return (&Server{Addr: addr, Handler: h}).ListenAndServeTLS(certFile, keyFile)
}

// Serve serves h on l with an otherwise zero Server.
func Serve(l net.Listener, h http.Handler) error {
	return (&Server{Handler: h}).Serve(l)
}

// ServeTLS serves h on l by TLS with an otherwise zero Server.
func ServeTLS(l net.Listener, h http.Handler, certFile, keyFile string) error {
	return (&Server{Handler: h}).ServeTLS(l, certFile, keyFile)
}
