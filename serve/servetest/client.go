package servetest

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strings"
	"time"
)

// dial connects as tr does, but to the server where a request by this scheme is for
// example.com or below, as httptest has it. A Dial that a test gives tr goes first.
func (s *Server) dial(tr *http.Transport, scheme string) func(context.Context, string, string) (net.Conn, error) {
	port := ":80"
	if scheme == "https" {
		port = ":443"
	}
	var d net.Dialer
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		//lint:ignore SA1019 old tests still set it
		if tr.Dial != nil {
			//lint:ignore SA1019 old tests still set it
			return tr.Dial(network, addr)
		}
		host, ok := strings.CutSuffix(addr, port)
		if ok && (host == "example.com" || strings.HasSuffix(host, ".example.com")) {
			addr = s.Listener.Addr().String()
		}
		return d.DialContext(ctx, network, addr)
	}
}

// sever ends c in both directions and leaves it to its server to close it. Of a
// socket that is closed on this side a poller tells nothing, and a handler that
// waits for its client's going would wait on.
func sever(c net.Conn) {
	if t, ok := c.(*tls.Conn); ok {
		t.SetWriteDeadline(time.Now()) // a write that hangs would keep the farewell from its turn
		t.CloseWrite()
		c = t.NetConn()
	}
	half, ok := c.(interface {
		CloseRead() error
		CloseWrite() error
	})
	if !ok {
		c.Close()
		return
	}
	half.CloseWrite() // first: a handler that is told must not answer any more
	half.CloseRead()
}
