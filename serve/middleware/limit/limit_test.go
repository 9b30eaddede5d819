package limit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarehq/tare/serve/middleware/limit"
)

func Example() {
	l, err := limit.New(limit.Options{Body: 10})
	if err != nil {
		panic(err)
	}
	h := l.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for _, body := range []string{"short", "longer than ten bytes"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", "/", strings.NewReader(body)))
		fmt.Println(w.Code)
	}
	// Output:
	// 200
	// 413
}

func limits(t *testing.T, o limit.Options) *limit.Limit {
	t.Helper()
	l, err := limit.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestChunked sends bodies whose length is not told: reading ends at the limit.
func TestChunked(t *testing.T) {
	l := limits(t, limit.Options{Body: 1000})
	var failed error
	s := httptest.NewServer(l.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		failed = err
		if err != nil {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		}
		fmt.Fprint(w, len(b))
	})))
	defer s.Close()
	for _, c := range []struct {
		size, status int
		read         string
	}{{1000, 200, "1000"}, {1001, 413, "1000"}, {1 << 20, 413, "1000"}} {
		resp, err := http.Post(s.URL, "text/plain", io.MultiReader(strings.NewReader(strings.Repeat("x", c.size))))
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != c.status || string(got) != c.read {
			t.Errorf("%d bytes: %d, %s read", c.size, resp.StatusCode, got)
		}
		if tooLong := new(http.MaxBytesError); errors.As(failed, &tooLong) != (c.status == 413) {
			t.Errorf("%d bytes: reading gave %v", c.size, failed)
		}
	}
}

// TestConnection has a body that is too long end its connection by HTTP/1.1. By HTTP/2 others
// share that.
func TestConnection(t *testing.T) {
	h := limits(t, limit.Options{Body: 10}).Middleware(http.NotFoundHandler())
	for major, want := range map[int]string{1: "close", 2: ""} {
		w, r := httptest.NewRecorder(), httptest.NewRequest("POST", "/", strings.NewReader("longer than ten bytes"))
		r.ProtoMajor = major
		h.ServeHTTP(w, r)
		if got := w.Header().Get("Connection"); w.Code != 413 || got != want {
			t.Errorf("HTTP/%d: %d, Connection %q, want 413 and %q", major, w.Code, got, want)
		}
	}
}

func TestFields(t *testing.T) {
	l := limits(t, limit.Options{Fields: 3})
	h := l.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for n, status := range []int{200, 200, 200, 200, 431} {
		r := httptest.NewRequest("GET", "/", nil)
		for i := range n {
			r.Header.Add("X-Field", fmt.Sprint(i))
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != status {
			t.Errorf("%d fields: %d, want %d", n, w.Code, status)
		}
	}
	if l.Refused() != 1 {
		t.Errorf("%d refused", l.Refused())
	}
}

// TestFlight follows requests through the limit by a clock of the test's.
func TestInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limits(t, limit.Options{InFlight: 2, Queue: 2, Wait: time.Second})
		var most, now atomic.Int64
		h := l.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			most.Store(max(most.Load(), now.Add(1)))
			time.Sleep(600 * time.Millisecond)
			now.Add(-1)
		}))
		ask := func(ctx context.Context) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil).WithContext(ctx))
			return w
		}
		var codes [7]*httptest.ResponseRecorder
		var all sync.WaitGroup
		for i := range 5 { // two are served, two wait for 600 ms, one is refused
			all.Go(func() { codes[i] = ask(t.Context()) })
			synctest.Wait()
		}
		if l.InFlight() != 2 || l.Waiting() != 2 {
			t.Errorf("%d in flight, %d waiting", l.InFlight(), l.Waiting())
		}
		time.Sleep(700 * time.Millisecond)
		gone, cancel := context.WithCancel(t.Context())
		all.Go(func() { codes[5] = ask(gone) })
		synctest.Wait()
		cancel()
		all.Wait()
		codes[6] = ask(t.Context())
		for i, want := range []int{200, 200, 200, 200, 503, 503, 200} {
			if codes[i].Code != want {
				t.Errorf("request %d: %d, want %d", i, codes[i].Code, want)
			}
		}
		if codes[4].Header().Get("Retry-After") != "1" {
			t.Error("no Retry-After")
		}
		if most.Load() != 2 {
			t.Errorf("%d were served at a time", most.Load())
		}
		if l.InFlight() != 0 || l.Waiting() != 0 || l.Refused() != 2 {
			t.Errorf("at the end %d in flight, %d waiting, %d refused", l.InFlight(), l.Waiting(), l.Refused())
		}
	})
}

// TestWait has one wait longer than it may.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limits(t, limit.Options{InFlight: 1, Wait: time.Second})
		h := l.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(time.Hour) }))
		go h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
		synctest.Wait()
		begun, w := time.Now(), httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		if took := time.Since(begun); w.Code != 503 || took != time.Second {
			t.Errorf("%d after %s", w.Code, took)
		}
		time.Sleep(time.Hour)
	})
}

// TestPanic gives the slot back.
func TestPanic(t *testing.T) {
	l := limits(t, limit.Options{InFlight: 1, Queue: -1})
	h := l.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	for range 3 {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic: the request was refused")
				}
			}()
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
		}()
	}
}

func TestUnlimited(t *testing.T) {
	l := limits(t, limit.Options{Body: -1, Fields: -1, InFlight: -1})
	r := httptest.NewRequest("POST", "/", strings.NewReader(strings.Repeat("x", 2<<20)))
	for i := range 500 {
		r.Header.Add("X-Field", fmt.Sprint(i))
	}
	w := httptest.NewRecorder()
	l.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
	if w.Code != 200 {
		t.Error(w.Code)
	}
	if _, err := limit.New(limit.Options{InFlight: 1 << 30}); err == nil {
		t.Error("2³⁰ requests in flight are accepted")
	}
}

func TestAllocs(t *testing.T) {
	h := limits(t, limit.Options{}).Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
	r.Header.Set("User-Agent", "curl/8")
	if n := testing.AllocsPerRun(1000, func() { h.ServeHTTP(w, r) }); n != 0 {
		t.Errorf("%v allocations a request", n)
	}
}

// BenchmarkRequest is a request that finds a slot: by one goroutine, and by all processors
// at a time.
func BenchmarkRequest(b *testing.B) {
	l, err := limit.New(limit.Options{})
	if err != nil {
		b.Fatal(err)
	}
	h := l.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	r := httptest.NewRequest("GET", "/", nil)
	b.Run("by=one", func(b *testing.B) {
		w := httptest.NewRecorder()
		b.ReportAllocs()
		for b.Loop() {
			h.ServeHTTP(w, r)
		}
	})
	b.Run("by=all", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			w := httptest.NewRecorder()
			for pb.Next() {
				h.ServeHTTP(w, r)
			}
		})
	})
}

// TestTurns has many clients, of whom some go away while they wait: never more are served
// than may be, and each slot comes back.
func TestTurns(t *testing.T) {
	for _, queue := range []int{-1, 3, 1000} {
		l := limits(t, limit.Options{InFlight: 3, Queue: queue, Wait: -1})
		var now, served atomic.Int64
		h := l.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			if n := now.Add(1); n > 3 {
				t.Errorf("%d are served at a time", n)
			}
			runtime.Gosched()
			now.Add(-1)
			served.Add(1)
		}))
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				for j := range 100 {
					ctx, cancel := context.WithCancel(t.Context())
					if (i+j)%3 == 0 {
						go cancel()
					}
					w := httptest.NewRecorder()
					h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil).WithContext(ctx))
					cancel()
				}
			})
		}
		all.Wait()
		if l.InFlight() != 0 || l.Waiting() != 0 {
			t.Errorf("queue of %d: at the end %d in flight, %d waiting", queue, l.InFlight(), l.Waiting())
		}
		if n := int(served.Load()); n+int(l.Refused()) != 100*100 || n < 3 {
			t.Errorf("queue of %d: %d served and %d refused", queue, n, l.Refused())
		}
		turnsLeft(t, l)
	}
}

// turnsLeft has just three more be served at a time: no turn was lost, and none is left over.
func turnsLeft(t *testing.T, l *limit.Limit) {
	t.Helper()
	var now atomic.Int64
	end, gone := make(chan struct{}), make(chan int)
	h := l.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		now.Add(1)
		<-end
	}))
	serve := func(ctx context.Context) int {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil).WithContext(ctx))
		return w.Code
	}
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() { serve(t.Context()) })
	}
	for late := time.Now().Add(10 * time.Second); now.Load() < 3; time.Sleep(time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("%d are served of three", now.Load())
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	go func() { gone <- serve(ctx) }()
	select {
	case code := <-gone:
		if code != 503 {
			t.Errorf("the fourth gets %d", code)
		}
	case <-time.After(10 * time.Second):
		t.Error("the fourth is served")
	}
	close(end)
	all.Wait()
	if l.InFlight() != 0 || l.Waiting() != 0 {
		t.Errorf("at the end %d in flight, %d waiting", l.InFlight(), l.Waiting())
	}
}
