package chain_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/servetest"
)

func TestRecorderOnServe(t *testing.T) {
	sees(t, func(h http.Handler) (*http.Client, string) {
		s := servetest.NewUnstartedServer(h)
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		s.Start()
		t.Cleanup(s.Close)
		return s.Client(), s.URL
	})
}

// The engine has a place for the state: no layer and no chain copies the
// request, and requests that follow on a connection share nothing.
func TestStateOnServe(t *testing.T) {
	for _, reuse := range []bool{false, true} {
		var outside *http.Request
		layer := func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r != outside {
					t.Errorf("reuse %t: the chain copied the request", reuse)
				}
				next.ServeHTTP(w, idKey.With(r, r.URL.Path))
			})
		}
		h := chain.Must(chain.New(layer).Then(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if v, ok := userKey.Value(r); ok {
				t.Errorf("reuse %t: got %v of another request", reuse, v)
			}
			userKey.Set(r, ada)
			id, _ := idKey.Value(r)
			_, _ = io.WriteString(w, id)
		})))
		s := servetest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			outside = r
			h.ServeHTTP(w, r)
		}))
		s.Config.Reuse = reuse
		s.Start()
		for i := range 20 {
			if got, want := get(t, s.Client(), fmt.Sprintf("%s/%d", s.URL, i)), fmt.Sprintf("/%d", i); got != want {
				t.Errorf("reuse %t: got %q, want %q", reuse, got, want)
			}
		}
		s.Close()
	}
}

// TestKeptRequestsOnServe is TestKeptRequests on the engine, whose next request
// on the connection begins while the last is kept.
func TestKeptRequestsOnServe(t *testing.T) {
	var kept sync.WaitGroup
	s := servetest.NewServer(chain.Must(chain.New(pass).Then(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.URL.Path
		idKey.Set(r, id)
		_, _ = io.WriteString(w, id)
		kept.Go(func() {
			for range 50 {
				if got, _ := idKey.Value(r); got != id {
					t.Errorf("kept request %s: got %q", id, got)
				}
				userKey.Set(r, ada)
			}
		})
	}))))
	defer s.Close()
	for i := range 100 {
		if got, want := get(t, s.Client(), fmt.Sprintf("%s/%d", s.URL, i)), fmt.Sprintf("/%d", i); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	kept.Wait()
}

// Parts of a batch that no chain is around share nothing either: not what the
// first finds out of its user, nor the answers of parts served at once.
func TestBatchOnServe(t *testing.T) {
	part := chain.Must(chain.New(pass).Then(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if v, ok := idKey.Value(r); ok {
			t.Errorf("part %s: got %q of another", r.URL.Path, v)
		}
		idKey.Set(r, r.URL.Path)
		_, _ = io.WriteString(w, r.URL.Path)
	})))
	batch := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var parts sync.WaitGroup
		for i := range 8 {
			serve := func() {
				sub := r.Clone(r.Context())
				sub.URL.Path = fmt.Sprint("/", i)
				rec := httptest.NewRecorder()
				part.ServeHTTP(rec, sub)
				if got := rec.Body.String(); got != sub.URL.Path {
					t.Errorf("part %s: got %q", sub.URL.Path, got)
				}
			}
			if r.URL.Path == "/one-by-one" {
				serve()
			} else {
				parts.Go(serve)
			}
		}
		parts.Wait()
		part.ServeHTTP(w, r)
	})
	for _, reuse := range []bool{false, true} {
		s := servetest.NewUnstartedServer(batch)
		s.Config.Reuse = reuse
		s.Start()
		for _, path := range []string{"/one-by-one", "/at-once"} {
			for range 3 {
				if got := get(t, s.Client(), s.URL+path); got != path {
					t.Errorf("reuse %t: got %q, want %q", reuse, got, path)
				}
			}
		}
		s.Close()
	}
}
