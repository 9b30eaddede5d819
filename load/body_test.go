package load_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

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

// A long body is held once, by the caller: neither targets, nor connections,
// nor requests in flight copy it.
func TestLongBodyIsNotCopied(t *testing.T) {
	body := random(32 << 20)
	for i, p := range protocols {
		t.Run(p.name, func(t *testing.T) {
			if raceEnabled && p.protocol == load.HTTP2 {
				t.Skip("with the race detector, HTTP/2's buffers are not kept")
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
			if got, most := after.TotalAlloc-before.TotalAlloc, uint64(len(body))/2; got > most {
				t.Errorf("a body of %d bytes: %d more were allocated, want at most %d", len(body), got, most)
			}
		})
	}
}
