package timeout_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/middleware/timeout"
)

func Example() {
	limit, err := timeout.New(timeout.Options{After: time.Millisecond})
	if err != nil {
		panic(err)
	}
	h := limit(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done() // a query that takes too long
	}))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	fmt.Print(w.Code, " ", w.Body)
	// Output: 503 Service Unavailable
}

func within(t *testing.T, d time.Duration) func(http.Handler) http.Handler {
	t.Helper()
	mw, err := timeout.New(timeout.Options{After: d})
	if err != nil {
		t.Fatal(err)
	}
	return mw
}

// both runs a test alone and in a chain.
func both(t *testing.T, d time.Duration, f func(t *testing.T, wrap func(http.HandlerFunc) http.Handler)) {
	t.Run("alone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f(t, func(h http.HandlerFunc) http.Handler { return within(t, d)(h) })
		})
	})
	t.Run("chain", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f(t, func(h http.HandlerFunc) http.Handler { return chain.Must(chain.New(within(t, d)).Then(h)) })
		})
	})
}

func TestAnswers(t *testing.T) {
	both(t, time.Second, func(t *testing.T, wrap func(http.HandlerFunc) http.Handler) {
		for name, c := range map[string]struct {
			h    http.HandlerFunc
			code int
			body string
		}{
			"in time": {func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok") }, 200, "ok"},
			"late, silent": {func(w http.ResponseWriter, r *http.Request) {
				<-r.Context().Done()
				if !errors.Is(r.Context().Err(), context.DeadlineExceeded) {
					panic(r.Context().Err())
				}
			}, 503, "Service Unavailable\n"},
			"late, own answer": {func(w http.ResponseWriter, r *http.Request) {
				<-r.Context().Done()
				w.WriteHeader(http.StatusGatewayTimeout)
			}, 504, ""},
			"late, begun": {func(w http.ResponseWriter, r *http.Request) {
				io.WriteString(w, "half")
				<-r.Context().Done()
			}, 200, "half"},
			"late, deaf": {func(w http.ResponseWriter, r *http.Request) {
				time.Sleep(2 * time.Second)
			}, 503, "Service Unavailable\n"},
			"by polling": {func(w http.ResponseWriter, r *http.Request) {
				for r.Context().Err() == nil {
					time.Sleep(100 * time.Millisecond)
				}
			}, 503, "Service Unavailable\n"},
			"by a derived context": {func(w http.ResponseWriter, r *http.Request) {
				ctx, cancel := context.WithTimeout(r.Context(), time.Hour)
				defer cancel()
				<-ctx.Done()
			}, 503, "Service Unavailable\n"},
		} {
			w := httptest.NewRecorder()
			wrap(c.h).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
			if w.Code != c.code || w.Body.String() != c.body {
				t.Errorf("%s: %d %q, want %d %q", name, w.Code, w.Body, c.code, c.body)
			}
		}
	})
}

// TestAnswerThatDidNotCome has the handler describe an answer that it then has no time for: the
// 503 has none of that, or caches would keep it as long.
func TestAnswerThatDidNotCome(t *testing.T) {
	both(t, time.Second, func(t *testing.T, wrap func(http.HandlerFunc) http.Handler) {
		w := httptest.NewRecorder()
		wrap(func(w http.ResponseWriter, r *http.Request) {
			for _, field := range []string{"Cache-Control", "Content-Encoding", "Etag", "X-Request-Id"} {
				w.Header().Set(field, "x")
			}
			<-r.Context().Done()
		}).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		h := w.Header()
		if w.Code != 503 || len(h["Cache-Control"])+len(h["Content-Encoding"])+len(h["Etag"]) > 0 || h.Get("X-Request-Id") != "x" {
			t.Errorf("%d, %v", w.Code, h)
		}
	})
}

// TestContext holds the context to what package context promises.
func TestContext(t *testing.T) {
	both(t, time.Minute, func(t *testing.T, wrap func(http.HandlerFunc) http.Handler) {
		type name struct{}
		outer, cancel := context.WithCancel(context.WithValue(t.Context(), name{}, "v"))
		var late context.Context
		h := wrap(func(_ http.ResponseWriter, r *http.Request) {
			ctx := r.Context()
			late = ctx
			if at, ok := ctx.Deadline(); !ok || time.Until(at) != time.Minute {
				t.Errorf("deadline %v %t", at, ok)
			}
			if ctx.Value(name{}) != "v" || ctx.Err() != nil {
				t.Errorf("value %v, error %v", ctx.Value(name{}), ctx.Err())
			}
			goroutines := runtime.NumGoroutine()
			derived, stop := context.WithCancel(ctx)
			defer stop()
			if n := runtime.NumGoroutine(); n != goroutines {
				t.Errorf("%d goroutines more to follow the context", n-goroutines)
			}
			cancel()
			<-derived.Done()
			if !errors.Is(ctx.Err(), context.Canceled) {
				t.Error(ctx.Err())
			}
		})
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil).WithContext(outer))
		if late.Err() == nil {
			t.Error("the context lives on after its handler")
		}
		h = wrap(func(_ http.ResponseWriter, r *http.Request) { late = r.Context() })
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
		select {
		case <-late.Done():
		default:
			t.Error("who asks after the handler waits for ever")
		}
	})
}

// TestEarlierDeadline keeps that of the server.
func TestEarlierDeadline(t *testing.T) {
	both(t, time.Hour, func(t *testing.T, wrap func(http.HandlerFunc) http.Handler) {
		outer, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wrap(func(_ http.ResponseWriter, r *http.Request) {
			if at, _ := r.Context().Deadline(); time.Until(at) != time.Second {
				t.Error(time.Until(at))
			}
			<-r.Context().Done()
		}).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil).WithContext(outer))
	})
}

// TestState sets a value behind the time-out that a layer before it sees.
func TestState(t *testing.T) {
	key := chain.NewKey[*int]("state")
	seen := false
	outer := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r)
			_, seen = key.Value(r)
		})
	}
	h := chain.Must(chain.New(outer, within(t, time.Minute)).Then(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if !key.Set(r, new(int)) {
			t.Error("behind the time-out there is no chain")
		}
	})))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	if !seen {
		t.Error("the outer layer does not see the value")
	}
}

func TestStreams(t *testing.T) {
	for field, value := range map[string]string{"Upgrade": "websocket", "Accept": "text/event-stream"} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set(field, value)
		within(t, time.Second)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if _, ok := r.Context().Deadline(); ok {
				t.Errorf("%s: %s has a deadline", field, value)
			}
		})).ServeHTTP(httptest.NewRecorder(), r)
	}
	w := httptest.NewRecorder()
	within(t, math.MaxInt64)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		time.Sleep(time.Nanosecond)
	})).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if w.Code != 200 {
		t.Errorf("the longest time there is: %d", w.Code)
	}
	if _, err := timeout.New(timeout.Options{After: -1}); err == nil {
		t.Error("a negative time-out is accepted")
	}
}

// BenchmarkRequest is a request that is in time and does not look at its context, in a
// chain on net/http.
func BenchmarkRequest(b *testing.B) {
	mw, err := timeout.New(timeout.Options{After: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	h := chain.Must(chain.New(mw).Then(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(w, r)
	}
}
