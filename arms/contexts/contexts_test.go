package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tarehq/tare/arms/layers/plan"
)

func handler(t *testing.T, s *service, by string) http.Handler {
	t.Helper()
	h, err := s.routes(by)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// However values travel, the handler finds all of them, the context is looked
// at, and the answer is the same. plan.Found panics where one is missing.
func TestAnswersAreTheSame(t *testing.T) {
	for _, by := range []string{"argument", "captured", "captured-anew", "closure", "single", "values", "global", "chain"} {
		s := newService(nil)
		h := handler(t, s, by)
		for i, path := range []string{"/now", "/held", "/long"} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
			if w.Code != 200 || !bytes.Equal(w.Body.Bytes(), plan.Body()) || s.audited.Load() != int64(i+1) {
				t.Errorf("%s %s: got %d, %d bytes and %d audits", by, path, w.Code, w.Body.Len(), s.audited.Load())
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/now", nil).WithContext(ctx))
		// What a constructor has made once, before any request, knows of no client.
		if got := s.audited.Load() != 3; got != (by == "captured") {
			t.Errorf("%s: a client that had gone was counted: got %t", by, got)
		}
	}
}

// What each way allocates is what sets it apart.
func TestAllocations(t *testing.T) {
	for by, want := range map[string]float64{
		"argument":      0,
		"captured":      0,
		"captured-anew": 2,          // the context and the closure
		"closure":       1,          // itself
		"single":        3,          // the struct, the context, the request
		"values":        2 * layers, // a context and a request each
		"global":        1,          // the struct
	} {
		s := newService(nil)
		h, err := s.handler(by)
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest("GET", "/now", nil)
		w := &discard{http.Header{}}
		if got := testing.AllocsPerRun(100, func() { h.ServeHTTP(w, r) }); got != want {
			t.Errorf("%s: %v allocations, want %v", by, got, want)
		}
	}
}

// A request that runs the published constructor pays for a value context and a closure of it.
func TestBytesOfTheConstructor(t *testing.T) {
	s := newService(nil)
	h, err := s.handler("captured-anew")
	if err != nil {
		t.Fatal(err)
	}
	r, w := httptest.NewRequest("GET", "/now", nil), &discard{http.Header{}}
	got := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			h.ServeHTTP(w, r)
		}
	}).AllocedBytesPerOp()
	if got != 48+24 {
		t.Errorf("got %d B, want 48 for the context and 24 for the closure", got)
	}
}

func TestUnknown(t *testing.T) {
	if _, err := newService(nil).handler("post"); err == nil || !strings.Contains(err.Error(), names) {
		t.Errorf("by post: got %v, want an error that names %s", err, names)
	}
}

// discard keeps nothing of an answer.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}
