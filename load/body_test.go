package load_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarehq/tare/load"
)

// random is n bytes without a pattern or a field, the same each time.
func random(n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{1}).Read(b)
	return bytes.ReplaceAll(b, []byte("{"), []byte("["))
}

// A body arrives whole and is said to be as long as it is, however it is sent:
// with its head, after it, or filled.
func TestBodiesArrive(t *testing.T) {
	f := feeder(t, "people.csv", "name\nAda\nBob\n")
	long := random(1 << 20)
	for i, p := range protocols {
		for _, c := range []struct {
			name string
			body []byte
			fed  bool
		}{
			{"short", long[:100], false}, {"before long", long[:16<<10-1], false}, {"long", long[:16<<10], false},
			{"very long", long, false}, {"long beside a filled URL", long, true},
			{"filled", []byte("{{.name}}" + strings.Repeat("x", 100<<10)), true},
		} {
			t.Run(p.name+"/"+c.name, func(t *testing.T) {
				var wrong atomic.Int64
				o, _ := serve(t, i, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					got, err := io.ReadAll(r.Body)
					want := c.body
					if bytes.Contains(want, []byte("{{.name}}")) {
						want = bytes.Replace(want, []byte("{{.name}}"), []byte(strings.TrimPrefix(r.URL.Path, "/")), 1)
					}
					if err != nil || !bytes.Equal(got, want) || r.ContentLength != int64(len(want)) {
						wrong.Add(1)
					}
				}))
				o.Requests, o.Connections = 12, 3
				o.Targets[0].Method, o.Targets[0].Body = "POST", c.body
				if c.fed {
					o.Feeder = f
					o.Targets[0].URL += "/{{.name}}"
				}
				r := run(t, context.Background(), o)
				if n := wrong.Load(); n > 0 || r.Counts.Status[2] != 12 {
					t.Errorf("got %+v, %d bodies not as they were given; want 12 answers and none", r.Counts, n)
				}
				if r.BytesOut < uint64(o.Requests)*uint64(len(c.body)-len("{{.name}}")) {
					t.Errorf("sent %d bytes, less than %d bodies of %d", r.BytesOut, o.Requests, len(c.body))
				}
			})
		}
	}
}

// Servers that refuse a long body answer before they have read it.
func TestLongBodyRefused(t *testing.T) {
	for i, p := range protocols {
		t.Run(p.name, func(t *testing.T) {
			o, _ := serve(t, i, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Connection", "close")
				w.WriteHeader(http.StatusRequestEntityTooLarge)
			}))
			o.Requests, o.Connections = 6, 2
			o.Targets[0].Method, o.Targets[0].Body = "POST", random(8<<20)
			r, err := load.Run(context.Background(), o)
			if r == nil {
				t.Fatal(err)
			}
			checkSums(t, r)
			if n := r.Counts.Answered() + r.Counts.Failed(); n != 6 {
				t.Errorf("got %+v, want 6 requests ended", r.Counts)
			}
			if r.Counts.Timeout > 0 {
				t.Errorf("got %+v, want none to wait for the server to read", r.Counts)
			}
		})
	}
}

// An answer counts although the server reads no more of the body than it has.
func TestLongBodyUnread(t *testing.T) {
	for i, p := range protocols {
		if p.protocol != load.HTTP1 {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			o, s := serve(t, i, http.NotFoundHandler())
			over := make(chan struct{})
			defer close(over)
			addr, _ := hostile(t, func(c net.Conn) {
				if p.tls {
					c = tls.Server(c, s.TLS)
				}
				if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
					t.Errorf("reading the request's head: %v", err)
				}
				io.WriteString(c, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n")
				<-over // with the rest unread
			})
			o.Requests, o.Connections, o.Timeout = 4, 2, 10*time.Second
			o.Targets[0] = load.Target{Method: "POST", URL: strings.Replace(s.URL, s.Listener.Addr().String(), addr, 1), Body: random(32 << 20)}
			r := run(t, context.Background(), o)
			if r.Counts.Status[4] != 4 || r.Opened != 4 {
				t.Errorf("got %+v on %d connections, want 4 answers, each on a connection of its own", r.Counts, r.Opened)
			}
			if max := uint64(o.Requests) * uint64(len(o.Targets[0].Body)); r.BytesOut == 0 || r.BytesOut >= max {
				t.Errorf("sent %d bytes, want some of the bodies' %d", r.BytesOut, max)
			}
		})
	}
}

// A long body is held once, by the caller: neither targets, nor connections,
// nor requests in flight copy it.
func TestLongBodyIsNotCopied(t *testing.T) {
	body := random(32 << 20)
	for i, p := range protocols {
		t.Run(p.name, func(t *testing.T) {
			if raceEnabled && (p.protocol != load.HTTP1 || p.tls && p.engine == load.Epoll) {
				t.Skip("with the race detector, buffers of HTTP/2, HTTP/3 and TLS are not kept")
			}
			o, _ := serve(t, i, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
			}))
			o.Requests, o.Connections = 4, 2
			o.Targets[0].Method, o.Targets[0].Body = "POST", body
			for k := range 3 {
				o.Targets = append(o.Targets, o.Targets[0])
				o.Targets[k+1].URL += fmt.Sprint("/", k)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r := run(t, context.Background(), o)
			runtime.ReadMemStats(&after)
			if r.Counts.Status[2] != 4 {
				t.Fatalf("got %+v, want 4 answers", r.Counts)
			}
			// The server's and the protocol's buffers are among it; one copy would
			// be twice as much.
			most := uint64(len(body)) / 2
			if p.protocol == load.HTTP3 {
				most *= 2 // the server's QUIC makes frames of its own for what it reads
			}
			if got := after.TotalAlloc - before.TotalAlloc; got > most {
				t.Errorf("a body of %d bytes: %d more were allocated, want at most %d", len(body), got, most)
			}
		})
	}
}
