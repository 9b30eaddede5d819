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
type Server struct {
	URL      string // http://ip:port or https://ip:port, without a slash at the end
	Listener net.Listener
	// Config may be changed between NewUnstartedServer and Start.
	Config *serve.Server
	// TLS is the configuration of StartTLS: what is set before is kept, a
	// certificate is added.
	TLS *tls.Config
	// EnableHTTP2 has StartTLS offer HTTP/2.
	EnableHTTP2 bool

	client *http.Client
	serves sync.WaitGroup
	mu     sync.Mutex
	conns  map[net.Conn]struct{}
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
	s.client = &http.Client{Transport: &http.Transport{}}
	s.start("http")
}

// StartTLS begins to serve TLS.
func (s *Server) StartTLS() {
	// The certificate that httptest has for its own servers serves here too.
	model := httptest.NewUnstartedServer(nil)
	model.StartTLS()
	cert := model.TLS.Certificates[0]
	root := model.Certificate()
	model.Close()

	config := &tls.Config{}
	if s.TLS != nil {
		config = s.TLS.Clone()
	}
	if config.NextProtos == nil {
		config.NextProtos = []string{"http/1.1"}
		if s.EnableHTTP2 {
			config.NextProtos = []string{"h2", "http/1.1"}
		}
	}
	if len(config.Certificates) == 0 {
		config.Certificates = []tls.Certificate{cert}
	}
	s.TLS = config
	roots := x509.NewCertPool()
	roots.AddCert(root)
	s.client = &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots},
		ForceAttemptHTTP2: s.EnableHTTP2,
	}}
	s.Listener = tls.NewListener(s.Listener, config)
	s.start("https")
}

func (s *Server) start(scheme string) {
	if s.URL != "" {
		panic("servetest: server already started")
	}
	s.URL = scheme + "://" + s.Listener.Addr().String()
	s.conns = map[net.Conn]struct{}{}
	hook := s.Config.ConnState
	s.Config.ConnState = func(c net.Conn, state http.ConnState) {
		s.note(c, state)
		if hook != nil {
			hook(c, state)
		}
	}
	s.serves.Go(func() { s.Config.Serve(s.Listener) })
}

func (s *Server) note(c net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch state {
	case http.StateNew:
		s.conns[c] = struct{}{}
	case http.StateClosed, http.StateHijacked:
		delete(s.conns, c)
	}
}

// Client returns a client that trusts the server's certificate. Close closes its
// idle connections.
func (s *Server) Client() *http.Client { return s.client }

// Close ends the server and its connections at once.
func (s *Server) Close() {
	s.Listener.Close()
	s.Config.Close()
	s.serves.Wait()
	if s.client != nil {
		s.client.CloseIdleConnections()
	}
}

// CloseClientConnections closes the connections that are open now.
func (s *Server) CloseClientConnections() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.Close()
	}
}
