package queue_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarehq/tare/serve/middleware/queue"
	"github.com/tarehq/tare/serve/servetest"
)

func Example() {
	q, err := queue.New(queue.Options{Workers: 4})
	if err != nil {
		panic(err)
	}
	h := q.Middleware(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mail, _ := io.ReadAll(r.Body)
		fmt.Printf("sent %q\n", mail) // takes its time
	}))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("POST", "/mails", strings.NewReader("hello")))
	// When the server has shut down:
	if err := q.Shutdown(context.Background()); err != nil {
		panic(err)
	}
	fmt.Println(w.Code)
	// Output:
	// sent "hello"
	// 202
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func post(h http.Handler, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("POST", "/work?x=1", strings.NewReader(body)))
	return w
}

// TestFull fills a queue and has it worked off.
func TestFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := must(queue.New(queue.Options{Workers: 2, Length: 10}))
		h := q.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(3 * time.Second) }))
		for range 12 {
			if w := post(h, "x"); w.Code != http.StatusAccepted || w.Body.Len() != 0 {
				t.Errorf("%d %q", w.Code, w.Body)
			}
		}
		if w := post(h, "x"); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "1" {
			t.Errorf("a full queue answers %d, Retry-After %s", w.Code, w.Header().Get("Retry-After"))
		}
		time.Sleep(9500 * time.Millisecond) // 6 done, 2 at hand, 4 wait
		if c := q.Counts(); c.Waiting != 4 || c.Working != 2 || c.Finished != 6 {
			t.Errorf("%+v", c)
		}
		for range 6 {
			post(h, "x")
		}
		// The mean is still below 3 s, as it began at 0.
		after := must(strconv.Atoi(post(h, "x").Header().Get("Retry-After")))
		if after < 4 || after > 15 {
			t.Errorf("Retry-After %d, where ten of 3 s wait for two workers", after)
		}
		if err := q.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if c := q.Counts(); c.Accepted != 18 || c.Finished != 18 || c.Refused != 2 || c.Working != 0 || c.Failed != 0 {
			t.Errorf("%+v", c)
		}
		if w := post(h, "x"); w.Code != http.StatusServiceUnavailable {
			t.Errorf("%d after the end", w.Code)
		}
		if err := q.Shutdown(t.Context()); err != nil {
			t.Errorf("a second Shutdown: %v", err)
		}
	})
}

// TestShutdownInTime gives up what takes too long, and says how much.
func TestShutdownInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := must(queue.New(queue.Options{Workers: 1}))
		ended := make(chan error, 1)
		h := q.Middleware(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			ended <- r.Context().Err()
		}))
		for range 5 {
			post(h, "x")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := q.Shutdown(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "1 works at hand and 4 given up") {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		synctest.Wait()
		if c := q.Counts(); c.Dropped != 4 || c.Finished != 1 {
			t.Errorf("%+v", c)
		}
	})
}

type userKey struct{}

// TestWork says what the handler sees of the request: all but its end.
func TestWork(t *testing.T) {
	got := make(chan string, 1)
	q := must(queue.New(queue.Options{Timeout: time.Hour, Context: func(ctx context.Context, r *http.Request) context.Context {
		return context.WithValue(ctx, userKey{}, r.Context().Value(userKey{}))
	}}))
	mux := http.NewServeMux()
	mux.Handle("PUT /orders/{id}", q.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		at, _ := r.Context().Deadline()
		fmt.Fprint(w, "nobody gets this")
		got <- fmt.Sprint(r.PathValue("id"), r.URL, r.Header.Get("X-A"), string(body), err, r.Context().Value(userKey{}), r.Context().Err(), time.Until(at) > time.Minute)
	})))
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), userKey{}, "ada"))
	r := httptest.NewRequestWithContext(ctx, "PUT", "/orders/7?x=1", strings.NewReader("text"))
	r.Header.Set("X-A", "a")
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	cancel()
	if want := "7/orders/7?x=1atext<nil>ada<nil> true"; w.Code != 202 || w.Body.Len() != 0 {
		t.Errorf("%d %q", w.Code, w.Body)
	} else if got := <-got; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := q.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestBodies(t *testing.T) {
	q := must(queue.New(queue.Options{Body: 10}))
	s := servetest.NewServer(q.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	defer s.Close()
	for _, c := range []struct {
		body io.Reader
		want int
	}{
		{nil, 202},
		{strings.NewReader("0123456789"), 202},
		{strings.NewReader("0123456789x"), 413},
		{io.MultiReader(strings.NewReader("0123456789")), 202},
		{io.MultiReader(strings.NewReader("0123456789x")), 413},
	} {
		res, err := http.Post(s.URL, "text/plain", c.body)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != c.want {
			t.Errorf("%v: %d, want %d", c.body, res.StatusCode, c.want)
		}
	}
	w, r := httptest.NewRecorder(), httptest.NewRequest("POST", "/", strings.NewReader("0123456789x"))
	r.ProtoMajor = 2 // others share the connection
	q.Middleware(http.NotFoundHandler()).ServeHTTP(w, r)
	if w.Code != 413 || w.Header().Get("Connection") != "" {
		t.Errorf("HTTP/2: %d, Connection %q, want 413 and none", w.Code, w.Header().Get("Connection"))
	}
	conn := must(net.Dial("tcp", s.Listener.Addr().String())) // goes away amid its body
	fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf")
	_ = conn.(*net.TCPConn).CloseWrite()
	answer := must(io.ReadAll(conn))
	conn.Close()
	if strings.Contains(string(answer), " 202 ") {
		t.Errorf("half a body is answered with %q", answer)
	}
	if c := q.Counts(); c.Accepted != 3 {
		t.Errorf("%+v", c)
	}
}

// TestFailures counts and logs works that fail and panic; the worker goes on.
func TestFailures(t *testing.T) {
	var log bytes.Buffer
	q := must(queue.New(queue.Options{Workers: 1, Log: slog.New(slog.NewTextHandler(&log, nil))}))
	h := q.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch b, _ := io.ReadAll(r.Body); string(b) {
		case "panic":
			panic("broken")
		case "abort":
			panic(http.ErrAbortHandler)
		default:
			http.Error(w, "", must(strconv.Atoi(string(b))))
		}
	}))
	for _, work := range []string{"panic", "abort", "503", "404", "200"} {
		post(h, work)
	}
	if err := q.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c := q.Counts(); c.Finished != 5 || c.Failed != 3 {
		t.Errorf("%+v", c)
	}
	if n, m := strings.Count(log.String(), "queued work failed"), strings.Count(log.String(), "panic=broken"); n != 3 || m != 1 {
		t.Errorf("%d failures and %d panics in the log:\n%s", n, m, log.String())
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []queue.Options{{Workers: -1}, {Length: 1 << 30}, {Body: -1}, {Timeout: -1}} {
		if _, err := queue.New(o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}

// TestManyClients has a thousand clients, of which some go away or send slowly, while
// the server ends: what was answered with 202 is done once, and nothing else is.
func TestManyClients(t *testing.T) {
	var done sync.Map
	q := must(queue.New(queue.Options{Workers: 8, Length: 100, Done: func(r *http.Request, status int) {
		if n, loaded := done.LoadOrStore(r.URL.Path, status); loaded {
			t.Errorf("%s is done twice: %v", r.URL.Path, n)
		}
	}}))
	h := q.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(time.Millisecond)
		b, err := io.ReadAll(r.Body)
		if want := strings.Repeat(r.URL.Path, 100); err != nil || string(b) != want {
			t.Errorf("%s: a body of %d bytes, %v", r.URL.Path, len(b), err)
		}
		if r.Context().Err() != nil {
			t.Errorf("%s: %v", r.URL.Path, r.Context().Err())
		}
	}))
	s := servetest.NewServer(h)
	defer s.Close()
	var accepted sync.Map
	var refused atomic.Int64
	var all sync.WaitGroup
	for i := range 1000 {
		all.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			path := fmt.Sprint("/", i)
			var body io.Reader = strings.NewReader(strings.Repeat(path, 100))
			switch i % 10 {
			case 0:
				time.AfterFunc(time.Duration(i)*10*time.Microsecond, cancel)
			case 1:
				body = &slow{body}
			}
			res, err := s.Client().Do(must(http.NewRequestWithContext(ctx, "POST", s.URL+path, body)))
			if err != nil {
				return
			}
			res.Body.Close()
			switch res.StatusCode {
			case 202:
				accepted.Store(path, true)
			case 503:
				refused.Add(1)
			default:
				t.Errorf("%s: %d", path, res.StatusCode)
			}
		})
	}
	all.Wait()
	s.Close()
	if err := q.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	accepted.Range(func(path, _ any) bool {
		if status, ok := done.Load(path); !ok || status != 200 {
			t.Errorf("%s was accepted and is not done: %v", path, status)
		}
		return true
	})
	c := q.Counts()
	if c.Accepted != c.Finished || c.Finished < 100 || int64(c.Refused) < refused.Load() {
		t.Errorf("%+v, %d clients were refused", c, refused.Load())
	}
}

// slow is a body in small pieces.
type slow struct{ io.Reader }

func (s *slow) Read(p []byte) (int, error) {
	time.Sleep(time.Millisecond)
	return s.Reader.Read(p[:min(len(p), 50)])
}

func BenchmarkQueue(b *testing.B) {
	q := must(queue.New(queue.Options{Length: 1 << 20}))
	h := q.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	r := httptest.NewRequest("POST", "/", http.NoBody)
	r.Header.Set("User-Agent", "curl/8")
	w := httptest.NewRecorder()
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(w, r)
	}
	if err := q.Shutdown(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// TestWorkerLives has work go on after Options.Done panicked, and after a handler ended its
// goroutine, as the end of a test does.
func TestWorkerLives(t *testing.T) {
	var log bytes.Buffer
	done := 0
	q := must(queue.New(queue.Options{Workers: 1, Log: slog.New(slog.NewTextHandler(&log, nil)), Done: func(*http.Request, int) {
		done++ // by one worker at a time
		panic("broken")
	}}))
	begin := make(chan struct{})
	h := q.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		<-begin
		runtime.Goexit()
	}))
	for range 3 {
		post(h, "")
	}
	close(begin)
	if err := q.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c := q.Counts(); done != 3 || c.Finished != 3 || c.Failed != 3 || c.Working != 0 {
		t.Errorf("%d done, %+v", done, c)
	}
	if n := strings.Count(log.String(), "Options.Done panicked"); n != 3 {
		t.Errorf("%d panics in the log:\n%s", n, log.String())
	}
}

// TestLogPanics has the handler of the log panic on a worker, of a work that fails and of one
// that panics: the worker goes on.
func TestLogPanics(t *testing.T) {
	q := must(queue.New(queue.Options{Workers: 1, Log: slog.New(broken{slog.DiscardHandler})}))
	h := q.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/panic" {
			panic("broken")
		}
		w.WriteHeader(http.StatusInternalServerError)
	}))
	for _, path := range []string{"/panic", "/fail"} {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", path, http.NoBody))
	}
	if err := q.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c := q.Counts(); c.Finished != 2 || c.Failed != 2 {
		t.Errorf("%+v", c)
	}
}

// broken is a handler of logs that panics.
type broken struct{ slog.Handler }

func (broken) Enabled(context.Context, slog.Level) bool { return true }

func (broken) Handle(context.Context, slog.Record) error { panic("the log is broken") }
