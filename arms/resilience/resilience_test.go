package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// served asks a path n times and returns how many requests were cut off, and how long the
// longest took.
func served(t *testing.T, h http.Handler, path string, n int) (failed int, longest time.Duration) {
	t.Helper()
	for range n {
		w, begun := httptest.NewRecorder(), time.Now()
		func() {
			defer func() {
				if recover() != nil {
					failed++
				} else if w.Code != http.StatusOK || w.Body.String() != body {
					t.Fatalf("%s: %d %q", path, w.Code, w.Body)
				}
			}()
			h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		}()
		longest = max(longest, time.Since(begun))
	}
	return failed, longest
}

// serviceAmidFaults returns a service whose upstreams have a long bad time ahead.
func serviceAmidFaults(t *testing.T, guard string) http.Handler {
	t.Helper()
	h, err := newService(guard, script{well: 0, bad: period})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestGuards holds each guard to what it keeps from clients while upstreams are bad, and
// has all of them do without while they are well.
func TestGuards(t *testing.T) {
	for _, c := range []struct {
		guard, path string
		least, most int // failures of 100 requests while the upstreams are bad
	}{
		{"none", "/one", 25, 25},
		{"eject", "/one", 3, 3},
		{"retry", "/one", 0, 0},
		{"fallback", "/one", 0, 0},
		{"none", "/share", 8, 40},
		{"fallback", "/share", 0, 0},
	} {
		if got, _ := served(t, serviceAmidFaults(t, c.guard), c.path, 100); got < c.least || got > c.most {
			t.Errorf("%s, %s: %d of 100 failed, want %d to %d", c.guard, c.path, got, c.least, c.most)
		}
	}
	for _, c := range []struct {
		guard       string
		least, most time.Duration
	}{{"none", stall, 10 * stall}, {"eject", stall, 10 * stall}, {"fallback", tooSlow, stall - 50*time.Millisecond}} {
		failed, longest := served(t, serviceAmidFaults(t, c.guard), "/slow", 1)
		for tries := 1; tries < 5 && longest > c.most; tries++ { // a busy machine makes it longer
			failed, longest = served(t, serviceAmidFaults(t, c.guard), "/slow", 1)
		}
		if failed > 0 || longest < c.least || longest > c.most {
			t.Errorf("%s: %d failed, the longest took %s, want %s to %s", c.guard, failed, longest, c.least, c.most)
		}
	}
	h, err := newService("none", script{well: period})
	if err != nil {
		t.Fatal(err)
	}
	if failed, _ := served(t, h, "/one", 50); failed > 0 {
		t.Errorf("%d of 50 failed while all is well", failed)
	}
	if _, err := newService("nothing", script{}); err == nil || !strings.Contains(err.Error(), guards) {
		t.Errorf("got %v, want an error that says what there is", err)
	}
}
