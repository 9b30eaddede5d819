package client_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarehq/tare/serve/client"
	"github.com/tarehq/tare/serve/client/clienttest"
)

// TestHedge takes the first good answer of two attempts and ends the other.
func TestHedge(t *testing.T) {
	type attempt struct {
		after  time.Duration
		status int // 0: an error
	}
	for _, c := range []struct {
		name     string
		method   string
		attempts []attempt
		status   int
		took     time.Duration
		hedges   uint64
		ended    int64
	}{
		{"fast", "GET", []attempt{{5 * time.Millisecond, 200}}, 200, 5 * time.Millisecond, 0, 0},
		{"the second wins", "GET", []attempt{{time.Second, 200}, {20 * time.Millisecond, 201}}, 201, 120 * time.Millisecond, 1, 1},
		{"the first wins", "GET", []attempt{{110 * time.Millisecond, 200}, {time.Second, 201}}, 200, 110 * time.Millisecond, 1, 1},
		{"the second fails", "GET", []attempt{{time.Second, 200}, {20 * time.Millisecond, 503}}, 200, time.Second, 1, 0},
		{"the first breaks", "GET", []attempt{{110 * time.Millisecond, 0}, {time.Second, 201}}, 201, 1100 * time.Millisecond, 1, 0},
		{"not to be repeated", "POST", []attempt{{time.Second, 200}}, 200, time.Second, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			var ended atomic.Int64
			u := &upstream{do: func(n int, r *http.Request) (*http.Response, error) {
				a := c.attempts[n-1]
				select {
				case <-time.After(a.after):
				case <-r.Context().Done():
					ended.Add(1)
					return nil, r.Context().Err()
				}
				if a.status == 0 {
					return nil, errReset
				}
				return respond(a.status), nil
			}}
			cl := must(client.New(client.Options{Next: u, Hedge: 100 * time.Millisecond}))
			begun := time.Now()
			res, err := cl.RoundTrip(must(http.NewRequest(c.method, "http://upstream/", nil)))
			if err != nil || res.StatusCode != c.status || time.Since(begun) != c.took {
				t.Fatalf("%s: %v, %v after %s", c.name, res, err, time.Since(begun))
			}
			if text, err := io.ReadAll(res.Body); string(text) != "text" || err != nil {
				t.Errorf("%s: body %q, %v", c.name, text, err)
			}
			res.Body.Close()
			synctest.Wait()
			if cl.Counts().Hedges != c.hedges || ended.Load() != c.ended {
				t.Errorf("%s: %d hedges, %d ended", c.name, cl.Counts().Hedges, ended.Load())
			}
		})
	}
}

// TestHedgeChanged has a caller change its request once it has an answer, while another attempt may
// only begin. The race detector sees what must not be shared.
func TestHedgeChanged(t *testing.T) {
	u := &upstream{do: func(int, *http.Request) (*http.Response, error) {
		time.Sleep(time.Millisecond)
		return respond(200), nil
	}}
	cl := must(client.New(client.Options{Next: u, Hedge: time.Nanosecond, Budget: 1}))
	r := must(http.NewRequest("GET", "http://a.test/", nil))
	for i := range 20 {
		res := must(cl.RoundTrip(r))
		res.Body.Close()
		r.Header.Set("X-Nth", fmt.Sprint(i))
	}
}

// TestHedgeBudget has no second attempts made once the budget is used up.
func TestHedgeBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &upstream{do: func(_ int, r *http.Request) (*http.Response, error) {
			time.Sleep(10 * time.Millisecond)
			return respond(200), nil
		}}
		cl := must(client.New(client.Options{Next: u, Hedge: time.Millisecond}))
		for range 100 {
			res := must(cl.RoundTrip(must(http.NewRequest("GET", "http://upstream/", nil))))
			res.Body.Close()
		}
		// Ten at first, ten of a hundred requests, and one a second.
		if c := cl.Counts(); c.Hedges < 15 || c.Hedges > 21 || c.Refused == 0 {
			t.Errorf("%+v", c)
		}
	})
}

// TestFaultyUpstream has many clients at a server that stalls, drops connections and
// answers 503, with callers that go away. Each order is taken once, answers are not mixed
// up, and nothing is left behind.
func TestFaultyUpstream(t *testing.T) {
	before := runtime.NumGoroutine()
	var orders sync.Map // body → how often it was taken
	var turn atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if r.Method == "POST" {
			n, _ := orders.LoadOrStore(string(body), new(atomic.Int64))
			n.(*atomic.Int64).Add(1)
		}
		switch turn.Add(1) % 10 {
		case 0:
			w.Header().Set("Retry-After", "0")
			http.Error(w, "busy", http.StatusServiceUnavailable)
			return
		case 1:
			panic(http.ErrAbortHandler)
		case 2:
			select {
			case <-r.Context().Done():
			case <-time.After(5 * time.Second):
			}
			return
		case 3:
			fmt.Fprint(w, "cut off")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		fmt.Fprintf(w, "%s %s", r.Method, r.URL.Path)
	}))
	defer s.Close()
	tr := client.NewTransport()
	var lost checked
	cl := must(client.New(client.Options{Next: clienttest.CheckBodies(&lost, tr), AttemptTimeout: 3 * time.Second,
		Backoff: time.Millisecond, Hedge: time.Second, Budget: 1}))
	hc := &http.Client{Transport: cl}
	var good, bad atomic.Int64
	var all sync.WaitGroup
	for i := range 1000 {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			if i%20 == 0 {
				time.AfterFunc(time.Duration(i)*time.Microsecond, cancel)
			}
			method, text := "GET", ""
			if i%4 == 0 {
				method, text = "POST", fmt.Sprint(i)
			}
			r := must(http.NewRequestWithContext(ctx, method, fmt.Sprintf("%s/%d", s.URL, i), strings.NewReader(text)))
			res, err := hc.Do(r)
			if err != nil {
				bad.Add(1)
				return
			}
			defer res.Body.Close()
			got, err := io.ReadAll(res.Body)
			if err != nil || res.StatusCode != 200 || string(got) == "" {
				bad.Add(1)
				return
			}
			if want := fmt.Sprintf("%s /%d", method, i); string(got) != want {
				t.Errorf("got %q, want %q", got, want)
			}
			good.Add(1)
		})
	}
	all.Wait()
	orders.Range(func(order, n any) bool {
		if n.(*atomic.Int64).Load() > 1 {
			t.Errorf("order %s was taken %d times", order, n.(*atomic.Int64).Load())
		}
		return true
	})
	if good.Load() < 600 {
		t.Errorf("%d good, %d bad: %+v", good.Load(), bad.Load(), cl.Counts())
	}
	tr.CloseIdleConnections()
	s.Close()
	for range 100 {
		if runtime.NumGoroutine() <= before+5 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if now := runtime.NumGoroutine(); now > before+5 {
		t.Errorf("%d goroutines before, %d after", before, now)
	}
	for _, fault := range lost.unclosed() {
		t.Error(fault)
	}
}

// checked keeps the faults of bodies: those that were cut off or ended on purpose are
// closed before their end, but none may stay open.
type checked struct {
	cleanups []func()
	faults   []string
}

func (c *checked) Helper()          {}
func (c *checked) Cleanup(f func()) { c.cleanups = append(c.cleanups, f) }
func (c *checked) Errorf(format string, args ...any) {
	c.faults = append(c.faults, fmt.Sprintf(format, args...))
}

func (c *checked) unclosed() (faults []string) {
	for _, f := range c.cleanups {
		f()
	}
	for _, fault := range c.faults {
		if strings.Contains(fault, "not closed") {
			faults = append(faults, fault)
		}
	}
	return faults
}

// TestRefusedUpstream sends an order to an upstream that is away at first, once.
func TestRefusedUpstream(t *testing.T) {
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	addr := l.Addr().String()
	l.Close()
	var taken atomic.Int64
	up := make(chan *http.Server, 1)
	time.AfterFunc(150*time.Millisecond, func() {
		s := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { taken.Add(1) })}
		up <- s
		if l, err := net.Listen("tcp", addr); err == nil {
			_ = s.Serve(l)
		}
	})
	tr := client.NewTransport()
	defer tr.CloseIdleConnections()
	cl := must(client.New(client.Options{Next: tr, Attempts: 10}))
	res, err := cl.RoundTrip(must(http.NewRequest("POST", "http://"+addr, strings.NewReader("an order"))))
	if err != nil || res.StatusCode != 200 || taken.Load() != 1 {
		t.Fatalf("%v, taken %d times: %+v", err, taken.Load(), cl.Counts())
	}
	res.Body.Close()
	(<-up).Close()
}

// TestHedgePanics has a panic of the transport, on a goroutine of its own, be an error.
func TestHedgePanics(t *testing.T) {
	u := &upstream{do: func(int, *http.Request) (*http.Response, error) { panic("broken") }}
	cl := must(client.New(client.Options{Next: u, Hedge: time.Second}))
	_, err := cl.RoundTrip(must(http.NewRequest("GET", "http://h/", nil)))
	if err == nil || !strings.Contains(err.Error(), "panicked: broken") || u.n.Load() != 1 {
		t.Errorf("%v after %d attempts", err, u.n.Load())
	}
}

// TestOddBodies has a transport answer without a body, and with one that panics: the client
// repeats the request all the same, and the process goes on.
func TestOddBodies(t *testing.T) {
	for name, body := range map[string]io.ReadCloser{"none": nil, "broken": brokenBody{}} {
		synctest.Test(t, func(t *testing.T) {
			u := &upstream{do: func(n int, _ *http.Request) (*http.Response, error) {
				if n == 1 {
					return &http.Response{StatusCode: http.StatusServiceUnavailable, Body: body}, nil
				}
				return &http.Response{StatusCode: http.StatusOK}, nil
			}}
			cl := must(client.New(client.Options{Next: u}))
			res, err := cl.RoundTrip(must(http.NewRequest("GET", "http://h/", nil)))
			if err != nil || res.StatusCode != http.StatusOK || u.n.Load() != 2 {
				t.Fatalf("%s: %v, %v after %d attempts", name, res, err, u.n.Load())
			}
			if _, err := io.ReadAll(res.Body); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

type brokenBody struct{}

func (brokenBody) Read([]byte) (int, error) { panic("broken") }
func (brokenBody) Close() error             { panic("broken") }
