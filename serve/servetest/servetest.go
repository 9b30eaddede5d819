// Package servetest runs a serve.Server on a loopback port for the length of a
// test, as httptest does with http.Server.
//
// Its use is that of httptest.NewServer; moving a test over changes the import
// and the name of the package.
package servetest

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"

	"github.com/tarehq/tare/serve"
)

// Server is a server on a port of the loopback interface that the system chose.
// Its methods are safe for concurrent use once it is started.
type Server struct {
	URL      string // http://ip:port or https://ip:port, without a slash at the end
	Listener net.Listener
	// Config may be changed between NewUnstartedServer and Start.
	Config *serve.Server
	// TLS is the configuration of StartTLS: what is set before is kept, a
	// certificate is added if there is none.
	TLS *tls.Config
	// EnableHTTP2 has StartTLS offer HTTP/2.
	EnableHTTP2 bool

	client      *http.Client
	certificate *x509.Certificate
	// busy counts the goroutine that accepts, and the connections that have neither
	// ended nor been hijacked.
	busy   sync.WaitGroup
	mu     sync.Mutex
	conns  map[net.Conn]http.ConnState
	closed bool
}

// NewServer starts a server with handler h. Close ends it.
func NewServer(h http.Handler) *Server {
	s := NewUnstartedServer(h)
	s.Start()
	return s
}

// NewTLSServer starts a server with handler h that speaks TLS. Client trusts it.
func NewTLSServer(h http.Handler) *Server {
	s := NewUnstartedServer(h)
	s.StartTLS()
	return s
}

// NewUnstartedServer returns a server that listens but does not serve yet. It
// panics if there is no port to be had, as httptest does.
func NewUnstartedServer(h http.Handler) *Server {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		if l, err = net.Listen("tcp6", "[::1]:0"); err != nil {
			panic(fmt.Sprintf("servetest: listening on a loopback port: %v", err))
		}
	}
	return &Server{Listener: l, Config: &serve.Server{Handler: h}}
}

// Start begins to serve HTTP.
func (s *Server) Start() {
	s.start("http", &http.Client{Transport: &http.Transport{}})
}

// StartTLS begins to serve TLS.
func (s *Server) StartTLS() {
	// A server of httptest's works out the configuration, and a client for it.
	model := httptest.NewUnstartedServer(nil)
	defer model.Close()
	model.TLS, model.EnableHTTP2 = s.TLS, s.EnableHTTP2
	model.StartTLS()
	s.TLS, s.certificate = model.TLS, model.Certificate()
	s.Listener = tls.NewListener(s.Listener, s.TLS)
	s.start("https", model.Client())
}

func (s *Server) start(scheme string, client *http.Client) {
	if s.URL != "" {
		panic("servetest: server already started")
	}
	s.URL = scheme + "://" + s.Listener.Addr().String()
	s.client = client
	tr := client.Transport.(*http.Transport)
	tr.DialContext = s.dial(tr, scheme)
	s.conns = map[net.Conn]http.ConnState{}
	hook := s.Config.ConnState
	s.Config.ConnState = func(c net.Conn, state http.ConnState) {
		known := s.note(c, state)
		if hook != nil {
			hook(c, state)
		}
		if known && over(state) {
			s.busy.Done()
		}
	}
	s.busy.Go(func() { s.Config.Serve(s.Listener) })
}

// note keeps what c is about, and reports whether it was known.
func (s *Server) note(c net.Conn, state http.ConnState) bool {
	s.mu.Lock()
	_, known := s.conns[c]
	closed := s.closed
	switch {
	case over(state):
		delete(s.conns, c)
	case known:
		s.conns[c] = state
	case state == http.StateNew:
		s.busy.Add(1) // not from zero: the goroutine that accepts is one
		s.conns[c] = state
	}
	s.mu.Unlock()
	if closed && quiet(state) && (state == http.StateNew || !s.multiplexes(c)) {
		sever(c)
	}
	return known
}

// multiplexes reports whether c, which has had a request, may speak HTTP/2. Then it
// is idle before the end of the last answer is written, and a server without
// keep-alives says farewell by itself.
func (s *Server) multiplexes(c net.Conn) bool {
	if t, ok := c.(*tls.Conn); ok {
		return t.ConnectionState().NegotiatedProtocol == "h2"
	}
	return s.Config.Protocols != nil && s.Config.Protocols.UnencryptedHTTP2()
}

// over reports whether a connection is none of the server's any more.
func over(state http.ConnState) bool {
	return state == http.StateClosed || state == http.StateHijacked
}

// quiet reports whether a connection has no request.
func quiet(state http.ConnState) bool { return state == http.StateNew || state == http.StateIdle }

// Client returns a client that trusts the server's certificate and finds the
// server also as example.com and its subdomains. Close closes its idle
// connections. It is nil before the server is started.
func (s *Server) Client() *http.Client { return s.client }

// Certificate returns the server's certificate, nil if it does not speak TLS.
func (s *Server) Certificate() *x509.Certificate { return s.certificate }

// Close ends the server. It closes connections without a request at once, lets
// the others come to the end of theirs, and returns when all have.
func (s *Server) Close() {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	s.mu.Unlock()
	if first {
		s.Listener.Close()
		s.Config.SetKeepAlivesEnabled(false)
		s.sever(quiet)
	}
	new(http.Client).CloseIdleConnections() // those of http.DefaultTransport
	if s.client != nil {
		s.client.CloseIdleConnections()
	}
	s.busy.Wait()
}

// CloseClientConnections ends the connections that are open now, whatever they
// are about.
func (s *Server) CloseClientConnections() {
	s.sever(func(http.ConnState) bool { return true })
}

// sever ends the connections in such states.
func (s *Server) sever(which func(http.ConnState) bool) {
	var all sync.WaitGroup
	defer all.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for c, state := range s.conns {
		if which(state) {
			all.Go(func() { sever(c) })
		}
	}
}
