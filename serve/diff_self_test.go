package serve_test

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// TestHarnessSeesDifferences bends one side at a time: a harness that cannot
// fail proves nothing.
func TestHarnessSeesDifferences(t *testing.T) {
	x := exchange{send: post("body")}
	want := x.hold(t, control(), whole)
	if got := want.diff(x.hold(t, control(), whole)); len(got) != 0 {
		t.Fatalf("the same server twice: %q, want no difference", got)
	}
	bends := []struct {
		name, differs string
		bend          func(http.Handler, *http.Server)
	}{
		{"a header more", "wire differs", func(h http.Handler, s *http.Server) {
			s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("X-Bent", "1")
				h.ServeHTTP(w, r)
			})
		}},
		{"a body cut short", "handler differs", func(h http.Handler, s *http.Server) {
			s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				r.Body = io.NopCloser(io.LimitReader(r.Body, 3))
				h.ServeHTTP(w, r)
			})
		}},
		{"a line logged", "log differs", func(h http.Handler, s *http.Server) {
			s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				s.ErrorLog.Print("bent")
				h.ServeHTTP(w, r)
			})
		}},
	}
	for _, b := range bends {
		t.Run(b.name, func(t *testing.T) {
			bent := side{"bent", false, func(s *http.Server) server {
				b.bend(s.Handler, s)
				return s
			}}
			got := want.diff(x.hold(t, bent, whole))
			if len(got) != 1 || !strings.HasPrefix(got[0], b.differs) {
				t.Errorf("got %q, want one difference: %s", got, b.differs)
			}
		})
	}
}

// TestHarnessSeesOneByte bends the wire below the server: one letter's case.
func TestHarnessSeesOneByte(t *testing.T) {
	x := exchange{send: request("/")}
	bent := side{"bent", false, func(s *http.Server) server { return bentWire{s} }}
	want, got := x.hold(t, control(), whole), x.hold(t, bent, whole)
	if d := want.diff(got); len(d) != 1 || !strings.HasPrefix(d[0], "wire differs") {
		t.Errorf("got %q, want one difference of the wire", d)
	}
}

type bentWire struct{ *http.Server }

func (b bentWire) Serve(l net.Listener) error { return b.Server.Serve(bentListener{l}) }

type bentListener struct{ net.Listener }

func (l bentListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return bentConn{c}, err
}

type bentConn struct{ net.Conn }

func (c bentConn) Write(p []byte) (int, error) {
	return c.Conn.Write(bytes.Replace(p, []byte("Content-Length"), []byte("content-Length"), 1))
}
