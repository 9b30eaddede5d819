package pprof_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/tarehq/tare/cost/pprof"
)

// TestEnded tells a service that is gone from one that only broke a connection, and from one
// that was never there.
func TestEnded(t *testing.T) {
	for _, tt := range []struct {
		name  string
		close bool
		want  bool
	}{{"gone", true, true}, {"there", false, false}} {
		t.Run(tt.name, func(t *testing.T) {
			var s *httptest.Server
			s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if tt.close {
					s.Listener.Close()
				}
				c, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
				c.Close()
			}))
			defer s.Close()
			p, err := pprof.Find(s.URL)
			if err != nil {
				t.Fatal(err)
			}
			_, err = p.CPU(t.Context(), time.Second)
			if err == nil || errors.Is(err, pprof.ErrEnded) != tt.want {
				t.Errorf("got %v, want that it has ended: %t", err, tt.want)
			}
			if _, err := p.Trace(t.Context(), time.Second); err == nil || errors.Is(err, pprof.ErrEnded) != tt.want {
				t.Errorf("asked again: got %v, want that it has ended: %t", err, tt.want)
			}
		})
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	p, err := pprof.Find(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.CPU(t.Context(), time.Second); err == nil || errors.Is(err, pprof.ErrEnded) {
		t.Errorf("of what never answered: got %v", err)
	}
}
