package inside_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	httppprof "net/http/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/lab/arm"
	"github.com/tarehq/tare/lab/inside"
)

// serve is a server that runs already, as a process.
func serve(t *testing.T, h http.Handler) *arm.Process {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	proc, err := arm.Start(t.Context(), arm.Program{URL: srv.URL}, arm.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return proc
}

// kept has what a request allocates escape.
var kept []byte

//go:noinline
func burn(w http.ResponseWriter, _ *http.Request) {
	for start := time.Now(); time.Since(start) < time.Millisecond; {
	}
	kept = make([]byte, 64<<10)
	w.WriteHeader(http.StatusNoContent)
}

// A program that knows nothing of tare is profiled by what it exposes: what a handler burns
// and allocates while it is watched is the handler's.
func TestExposed(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/", burn)
	mux.HandleFunc("/debug/pprof/", httppprof.Index)
	mux.HandleFunc("/debug/pprof/profile", httppprof.Profile)
	proc := serve(t, mux)
	r, err := inside.New(t.Context(), proc)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	load.Go(func() {
		for ctx.Err() == nil {
			if res, err := http.Get(proc.URL() + "/"); err == nil {
				res.Body.Close()
			}
		}
	})
	err = r.Watch(t.Context(), time.Second)
	stop()
	load.Wait()
	if err != nil {
		t.Fatal(err)
	}
	taken, err := r.Profiles(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if ns := valueOf(taken.CPU.Stacks, ".burn"); ns <= 0 || len(taken.RawCPU) == 0 {
		t.Errorf("%g ns are charged to the handler, and the profile has %d bytes, want some of each", ns, len(taken.RawCPU))
	}
	if bytes := valueOf(taken.Allocs.Stacks, ".burn"); bytes < 64<<10 {
		t.Errorf("%g bytes are charged to the handler, want 64 KiB a request", bytes)
	}
}

// valueOf sums the stacks that a function is in.
func valueOf(stacks []cost.Stack, suffix string) (sum float64) {
	for _, s := range stacks {
		for _, f := range s.Frames {
			if strings.HasSuffix(f.Func, suffix) {
				sum += s.Value
				break
			}
		}
	}
	return sum
}

// A server that answers everything, and one that answers nothing there, expose no profiles.
func TestNotExposed(t *testing.T) {
	for name, h := range map[string]http.Handler{
		"everything": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("hello")) }),
		"nothing":    http.NotFoundHandler(),
	} {
		proc := serve(t, h)
		if s := inside.Exposed(t.Context(), proc); s != nil {
			t.Errorf("a server that answers %s: found profiles at %s", name, s)
		}
		if _, err := inside.New(t.Context(), proc); !errors.Is(err, arm.ErrNoControl) || !strings.Contains(err.Error(), "no net/http/pprof") {
			t.Errorf("a server that answers %s: error %v, want it to say what it lacks", name, err)
		}
	}
}
