package exectrace_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/tarehq/tare/cost/exectrace"
)

// TestFirstByte leaves out of a connection's first request what it was idle before, also
// of a server that looks first whether HTTP/2 without TLS is spoken. The quickest of several
// requests counts, since a busy machine makes them longer.
func TestFirstByte(t *testing.T) {
	for _, clear := range []bool{false, true} {
		for _, begun := range []bool{false, true} {
			r := firstRequest(t, clear, begun)
			for tries := 1; tries < 5 && r.Slow.Count > 0; tries++ {
				r = firstRequest(t, clear, begun)
			}
			if r.Count+r.Cut != 1 || r.Slow.Count != 0 {
				t.Errorf("HTTP/2 without TLS %t, begun before the trace %t: %d requests, %d cut, %d slow; want one, not slow", clear, begun, r.Count, r.Cut, r.Slow.Count)
			}
		}
	}
}

// firstRequest traces the first request of a connection that was idle before, one that may
// have begun before the trace.
func firstRequest(t *testing.T, clear, begun bool) *exectrace.Requests {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "done") }))
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(clear)
	s.Start()
	defer s.Close()
	var c net.Conn
	dial := func() {
		var err error
		if c, err = net.Dial("tcp", s.Listener.Addr().String()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(slowly)
	}
	if begun {
		dial()
	}
	b := recorded(t, func() {
		if !begun {
			dial()
		}
		time.Sleep(slowly)
		io.WriteString(c, "GET / HTTP/1.0\r\nHost: x\r\n\r\n")
		if _, err := io.ReadAll(c); err != nil {
			t.Fatal(err)
		}
	})
	c.Close()
	r, err := exectrace.ReadRequests(b, exectrace.Options{SlowerThan: bound})
	if err != nil {
		t.Fatal(err)
	}
	return r
}
