package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"path/filepath"
	"runtime/trace"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarehq/tare/cost/exectrace"
	"github.com/tarehq/tare/serve/middleware/flight"
	"github.com/tarehq/tare/serve/servetest"
)

// slowly is for how long a slow request waits, and bound what is called slow.
const (
	slowly = 60 * time.Millisecond
	bound  = 30 * time.Millisecond
)

// doze waits on /slow only.
func doze(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/slow" {
		time.Sleep(slowly)
	}
	io.WriteString(w, "done")
}

// fetch returns the body of an answer of status 200.
func fetch(c *http.Client, url string) ([]byte, error) {
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

// record traces what happens while f runs, and reads the requests in the trace.
func record(t *testing.T, f func()) *exectrace.Requests {
	t.Helper()
	var b bytes.Buffer
	if err := trace.Start(&b); err != nil {
		t.Fatal(err)
	}
	f()
	trace.Stop()
	r, err := exectrace.ReadRequests(&b, exectrace.Options{SlowerThan: bound})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// waited adds up how long the slow requests were in a state, charged to an owner.
func waited(r *exectrace.Requests, state exectrace.State, owner string) time.Duration {
	var sum time.Duration
	for _, p := range r.Slow.Parts {
		if p.State == state && p.Owner.Name == owner {
			sum += p.Time
		}
	}
	return sum
}

// TestTraceRequests finds the requests that serve answers, and what they wait for: the
// handler, a client that sends slowly, and one that reads slowly.
func TestTraceRequests(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/", doze)
	mux.HandleFunc("/upload", func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })
	mux.HandleFunc("/download", func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, 16<<20)) })
	s := servetest.NewServer(mux)
	defer s.Close()
	for _, tc := range []struct {
		name        string
		ask         func() error
		count, slow int
		state       exectrace.State
		owner       string
	}{
		{"handler", func() error {
			var errs []error
			for _, path := range []string{"/slow", "/", "/slow", "/", "/"} {
				_, err := fetch(s.Client(), s.URL+path)
				errs = append(errs, err)
			}
			return errors.Join(errs...)
		}, 5, 2, exectrace.Sleeping, "serve.doze"},
		{"body", func() error { return sendSlowly(s.Client(), s.URL+"/upload") }, 1, 1, exectrace.Client, "serve"},
		{"answer", func() error { return readSlowly(s.Client(), s.URL+"/download") }, 1, 1, exectrace.Client, "serve"},
		{"pipelined", func() error { return pipeline(s.URL) }, 3, 3, exectrace.Sleeping, "serve.doze"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := record(t, func() {
				if err := tc.ask(); err != nil {
					t.Error(err)
				}
			})
			// The last answer may be there before its server is done with it.
			if r.Count+r.Cut != tc.count || r.Slow.Count < tc.slow || len(r.Warnings) > 0 {
				t.Errorf("%d requests, %d cut, %d slow, warnings %v; want %d, at least %d slow", r.Count, r.Cut, r.Slow.Count, r.Warnings, tc.count, tc.slow)
			}
			if got, want := waited(r, tc.state, tc.owner), time.Duration(tc.slow)*bound; got < want {
				t.Errorf("%s of %s took %s, want at least %s: %+v", tc.state, tc.owner, got, want, r.Slow.Parts)
			}
		})
	}
}

func sendSlowly(c *http.Client, url string) error {
	r, body := io.Pipe()
	go func() {
		io.WriteString(body, "begins")
		time.Sleep(2 * slowly)
		io.WriteString(body, "ends")
		body.Close()
	}()
	res, err := c.Post(url, "text/plain", r)
	if err != nil {
		return err
	}
	return res.Body.Close()
}

func readSlowly(c *http.Client, url string) error {
	res, err := c.Get(url)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	time.Sleep(2 * slowly)
	_, err = io.Copy(io.Discard, res.Body)
	return err
}

// pipeline sends three requests at one go.
func pipeline(url string) error {
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		return err
	}
	defer c.Close()
	const get = "GET /slow HTTP/1.1\r\nHost: x\r\n"
	io.WriteString(c, get+"\r\n"+get+"\r\n"+get+"Connection: close\r\n\r\n")
	_, err = io.Copy(io.Discard, c)
	return err
}

// handed waits for a method, on a goroutine of its own, that calls the handler.
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

// TestTraceExcludesItself has serve trace itself, behind middlewares that hand requests
// to goroutines of their own. The request for the trace does not count; one that is
// stuck behind the same middleware does.
func TestTraceExcludesItself(t *testing.T) {
	for name, around := range map[string]func(http.Handler) http.Handler{
		"closure": func(h http.Handler) http.Handler { return http.TimeoutHandler(h, time.Minute, "too late") },
		"method":  func(h http.Handler) http.Handler { return handed{h} },
	} {
		t.Run(name, func(t *testing.T) { traceItself(t, around) })
	}
}

func traceItself(t *testing.T, around func(http.Handler) http.Handler) {
	begun, end := make(chan bool), make(chan bool)
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("/stuck", func(http.ResponseWriter, *http.Request) {
		begun <- true
		<-end
	})
	mux.HandleFunc("/slow", doze)
	s := servetest.NewServer(around(mux))
	defer s.Close()
	var content []byte
	var all sync.WaitGroup
	ask := func(path string) []byte {
		b, err := fetch(s.Client(), s.URL+path)
		if err != nil {
			t.Error(err)
		}
		return b
	}
	all.Go(func() { ask("/stuck") })
	<-begun
	all.Go(func() {
		content = ask("/debug/pprof/trace?seconds=1")
		end <- true
	})
	time.Sleep(4 * slowly)
	ask("/slow")
	all.Wait()
	r, err := exectrace.ReadRequests(bytes.NewReader(content), exectrace.Options{SlowerThan: bound})
	if err != nil {
		t.Fatal(err)
	}
	if r.Count != 1 || r.Cut != 1 || r.Slow.Count != 2 || r.Slow.Cut != 1 {
		t.Errorf("%d requests and %d cut, of them slow %d and %d; want 1 and 1, 2 and 1: %+v", r.Count, r.Cut, r.Slow.Count, r.Slow.Cut, r.Slow.Parts)
	}
}

// TestTraceFlight finds in a flight recorder's snapshot what the slow request waited for.
func TestTraceFlight(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "slow")
	recorder, err := flight.New(flight.Options{SlowerThan: bound, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer recorder.Close()
	s := servetest.NewServer(recorder.Middleware(http.HandlerFunc(doze)))
	defer s.Close()
	for _, path := range []string{"/", "/", "/slow"} {
		if _, err := fetch(s.Client(), s.URL+path); err != nil {
			t.Fatal(err)
		}
	}
	var files []string
	for range 500 {
		if files, _ = filepath.Glob(filepath.Join(dir, "*.trace")); len(files) > 0 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if len(files) != 1 {
		t.Fatalf("got the snapshots %q, want one", files)
	}
	f, err := os.Open(files[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := exectrace.ReadRequests(f, exectrace.Options{SlowerThan: bound})
	if err != nil {
		t.Fatal(err)
	}
	if got := waited(r, exectrace.Sleeping, "serve.doze"); len(r.Slowest) == 0 || got < bound {
		t.Errorf("the slow request slept %s, want at least %s: %+v", got, bound, r)
	}
}
