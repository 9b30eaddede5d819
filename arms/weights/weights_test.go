package main

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/tarehq/tare/arms/serve/engines"
	"github.com/tarehq/tare/arms/weights/plan"
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

// writer keeps nothing, and has the engine's place for a chain's state.
type writer struct {
	header http.Header
	slotter
}

type slotter interface{ ChainSlot() *any }

func (w *writer) Header() http.Header         { return w.header }
func (w *writer) Write(p []byte) (int, error) { return len(p), nil }
func (w *writer) WriteHeader(int)             {}
