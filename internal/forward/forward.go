// Package forward is an HTTP proxy, for tests.
package forward

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"sync"
	"sync/atomic"
	"testing"
)

// Proxy forwards what names a whole URL, and opens tunnels.
type Proxy struct {
	URL string // http://host:port

	Forwarded, Tunnels, Refused atomic.Int64 // requests

	authorization string // that Proxy-Authorization must hold; "": nothing
	onward        httputil.ReverseProxy
	wg            sync.WaitGroup // of tunnels
}

// Start starts a proxy, which ends with the test. Requests must have authorization in
// Proxy-Authorization; "" asks for nothing.
func Start(t testing.TB, authorization string) *Proxy {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	p := &Proxy{authorization: authorization, onward: httputil.ReverseProxy{
		Rewrite: func(*httputil.ProxyRequest) {}, Transport: transport, ErrorLog: log.New(io.Discard, "", 0),
	}}
	server := httptest.NewServer(p)
	p.URL = server.URL
	t.Cleanup(func() {
		server.Close()
		transport.CloseIdleConnections()
		p.wg.Wait()
	})
	return p
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case p.authorization != "" && r.Header.Get("Proxy-Authorization") != p.authorization:
		p.Refused.Add(1)
		w.Header().Set("Proxy-Authenticate", `Basic realm="test"`)
		w.WriteHeader(http.StatusProxyAuthRequired)
	case r.Method == http.MethodConnect:
		p.Tunnels.Add(1)
		p.tunnel(w, r)
	case !r.URL.IsAbs():
		http.Error(w, "the request does not name a whole URL", http.StatusBadRequest)
	default:
		p.Forwarded.Add(1)
		p.onward.ServeHTTP(w, r)
	}
}

// tunnel connects the client with the host that it asks for, until one of them closes.
func (p *Proxy) tunnel(w http.ResponseWriter, r *http.Request) {
	there, err := net.Dial("tcp", r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	here, ahead, err := http.NewResponseController(w).Hijack()
	if err != nil {
		there.Close()
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if _, err := io.WriteString(here, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		there.Close()
		here.Close()
		return
	}
	pass := func(to net.Conn, from io.Reader) {
		io.Copy(to, from)
		there.Close()
		here.Close()
	}
	p.wg.Go(func() { pass(there, ahead) })
	p.wg.Go(func() { pass(here, there) })
}
