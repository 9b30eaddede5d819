package main

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"
)

func made(t *testing.T, o options) http.Handler {
	t.Helper()
	if o.client == "" {
		o.client = "shared"
	}
	if o.work == "" {
		o.work = "wait"
	}
	s, err := newService(o)
	if err != nil {
		t.Fatal(err)
	}
	return s.routes()
}

func status(h http.Handler, path string) int {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	if w.Code == 200 && w.Body.String() != body {
		return -1
	}
	return w.Code
}

// No arm cuts off a call that takes long by its nature.
func TestAnswersAreTheSame(t *testing.T) {
	for _, client := range []string{"shared", "each", "no-deadline", "by-kind", "one-limit"} {
		h := made(t, options{client: client})
		for _, path := range []string{"/", "/internal", "/stall", "/partner", "/transfer"} {
			if got := status(h, path); got != 200 {
				t.Errorf("%s: %s answers %d, want 200", client, path, got)
			}
		}
	}
	for _, o := range []options{{client: "none", work: "wait"}, {client: "shared", work: "none"}} {
		if _, err := newService(o); err == nil || !strings.Contains(err.Error(), `"none": want`) {
			t.Errorf("%+v: got %v, want an error that says what there is", o, err)
		}
	}
}

// A call that stalls outlives its request unless it has a deadline.
func TestStalledCalls(t *testing.T) {
	const n = 5
	for client, stays := range map[string]bool{"shared": false, "by-kind": false, "one-limit": false, "no-deadline": true} {
		h := made(t, options{client: client})
		before := runtime.NumGoroutine()
		for range n {
			status(h, "/stall")
		}
		gained := 0
		for range 100 { // what ends may take a while to
			if gained = runtime.NumGoroutine() - before; (gained >= n) == stays {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		if (gained >= n) != stays {
			t.Errorf("%s: %d stalled calls left %d goroutines, want that many and more: %t", client, n, gained, stays)
		}
	}
}

// A queue answers before the call is made, and a full one is waited for.
func TestQueues(t *testing.T) {
	for work, want := range map[string]bool{"queue": true, "queue-bounded": false} {
		h := made(t, options{work: work, slots: 1, delay: time.Hour})
		done := make(chan struct{})
		go func() {
			for range bounded + 10 {
				status(h, "/")
			}
			close(done)
		}()
		select {
		case <-done:
			if !want {
				t.Errorf("%s: all calls were queued, want the full queue to be waited for", work)
			}
		case <-time.After(2 * time.Second):
			if want {
				t.Errorf("%s: not all calls were queued in 2 s", work)
			}
		}
	}
}

// A slot is held for as long as the call takes.
func TestSlots(t *testing.T) {
	h := made(t, options{slots: 1, delay: 50 * time.Millisecond})
	start := time.Now()
	done := make(chan int)
	for range 3 {
		go func() { done <- status(h, "/") }()
	}
	for range 3 {
		if got := <-done; got != 200 {
			t.Errorf("got %d, want 200", got)
		}
	}
	if took := time.Since(start); took < 150*time.Millisecond {
		t.Errorf("three calls of 50 ms through one slot took %s", took)
	}
}
