package serve_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/tarehq/tare/serve"
)

// TestTLSHalfClosed has a client send a closure alert, and wait for its answer: by serve the
// request goes on until the connection ends.
func TestTLSHalfClosed(t *testing.T) {
	for _, s := range append(sides(), control()) {
		t.Run(s.name, func(t *testing.T) {
			begun, seen := make(chan bool, 1), make(chan string, 2)
			run := start(t, s, encrypted, &journal{}, func(hs *http.Server) {
				hs.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					begun <- true
					for _, wait := range []time.Duration{200 * time.Millisecond, long} {
						select {
						case <-r.Context().Done():
							seen <- "ended"
						case <-time.After(wait):
							seen <- "goes on"
						}
					}
				})
			})
			c := run.dial(t)
			c.send(request("/"))
			<-begun
			c.closeWrite()
			want := "goes on"
			if s.name == control().name {
				want = "ended"
			}
			if got := <-seen; got != want {
				t.Errorf("after the closure alert the context %s, want that it %s", got, want)
			}
			c.Close()
			if got := <-seen; got != "ended" {
				t.Errorf("after the connection's end the context %s", got)
			}
			run.stop(t)
		})
	}
}

// TestTLSSockets has TLS spoken on a connection whose calls do not tell the scheduler, and on
// TCP's own where a program may look for that.
func TestTLSSockets(t *testing.T) {
	for _, test := range []struct {
		name string
		set  func(s *serve.Server)
		own  bool
	}{
		{"no hooks", func(s *serve.Server) {}, false},
		{"ConnContext", func(s *serve.Server) {
			s.ConnContext = func(ctx context.Context, nc net.Conn) context.Context { return ctx }
		}, true},
		{"ConnState", func(s *serve.Server) { s.ConnState = func(net.Conn, http.ConnState) {} }, true},
		{"GetConfigForClient", func(s *serve.Server) {
			s.TLSConfig.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return nil, nil }
		}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			beneath := make(chan net.Conn, 1)
			s := &serve.Server{
				Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "secret") }),
				TLSConfig: &tls.Config{GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
					beneath <- h.Conn
					c := certificate()
					return &c, nil
				}},
			}
			test.set(s)
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- s.ServeTLS(l, "", "") }()
			client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
			defer client.CloseIdleConnections()
			res, err := client.Get("https://" + l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(res.Body)
			res.Body.Close()
			if err != nil || string(body) != "secret" {
				t.Errorf("the answer was %q, %v", body, err)
			}
			if _, own := (<-beneath).(*net.TCPConn); own != test.own {
				t.Errorf("the connection is TCP's own: %v, want %v", own, test.own)
			}
			s.Close()
			if err := <-ended; err != http.ErrServerClosed {
				t.Error(err)
			}
		})
	}
}
