package serve_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/tarehq/tare/serve"
	"github.com/tarehq/tare/serve/router"
)

// TestRoutedAllocations holds that matching a route with parameters adds no
// allocation to a request on a Server: it offers the router room.
func TestRoutedAllocations(t *testing.T) {
	for _, reuse := range []bool{false, true} {
		want := 3.0 // an exchange, the head's text, the map of fields
		if reuse {
			want = 0
		}
		t.Run(fmt.Sprintf("reuse=%t", reuse), func(t *testing.T) {
			rt := new(router.Router)
			kind := []string{"text/plain"}
			body := []byte("hello")
			rt.HandleFunc("GET /users/{user}/posts/{post}", func(w http.ResponseWriter, r *http.Request) {
				if r.PathValue("user") != "ann" || r.PathValue("post") != "7" {
					t.Errorf("path values %q and %q, want ann and 7", r.PathValue("user"), r.PathValue("post"))
				}
				w.Header()["Content-Type"] = kind
				w.Write(body)
			})
			got := requestAllocations(t, &serve.Server{Handler: rt, Reuse: reuse})
			if got > want {
				t.Errorf("%v allocations a request, want at most %v", got, want)
			}
		})
	}
}

// requestAllocations returns how many allocations a server makes for a request
// to /users/ann/posts/7.
func requestAllocations(t *testing.T, s *serve.Server) float64 {
	t.Helper()
	if raceEnabled {
		t.Skip("the race detector allocates, too")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { s.Serve(l); close(ended) }()
	defer func() { s.Close(); <-ended }()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	out := []byte("GET /users/ann/posts/7 HTTP/1.1\r\nHost: localhost\r\n\r\n")
	in := make([]byte, 4096)
	if _, err := c.Write(out); err != nil {
		t.Fatal(err)
	}
	n, err := c.Read(in)
	if err != nil {
		t.Fatal(err)
	}
	return testing.AllocsPerRun(1000, func() {
		if _, err := c.Write(out); err != nil {
			t.Error(err)
		}
		if _, err := io.ReadFull(c, in[:n]); err != nil {
			t.Error(err)
		}
	})
}
