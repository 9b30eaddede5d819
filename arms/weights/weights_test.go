package main

import (
	"bytes"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tarehq/tare/arms/serve/engines"
	"github.com/tarehq/tare/arms/weights/plan"
	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/servetest"
)

// request is the study's, with the token that the study has.
func request(t testing.TB) *http.Request {
	t.Helper()
	b, err := os.ReadFile("../../studies/weights.yaml")
	if err != nil {
		t.Fatal(err)
	}
	token := regexp.MustCompile(`Authorization: (Bearer \S+)`).FindSubmatch(b)
	if token == nil {
		t.Fatal("studies/weights.yaml has no token")
	}
	r := httptest.NewRequest("GET", "/orders/7", nil)
	r.Header.Set("Authorization", string(token[1]))
	r.Header.Set("Origin", plan.Origin)
	r.Header.Set("X-Api-Key", plan.Key)
	return r
}

// TestLayers has each layer answer the study's request.
func TestLayers(t *testing.T) {
	asked := request(t)
	t.Chdir(t.TempDir())
	for _, name := range append(slices.Sorted(maps.Keys(makers)), "none", "guards", "recovery,jwt") {
		h, err := handler(name)
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, asked.Clone(t.Context()))
		if w.Code != http.StatusOK || w.Body.Len() != 1024 {
			t.Errorf("%s: %d, %d bytes", name, w.Code, w.Body.Len())
		}
	}
	for _, name := range []string{"magic", "recovery,magic", "", "jwt,recovery"} {
		if _, err := handler(name); err == nil {
			t.Errorf("%q: got no error", name)
		}
	}
}

// BenchmarkLayers is the study's loop without the study.
func BenchmarkLayers(b *testing.B) {
	for _, name := range append([]string{"none"}, append(slices.Sorted(maps.Keys(makers)), "guards")...) {
		if name == "accesslog-file" {
			continue // it would fill the disk
		}
		b.Run(name, func(b *testing.B) {
			h, err := handler(name)
			if err != nil {
				b.Fatal(err)
			}
			ctx, renew := engines.Serve.LoopContext()()
			r := request(b).WithContext(ctx)
			w := &writer{http.Header{}, ctx.(slotter)}
			b.ReportAllocs()
			for b.Loop() {
				renew()
				clear(w.header)
				h.ServeHTTP(w, r)
			}
		})
	}
}

// stack are the layers that study guards has on serve, but that their log keeps nothing.
const stack = "recovery,requestid,clientaddr,accesslog,metrics,secure,ratelimit,timeout,jwt"

// BenchmarkStack is that stack without the server, for a client that connects itself and one
// behind a proxy: by one goroutine, and by all processors at a time, which then share its
// counts, its limits and its log.
func BenchmarkStack(b *testing.B) {
	h, err := handler(stack)
	if err != nil {
		b.Fatal(err)
	}
	for _, from := range []string{"client", "proxy"} {
		asked := request(b)
		asked.RemoteAddr = "203.0.113.7:40000"
		if from == "proxy" {
			asked.RemoteAddr = "127.0.0.1:40000"
			asked.Header.Set("X-Forwarded-For", "203.0.113.7")
		}
		serving := func() func() {
			ctx, renew := engines.Serve.LoopContext()()
			r := asked.Clone(ctx)
			w := &writer{http.Header{}, ctx.(slotter)}
			return func() {
				renew()
				clear(w.header)
				h.ServeHTTP(w, r)
			}
		}
		b.Run("from="+from+"/by=one", func(b *testing.B) {
			serve := serving()
			b.ReportAllocs()
			for b.Loop() {
				serve()
			}
		})
		b.Run("from="+from+"/by=all", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				serve := serving()
				for pb.Next() {
					serve()
				}
			})
		})
	}
}

// BenchmarkServed is the stack of study guards on serve, over one connection, client
// included: what the engine does for it is in the difference to none.
func BenchmarkServed(b *testing.B) {
	token := request(b).Header.Get("Authorization")
	for _, layers := range []string{"none", stack} {
		name, _, _ := strings.Cut(layers, ",")
		b.Run("outermost="+name, func(b *testing.B) {
			h, err := handler(layers)
			if err != nil {
				b.Fatal(err)
			}
			s := servetest.NewServer(h)
			defer s.Close()
			nc, err := net.Dial("tcp", s.Listener.Addr().String())
			if err != nil {
				b.Fatal(err)
			}
			defer nc.Close()
			asked := []byte("GET /orders/7 HTTP/1.1\r\nHost: a\r\nAuthorization: " + token + "\r\nX-Forwarded-For: 203.0.113.7\r\nAccept: application/json\r\n\r\n")
			answer := make([]byte, 4096)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := nc.Write(asked); err != nil {
					b.Fatal(err)
				}
				n, err := nc.Read(answer)
				if err != nil || !bytes.HasPrefix(answer[:n], []byte("HTTP/1.1 200 OK\r\n")) || !bytes.HasSuffix(answer[:n], []byte("}")) {
					b.Fatalf("got %q, %v", answer[:n], err)
				}
			}
		})
	}
}

// writer keeps nothing, and has the engine's place for a chain's state.
type writer struct {
	header http.Header
	slotter
}

type slotter interface{ ChainSlot() *chain.Slot }

func (w *writer) Header() http.Header         { return w.header }
func (w *writer) Write(p []byte) (int, error) { return len(p), nil }
func (w *writer) WriteHeader(int)             {}
