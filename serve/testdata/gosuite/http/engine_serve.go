package http

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarehq/tare/serve"
)

// Server is the one under test.
type Server = serve.Server

// StandardServer is Go's own: what a handler finds under ServerContextKey.
type StandardServer = http.Server

var (
	Serve             = serve.Serve
	ServeTLS          = serve.ServeTLS
	ListenAndServe    = serve.ListenAndServe
	ListenAndServeTLS = serve.ListenAndServeTLS
)

var serving atomic.Pointer[func(*Server, net.Listener)]

// SetTestHookServerServe has f called when a server begins to serve whose
// BaseContext is ServeHook.
func SetTestHookServerServe(f func(*Server, net.Listener)) {
	if f == nil {
		serving.Store(nil)
		return
	}
	serving.Store(&f)
}

// ServeHook is a BaseContext that calls the hook.
func ServeHook(l net.Listener) context.Context {
	if f := serving.Load(); f != nil {
		(*f)(nil, l)
	}
	return context.Background()
}

// SetRSTAvoidanceDelay changes nothing: the tests that call it try again with a
// longer delay until it is as long as the server's.
func SetRSTAvoidanceDelay(*testing.T, time.Duration) {}

// ExportHttp2ConfigureServer asks for HTTP/2 on TLS connections that the tests'
// own listener makes.
func ExportHttp2ConfigureServer(s *Server, _ any) error {
	if s.TLSConfig == nil {
		s.TLSConfig = new(tls.Config)
	}
	for _, proto := range []string{"h2", "http/1.1"} {
		if !slices.Contains(s.TLSConfig.NextProtos, proto) {
			s.TLSConfig.NextProtos = append(s.TLSConfig.NextProtos, proto)
		}
	}
	return nil
}
