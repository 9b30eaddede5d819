package exectrace_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/pprof"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/exectrace"
)

// TestProbes has servers trace themselves as whoever looks on asks for it, behind
// middlewares that hand requests to goroutines of their own. The requests for the
// trace and for a profile beside it do not count; one that is stuck behind the same
// middleware does.
func TestProbes(t *testing.T) {
	for _, tc := range []struct {
		name   string
		around func(http.Handler) http.Handler
	}{
		{"plain", func(h http.Handler) http.Handler { return h }},
		{"closure", timed},
		{"wait group", func(h http.Handler) http.Handler { return grouped{h} }},
		{"method", func(h http.Handler) http.Handler { return handed{h} }},
	} {
		t.Run(tc.name, func(t *testing.T) { probed(t, tc.around) })
	}
}

func timed(h http.Handler) http.Handler { return http.TimeoutHandler(h, time.Minute, "too late") }

// grouped waits for the handler by a wait group.
type grouped struct{ next http.Handler }

func (g grouped) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var all sync.WaitGroup
	all.Go(func() { g.next.ServeHTTP(w, r) })
	all.Wait()
}

// handed waits for a method that calls the handler.
type handed struct{ next http.Handler }

func (h handed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	done := make(chan bool)
	go h.call(w, r, done)
	<-done
}

func (h handed) call(w http.ResponseWriter, r *http.Request, done chan bool) {
	defer close(done)
	h.next.ServeHTTP(w, r)
}

func probed(t *testing.T, around func(http.Handler) http.Handler) {
	w := newWaiters(t)
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("/stuck", w.Receive)
	mux.HandleFunc("/slow", w.Doze)
	url, c := start(t, "net/http", around(mux))
	var trace []byte
	var all sync.WaitGroup
	all.Go(func() { ask(t, c, url+"/stuck", nil) })
	<-w.begun
	all.Go(func() { ask(t, c, url+"/debug/pprof/profile?seconds=1", nil) })
	all.Go(func() {
		var err error
		if trace, err = fetched(c, url+"/debug/pprof/trace?seconds=1"); err != nil {
			t.Error(err)
		}
		w.given <- true
	})
	time.Sleep(4 * slowly)
	ask(t, c, url+"/slow", nil)
	all.Wait()
	r, err := exectrace.ReadRequests(bytes.NewReader(trace), exectrace.Options{SlowerThan: bound})
	if err != nil {
		t.Fatal(err)
	}
	adds(t, r)
	waits, err := exectrace.Read(bytes.NewReader(trace))
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range waits.Waits {
		if i := slices.IndexFunc(w.Stack.Frames, func(f cost.Frame) bool { return strings.HasPrefix(f.Func, "net/http/pprof.") }); i >= 0 {
			t.Errorf("%s waited %.0f ns: that is who looks on", w.Stack.Frames[i].Func, w.Stack.Value)
		}
	}
	// Where the profile's waited is not known if it ends before the tracer tells: its
	// end is then taken for a request's.
	if r.Count != 1 || r.Cut > 2 || r.Slow.Count != 2 || r.Slow.Cut != 1 {
		t.Errorf("%d requests and %d cut, of them slow %d and %d; want 1 and at most 2, 2 and 1: %s", r.Count, r.Cut, r.Slow.Count, r.Slow.Cut, list(r.Slow.Parts))
	}
}

// fetched returns the body of an answer that is one.
func fetched(c *http.Client, url string) ([]byte, error) {
	res, err := c.Get(url)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", res.Status, b)
	}
	return b, err
}
