package shadow_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarehq/tare/serve/proxy/shadow"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// echo answers with what it was sent.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%s %s %s shadow=%s", r.Method, r.URL, body, r.Header.Get("X-Shadow"))
})

func Example() {
	seen := make(chan string)
	next := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen <- r.Method + " " + r.URL.Path })
	s, err := shadow.New(shadow.Options{To: next})
	if err != nil {
		panic(err)
	}
	w := httptest.NewRecorder()
	s.Middleware(echo).ServeHTTP(w, httptest.NewRequest("GET", "/stock", nil))
	fmt.Println(w.Body, "|", <-seen)
	// Output: GET /stock  shadow= | GET /stock
}

// await has a condition come true.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 500 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error(what)
}

// TestCopies is the table of what is copied.
func TestCopies(t *testing.T) {
	for _, c := range []struct {
		name    string
		request func() *http.Request
		want    string // what the other handler is sent; empty: nothing
		dropped uint64
	}{
		{"get", func() *http.Request { return httptest.NewRequest("GET", "/a?b=c", nil) }, "GET /a?b=c ", 0},
		{"post", func() *http.Request { return httptest.NewRequest("POST", "/a", strings.NewReader("an order")) }, "POST /a an order", 0},
		{"chunked", func() *http.Request {
			r := httptest.NewRequest("PUT", "/a", io.MultiReader(strings.NewReader("an "), strings.NewReader("order")))
			r.ContentLength = -1
			return r
		}, "PUT /a an order", 0},
		{"as long as may be", func() *http.Request {
			return httptest.NewRequest("POST", "/a", strings.NewReader(strings.Repeat("x", 10)))
		}, "POST /a xxxxxxxxxx", 0},
		{"too long", func() *http.Request {
			return httptest.NewRequest("POST", "/a", strings.NewReader(strings.Repeat("x", 11)))
		}, "", 1},
		{"an upgrade", func() *http.Request {
			r := httptest.NewRequest("GET", "/a", nil)
			r.Header.Set("Upgrade", "websocket")
			return r
		}, "", 0},
		{"a copy", func() *http.Request {
			r := httptest.NewRequest("GET", "/a", nil)
			r.Header.Set("X-Shadow", "1")
			return r
		}, "", 0},
	} {
		seen := make(chan string, 1)
		s := must(shadow.New(shadow.Options{Body: 10, To: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			seen <- fmt.Sprintf("%s %s %s", r.Method, r.URL, body)
			if r.Header.Get("X-Shadow") != "1" {
				t.Errorf("%s: the copy does not say that it is one", c.name)
			}
		})}))
		alone, copied := httptest.NewRecorder(), httptest.NewRecorder()
		echo.ServeHTTP(alone, c.request())
		r := c.request()
		s.Middleware(echo).ServeHTTP(copied, r)
		if alone.Body.String() != copied.Body.String() || alone.Code != copied.Code {
			t.Errorf("%s: the client got %q, want %q", c.name, copied.Body, alone.Body)
		}
		if got := s.Dropped(); got != c.dropped {
			t.Errorf("%s: %d were dropped, want %d", c.name, got, c.dropped)
		}
		if c.want == "" {
			if s.Sent() != 0 {
				t.Errorf("%s: %d copies were sent", c.name, s.Sent())
			}
			continue
		}
		select {
		case got := <-seen:
			if got != c.want {
				t.Errorf("%s: the copy is %q, want %q", c.name, got, c.want)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("%s: no copy came", c.name)
		}
	}
}

// TestBounds has copies that do not end, and that panic, not hold up a client, and no more
// be under way than may be.
func TestBounds(t *testing.T) {
	stop := make(chan struct{})
	var begun, ended atomic.Int64
	s := must(shadow.New(shadow.Options{AtOnce: 3, To: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		begun.Add(1)
		<-stop
		ended.Add(1)
		panic(http.ErrAbortHandler)
	})}))
	h := s.Middleware(echo)
	for range 10 {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	}
	if s.Sent() != 3 || s.Dropped() != 7 {
		t.Errorf("%d were sent and %d dropped, want 3 and 7", s.Sent(), s.Dropped())
	}
	close(stop)
	await(t, "the copies do not end", func() bool { return ended.Load() == 3 })
	await(t, "what has ended is counted yet", func() bool {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
		return s.Sent() > 3
	})
}

// TestTimeout ends a copy that takes too long.
func TestTimeout(t *testing.T) {
	ended := make(chan struct{})
	s := must(shadow.New(shadow.Options{Timeout: time.Millisecond, To: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		close(ended)
	})}))
	s.Middleware(echo).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("the copy has not ended")
	}
}

// TestShare copies about as many as are to be.
func TestShare(t *testing.T) {
	s := must(shadow.New(shadow.Options{Share: 0.1, AtOnce: 10_000, To: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}))
	h := s.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	const n = 5000
	for range n {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	}
	if got := s.Sent() + s.Dropped(); got < n/10-100 || got > n/10+100 { // four and a half standard deviations
		t.Errorf("%d of %d were copied, want a tenth", got, n)
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []shadow.Options{{}, {To: echo, Share: 2}, {To: echo, Share: -1}, {To: echo, AtOnce: -1}, {To: echo, Timeout: -1}} {
		if _, err := shadow.New(o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}
