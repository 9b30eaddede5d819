package flight_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarehq/tare/serve/middleware/flight"
	"github.com/tarehq/tare/serve/servetest"
)

const bound = 20 * time.Millisecond

// users is a handler that is slow on /users/slow.
func users(_ http.ResponseWriter, r *http.Request) {
	if r.PathValue("id") == "slow" {
		time.Sleep(2 * bound)
	}
}

// routed is the handler behind http.ServeMux.
func routed() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /users/{id}", users)
	return mux
}

// served starts a recorder and a server behind it.
func served(t *testing.T, o flight.Options, h http.Handler) *httptest.Server {
	t.Helper()
	r, err := flight.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	s := httptest.NewServer(r.Middleware(h))
	t.Cleanup(s.Close)
	return s
}

func get(t *testing.T, s *httptest.Server, path string) {
	t.Helper()
	res, err := s.Client().Get(s.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
}

// snapshots waits for a number of files.
func snapshots(t *testing.T, dir string, n int) []string {
	t.Helper()
	var files []string
	for range 500 {
		files, _ = filepath.Glob(filepath.Join(dir, "*.trace"))
		if len(files) >= n {
			return files
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("there are snapshots %q, want %d", files, n)
	return nil
}

// TestSnapshot finds in a snapshot what the slow request was for, and not what its
// client may have kept secret. The module arms tests what else can be read there.
func TestSnapshot(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "slow")
	s := served(t, flight.Options{SlowerThan: bound, Dir: dir}, routed())
	for range 20 {
		get(t, s, "/users/7")
	}
	get(t, s, "/users/slow?token=secret")
	name := snapshots(t, dir, 1)[0]
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(content, []byte("GET /users/{id}, ")) || bytes.Contains(content, []byte("secret")) {
		t.Errorf("the snapshot of %d bytes does not say what it was for, or holds the secret", len(content))
	}
	info, err := os.Stat(name)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the snapshot has mode %v, %v, want 0600", info.Mode(), err)
	}
}

// TestAtMost writes one snapshot for many slow requests, and none for fast ones or
// those that upgrade.
func TestAtMost(t *testing.T) {
	dir := t.TempDir()
	s := served(t, flight.Options{SlowerThan: bound, Dir: dir}, routed())
	req, err := http.NewRequest(http.MethodGet, s.URL+"/users/slow", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Upgrade", "websocket")
	res, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	time.Sleep(5 * bound)
	if files, _ := filepath.Glob(filepath.Join(dir, "*")); len(files) > 0 {
		t.Errorf("there is %q after a request that upgrades", files)
	}
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() { get(t, s, "/users/slow") })
	}
	all.Wait()
	snapshots(t, dir, 1)
	get(t, s, "/users/slow")
	time.Sleep(5 * bound)
	if files, _ := filepath.Glob(filepath.Join(dir, "*")); len(files) != 1 {
		t.Errorf("there is %q after six slow requests in a minute, want one", files)
	}
}

// sink is a Sink in memory.
type sink struct {
	mu     sync.Mutex
	b      bytes.Buffer
	closed chan flight.Request
	found  flight.Request
	fails  error
}

func (s *sink) open(r flight.Request) (io.WriteCloser, error) {
	s.found = r
	return s, s.fails
}

func (s *sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *sink) Close() error {
	s.closed <- s.found
	return nil
}

// TestSink hands a snapshot on, also of a request that panicked.
func TestSink(t *testing.T) {
	to := &sink{closed: make(chan flight.Request, 1)}
	r, err := flight.New(flight.Options{SlowerThan: bound, Sink: to.open})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	h := r.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		time.Sleep(bound)
		panic("that was too much")
	}))
	func() {
		defer func() {
			if v := recover(); v != "that was too much" {
				t.Errorf("recovered %v, want the handler's panic", v)
			}
		}()
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPut, "/x?q=1", nil))
	}()
	select {
	case found := <-to.closed:
		if found.Method != "PUT" || found.Pattern != "/x" || found.Took < bound || found.Begun.IsZero() {
			t.Errorf("the request is %+v", found)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("no snapshot within 10 s")
	}
	if !bytes.HasPrefix(to.b.Bytes(), []byte("go 1.")) {
		t.Errorf("the snapshot begins %q, want a trace", to.b.Bytes()[:min(16, to.b.Len())])
	}
}

// lines are what is logged.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

// TestReuse has the server reuse a slow request's memory before its snapshot is
// written: it is named by what it was, not by what lies there now.
func TestReuse(t *testing.T) {
	named := make(chan string, 1)
	r, err := flight.New(flight.Options{SlowerThan: bound, Sink: func(found flight.Request) (io.WriteCloser, error) {
		named <- found.Method + " " + found.Pattern
		return nil, errors.New("not wanted")
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	s := servetest.NewUnstartedServer(r.Middleware(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/slow") {
			time.Sleep(2 * bound)
		}
	})))
	s.Config.Reuse = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Start()
	t.Cleanup(s.Close)
	nc, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	br := bufio.NewReader(nc)
	for _, head := range []string{"GET /slow/report/of/the/year", "DELETE /"} {
		fmt.Fprintf(nc, "%s HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer of-somebody-else\r\n\r\n", head)
		if _, err := http.ReadResponse(br, nil); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := <-named, "GET /slow/report/of/the/year"; got != want {
		t.Errorf("the snapshot is of %q, want %q", got, want)
	}
}

// TestLogs says what becomes of a snapshot, and leaves no part of it behind.
func TestLogs(t *testing.T) {
	dir, most := t.TempDir(), t.TempDir()
	failing := &sink{fails: errors.New("no room")}
	for name, tc := range map[string]struct {
		o    flight.Options
		want string
	}{
		"too large": {flight.Options{Dir: dir, MaxBytes: 1}, "more than twice Options.MaxBytes"},
		"sink":      {flight.Options{Sink: failing.open}, "no room"},
		"no writer": {flight.Options{Sink: func(flight.Request) (io.WriteCloser, error) { return nil, nil }}, "neither a writer nor an error"},
		"panic":     {flight.Options{Sink: func(flight.Request) (io.WriteCloser, error) { panic("no sink") }}, "panicked: no sink"},
		"nil sink":  {flight.Options{Sink: func(flight.Request) (io.WriteCloser, error) { return (*sink)(nil), nil }}, "panicked: runtime error"},
		"no return": {flight.Options{Sink: func(flight.Request) (io.WriteCloser, error) { runtime.Goexit(); return nil, nil }}, "ended its goroutine"},
		"most":      {flight.Options{Dir: most, MaxBytes: math.MaxInt64, AtMostEvery: math.MaxInt64}, "wrote a snapshot"},
	} {
		t.Run(name, func(t *testing.T) {
			said := make(lines, 10)
			tc.o.SlowerThan, tc.o.Log = bound, slog.New(slog.NewTextHandler(said, nil))
			s := served(t, tc.o, routed())
			get(t, s, "/users/slow")
			select {
			case line := <-said:
				if !strings.Contains(line, tc.want) || !strings.Contains(line, "GET /users/{id}") {
					t.Errorf("logged %q, want %q", line, tc.want)
				}
			case <-time.After(10 * time.Second):
				t.Error("nothing was logged within 10 s")
			}
			if files, _ := filepath.Glob(filepath.Join(dir, ".*")); len(files) > 0 {
				t.Errorf("left behind: %q", files)
			}
		})
	}
}

// TestLogPanics has the handler of the log panic on the recorder's goroutine: it goes on.
func TestLogPanics(t *testing.T) {
	dir := t.TempDir()
	s := served(t, flight.Options{SlowerThan: bound, Dir: dir, AtMostEvery: 1, Log: slog.New(broken{slog.DiscardHandler})}, routed())
	get(t, s, "/users/slow")
	snapshots(t, dir, 1)
	for deadline := time.Now().Add(10 * time.Second); ; { // the recorder may be at the first one yet
		get(t, s, "/users/slow")
		if files, _ := filepath.Glob(filepath.Join(dir, "*.trace")); len(files) > 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no second snapshot within 10 s")
		}
	}
}

// broken is a handler of logs that panics.
type broken struct{ slog.Handler }

func (broken) Enabled(context.Context, slog.Level) bool { return true }

func (broken) Handle(context.Context, slog.Record) error { panic("the log is broken") }

func TestNewRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		o    flight.Options
		want string
	}{
		{flight.Options{}, "SlowerThan is not set"},
		{flight.Options{SlowerThan: bound}, "neither Options.Dir nor Options.Sink"},
		{flight.Options{SlowerThan: bound, Dir: "x", Sink: new(sink).open}, "exclude one another"},
		{flight.Options{SlowerThan: bound, Dir: "x", MaxBytes: -1}, "no less than 0"},
		{flight.Options{SlowerThan: bound, Dir: file}, "not a directory"},
	} {
		if r, err := flight.New(tc.o); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("New(%+v) gave %v, want an error with %q", tc.o, err, tc.want)
			if r != nil {
				r.Close()
			}
		}
	}
	r, err := flight.New(flight.Options{SlowerThan: bound, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := flight.New(flight.Options{SlowerThan: bound, Dir: t.TempDir()}); err == nil {
		t.Error("a second recorder was started")
	}
}

// TestClose ends watching: the handler serves on, and another recorder may begin.
func TestClose(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		r, err := flight.New(flight.Options{SlowerThan: bound, Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		h := r.Middleware(routed())
		r.Close()
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/users/slow", nil))
		if rec.Code != http.StatusOK {
			t.Errorf("after Close the handler answers %d", rec.Code)
		}
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "*")); len(files) > 0 {
		t.Errorf("snapshots after Close: %q", files)
	}
}

// TestCloseLeaves does not wait for a Sink that does not return.
func TestCloseLeaves(t *testing.T) {
	called, free := make(chan bool), make(chan bool)
	said := make(lines, 10)
	r, err := flight.New(flight.Options{
		SlowerThan: bound, Log: slog.New(slog.NewTextHandler(said, nil)),
		Sink: func(flight.Request) (io.WriteCloser, error) {
			close(called)
			<-free
			return nil, errors.New("too late")
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer close(free)
	r.Hurry(bound)
	r.Middleware(routed()).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/users/slow", nil))
	<-called
	r.Close()
	if line := <-said; !strings.Contains(line, "not taken in time") {
		t.Errorf("logged %q, want that the snapshot was not taken in time", line)
	}
	again, err := flight.New(flight.Options{SlowerThan: bound, Dir: t.TempDir()})
	if err != nil {
		t.Fatalf("another recorder: %v", err)
	}
	again.Close()
}

func Example() {
	dir, err := os.MkdirTemp("", "flight")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	recorder, err := flight.New(flight.Options{SlowerThan: 50 * time.Millisecond, Dir: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer recorder.Close()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /users/{id}", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello") })
	s := httptest.NewServer(recorder.Middleware(mux))
	defer s.Close()
	res, err := s.Client().Get(s.URL + "/users/7")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer res.Body.Close()
	fmt.Println(res.Status)
	// Output: 200 OK
}
