package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/tarehq/tare/arms/layers/plan"
)

// Both ways take as many hops to the same answer.
func TestHops(t *testing.T) {
	for _, hops := range []int{1, 16, 64} {
		for _, by := range []string{"interface", "type"} {
			h, err := handler(by, hops)
			if err != nil {
				t.Fatal(err)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
			if w.Code != 200 || !bytes.Equal(w.Body.Bytes(), plan.Body()) || count(h) != hops {
				t.Errorf("%s: got %d, %d bytes and %d hops, want %d", by, w.Code, w.Body.Len(), count(h), hops)
			}
		}
	}
	for by, hops := range map[string]int{"interface": 0, "type": 1001, "name": 1} {
		if h, err := handler(by, hops); err == nil {
			t.Errorf("%d hops by %s: got %v, want an error", hops, by, h)
		}
	}
}

func count(h http.Handler) int {
	switch h := h.(type) {
	case *open:
		return 1 + count(h.next)
	case *closed:
		if h.next != nil {
			return 1 + count(h.next)
		}
		return 1
	}
	return 0
}

func BenchmarkHops(b *testing.B) {
	for _, by := range []string{"interface", "type"} {
		b.Run("by="+by, func(b *testing.B) {
			h, err := handler(by, 16)
			if err != nil {
				b.Fatal(err)
			}
			w, r := &discard{http.Header{}}, httptest.NewRequest("GET", "/", nil)
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(w, r)
			}
		})
	}
}

// discard keeps nothing of an answer.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}
