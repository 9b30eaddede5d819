package main

import (
	"bytes"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tarehq/tare/arms/layers/plan"
)

// Whoever defers, each layer counts every request in and out, and the answer is
// the same.
func TestEveryWayCounts(t *testing.T) {
	for defers, parts := range map[string]int64{
		"none": 0, "outer": 0, "middle": 0, "inner": 0, "all": 0, "recover": 0, "loop": 1, "unrolled": 1,
	} {
		s := newService()
		h, err := s.handler(defers)
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		if w.Code != 200 || !bytes.Equal(w.Body.Bytes(), plan.Body()) {
			t.Errorf("%s: got %d and %d bytes", defers, w.Code, w.Body.Len())
		}
		for i := range s.layers {
			if now, all := s.layers[i].now.Load(), s.layers[i].all.Load(); now != 0 || all != 1 {
				t.Errorf("%s: layer %d counts %d under way of %d, want 0 of 1", defers, i, now, all)
			}
		}
		for i := range s.parts {
			if now, all := s.parts[i].now.Load(), s.parts[i].all.Load(); now != 0 || all != parts {
				t.Errorf("%s: part %d counts %d under way of %d, want 0 of %d", defers, i, now, all, parts)
			}
		}
	}
}

// After a panic only layers that defer count out, and only those that recover
// answer.
func TestPanic(t *testing.T) {
	for defers, want := range map[string]struct {
		now  [3]int64
		code int
	}{
		"none": {[3]int64{1, 1, 1}, 0}, "middle": {[3]int64{1, 0, 1}, 0}, "all": {[3]int64{}, 0}, "recover": {[3]int64{}, 500},
	} {
		s := newService()
		h, err := s.handler(defers)
		if err != nil {
			t.Fatal(err)
		}
		s.answer = nil // the handler panics
		w := httptest.NewRecorder()
		code := 0
		func() {
			defer func() {
				if recover() == nil {
					code = w.Code
				}
			}()
			h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		}()
		got := [3]int64{s.layers[0].now.Load(), s.layers[1].now.Load(), s.layers[2].now.Load()}
		if got != want.now || code != want.code {
			t.Errorf("%s: after a panic %v under way and status %d, want %v and %d", defers, got, code, want.now, want.code)
		}
	}
}

func TestUnknown(t *testing.T) {
	if _, err := newService().handler("some"); err == nil || !strings.Contains(err.Error(), names) {
		t.Errorf("defers some: got %v, want an error that names %s", err, names)
	}
}
