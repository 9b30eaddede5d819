package main

import (
	"bytes"
	"math"
	"net/http/httptest"
	"runtime/debug"
	"testing"

	"github.com/tarehq/tare/arms/layers/plan"
)

func TestAnswers(t *testing.T) {
	s := newService(1000)
	for range 3 {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		if w.Code != 200 || !bytes.Equal(w.Body.Bytes(), plan.Body()) {
			t.Errorf("got %d and %d bytes", w.Code, w.Body.Len())
		}
	}
}

// A request makes the pieces that it says, linked and each of an entry.
func TestCollect(t *testing.T) {
	s := newService(1000)
	n := 0
	for p := s.collect(); p != nil; p = p.before {
		if p.of == nil {
			t.Fatal("a piece is of no entry")
		}
		n++
	}
	if n != pieces {
		t.Errorf("got %d pieces, want %d", n, pieces)
	}
	if got := testing.AllocsPerRun(100, func() { s.collect() }); got != pieces {
		t.Errorf("got %v allocations, want %d", got, pieces)
	}
}

// Asking for the facts leaves the settings as they are.
func TestFacts(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(250))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1 << 33))
	for range 2 {
		got := facts()
		if got["GOGC"] != "250" || got["GOMEMLIMIT"] != "8589934592" || got["GOEXPERIMENT"] == "" {
			t.Errorf("got %v, want 250 and 8589934592", got)
		}
	}
	debug.SetMemoryLimit(math.MaxInt64)
	if got := facts()["GOMEMLIMIT"]; got != "none" {
		t.Errorf("without a limit: got %s, want none", got)
	}
}
