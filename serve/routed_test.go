package serve_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"testing"

	"github.com/tarehq/tare/serve"
	"github.com/tarehq/tare/serve/router"
)

// TestRoutedAllocations holds that matching a route with parameters adds no
// allocation to a request on a Server: it offers the router room, and to one of few
// fields no more than that.
func TestRoutedAllocations(t *testing.T) {
	for _, reuse := range []bool{false, true} {
		want, most := 5.0, 1450.0 // an exchange, the text of the head, the map of its fields, the map of the answer's (two)
		if reuse {
			want, most = 0, 1
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
			got, bytes := requestAllocations(t, &serve.Server{Handler: rt, Reuse: reuse})
			if got > want || bytes > most {
				t.Errorf("%v allocations and %.0f bytes a request, want at most %v and %.0f", got, bytes, want, most)
			}
		})
	}
}

// requestAllocations returns how many allocations a server makes for a request
// to /users/ann/posts/7, and of how many bytes.
func requestAllocations(t *testing.T, s *serve.Server) (count, bytes float64) {
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
	// As AllocsPerRun does, but before the first request: a change of it empties pools.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	out := []byte("GET /users/ann/posts/7 HTTP/1.1\r\nHost: localhost\r\n\r\n")
	in := make([]byte, 4096)
	if _, err := c.Write(out); err != nil {
		t.Fatal(err)
	}
	n, err := c.Read(in)
	if err != nil {
		t.Fatal(err)
	}
	const rounds = 2000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	count = testing.AllocsPerRun(rounds, func() {
		if _, err := c.Write(out); err != nil {
			t.Error(err)
		}
		if _, err := io.ReadFull(c, in[:n]); err != nil {
			t.Error(err)
		}
	})
	runtime.ReadMemStats(&after)
	return count, float64(after.TotalAlloc-before.TotalAlloc) / rounds
}
