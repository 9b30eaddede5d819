package arm

import (
	"context"
	"net/http"
	"slices"
	"testing"
)

// The harness's own part of what the loop reports.
func BenchmarkCall(b *testing.B) {
	empty := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	for name, q := range map[string]LoopRequest{
		"body=0":  {Target: "/"},
		"body=4k": {Method: "POST", Target: "/", Body: string(make([]byte, 4096))},
	} {
		b.Run(name, func(b *testing.B) {
			call := handlerLoop(empty, nil)(q)
			b.ReportAllocs()
			for b.Loop() {
				call()
			}
		})
	}
}

// TestCallIsFresh: what a handler stores in one request is not in the next.
func TestCallIsFresh(t *testing.T) {
	var form, header bool
	call := handlerLoop(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		form, header = r.Form != nil, w.Header().Get("X-Seen") != ""
		r.ParseForm()
		w.Header().Set("X-Seen", "1")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusAccepted)
		w.WriteHeader(http.StatusTeapot)
	}), nil)(LoopRequest{Target: "/?a=b"})
	for i := range 2 {
		if a := call(); a.Status != http.StatusAccepted || form || header {
			t.Errorf("call %d: got status %d, parsed form %v, header %v, want 202 and a request as new", i, a.Status, form, header)
		}
	}
}

// TestContextOfTheLoop: a handler that needs an engine's context has it, renewed
// before every call.
func TestContextOfTheLoop(t *testing.T) {
	type key struct{}
	renewed, made := 0, 0
	newContext := func() (context.Context, func()) {
		made++
		return context.WithValue(t.Context(), key{}, made), func() { renewed++ }
	}
	var seen []any
	prepare := handlerLoop(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Context().Value(key{}), renewed)
	}), newContext)
	first, second := prepare(LoopRequest{Target: "/"}), prepare(LoopRequest{Target: "/"})
	first()
	first()
	second()
	if want := []any{1, 1, 1, 2, 2, 3}; !slices.Equal(seen, want) {
		t.Errorf("contexts and renewals: got %v, want %v", seen, want)
	}
}
