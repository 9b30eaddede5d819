// Package clienttest finds, in tests, answers whose bodies were not read or not closed.
//
// A body that is not closed keeps its connection for ever. One that is closed before its
// end costs the connection: the next request makes a new one.
package clienttest

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
)

// TB is the part of testing.TB that is needed.
type TB interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
}

// CheckBodies returns a transport that sends requests by next. When the test ends, it
// fails for each answer whose body was not read to its end and closed, and says where the
// request was made. Answers that switch protocols and those without a body are excluded.
//
// A body that is closed while the test ends may be reported: wait for what the test
// started.
func CheckBodies(t TB, next http.RoundTripper) http.RoundTripper {
	t.Helper()
	c := &checker{next: next, open: map[*body]struct{}{}}
	t.Cleanup(func() {
		t.Helper()
		for _, fault := range c.faults() {
			t.Errorf("%s", fault)
		}
	})
	return c
}

type checker struct {
	next http.RoundTripper

	mu     sync.Mutex
	open   map[*body]struct{}
	unread []string
}

func (c *checker) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := c.next.RoundTrip(r)
	if err != nil || res.StatusCode == http.StatusSwitchingProtocols || res.Body == http.NoBody {
		return res, err
	}
	b := &body{ReadCloser: res.Body, c: c, request: fmt.Sprintf("%s %s, sent by %s", r.Method, r.URL.Redacted(), findCaller())}
	c.mu.Lock()
	c.open[b] = struct{}{}
	c.mu.Unlock()
	res.Body = b
	return res, nil
}

// CloseIdleConnections closes those of the transport below, as http.Client asks for.
func (c *checker) CloseIdleConnections() {
	if t, ok := c.next.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

func (c *checker) faults() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.unread
	for b := range c.open {
		all = append(all, b.request+": its answer's body was not closed")
	}
	return all
}

// body is an answer's body that is watched.
type body struct {
	io.ReadCloser
	c       *checker
	request string
	read    bool // to the end, or until an error
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.c.mu.Lock()
		b.read = true
		b.c.mu.Unlock()
	}
	return n, err
}

func (b *body) Close() error {
	b.c.mu.Lock()
	if _, open := b.c.open[b]; open {
		delete(b.c.open, b)
		if !b.read {
			b.c.unread = append(b.c.unread, b.request+": its answer's body was closed before its end")
		}
	}
	b.c.mu.Unlock()
	return b.ReadCloser.Close()
}

// findCaller returns where the request was made: the first frame outside of net/http
// and of this repository's clients.
func findCaller() string {
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	for {
		f, more := frames.Next()
		own := (strings.Contains(f.Function, "/serve/client") || strings.Contains(f.Function, "/serve/tracing.")) && !strings.HasSuffix(f.File, "_test.go")
		if !strings.HasPrefix(f.Function, "net/http.") && !own && f.Function != "" {
			return fmt.Sprintf("%s:%d", f.File, f.Line)
		}
		if !more {
			return "an unknown caller"
		}
	}
}
