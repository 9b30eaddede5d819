package breaker_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/client/breaker"
)

func Example() {
	b, err := breaker.New("orders", breaker.Options{Consecutive: 2})
	if err != nil {
		panic(err)
	}
	h := b.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "the database is away", http.StatusInternalServerError)
	}))
	for range 3 {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		fmt.Printf("%d %q\n", w.Code, w.Header().Get("Retry-After"))
	}
	// Output:
	// 500 ""
	// 500 ""
	// 503 "5"
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// ask makes a request that ends at once, and reports whether it passed.
func ask(b *breaker.Breaker, failed bool) bool {
	p, err := b.Ask()
	if err == nil {
		p.Done(failed)
	}
	return err == nil
}

// TestStates follows a breaker through its life: each wait is twice the one before until
// it was closed for long enough.
func TestStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var changes []string
		b := must(breaker.New("x", breaker.Options{Consecutive: 3, Out: time.Second, MostOut: 4 * time.Second, Probes: 2,
			Changed: func(name string, to breaker.State) { changes = append(changes, name+" "+to.String()) }}))
		for _, failed := range []bool{true, true, false, true, true} {
			ask(b, failed)
		}
		if b.State() != breaker.Closed {
			t.Fatalf("%s after failures that were not in a row", b.State())
		}
		ask(b, true)
		for _, out := range []time.Duration{1, 2, 4, 4} {
			if b.State() != breaker.Open {
				t.Fatalf("%s, want open", b.State())
			}
			time.Sleep(out*time.Second - time.Millisecond)
			var open *breaker.OpenError
			if _, err := b.Ask(); !errors.As(err, &open) || open.Retry != time.Millisecond || open.Name != "x" {
				t.Fatalf("a millisecond before the end of %d s: %v", out, err)
			}
			time.Sleep(time.Millisecond)
			if !ask(b, true) {
				t.Fatalf("no request tries after %d s", out)
			}
		}
		time.Sleep(4 * time.Second)
		if !ask(b, false) || b.State() != breaker.HalfOpen || !ask(b, false) || b.State() != breaker.Closed {
			t.Fatalf("%s after two that tried with success, want closed", b.State())
		}
		time.Sleep(4 * time.Second) // as long as it was open
		for range 3 {
			ask(b, true)
		}
		time.Sleep(time.Second)
		if !ask(b, false) {
			t.Error("the time did not begin anew")
		}
		want := "x open,x half open,x open,x half open,x open,x half open,x open,x half open,x open,x half open,x closed,x open,x half open"
		if got := strings.Join(changes, ","); got != want {
			t.Errorf("changes: %s\nwant     %s", got, want)
		}
		if b.Refused() != 4 || b.Openings() != 6 {
			t.Errorf("%d refused, %d openings", b.Refused(), b.Openings())
		}
	})
}

func TestShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := must(breaker.New("x", breaker.Options{Consecutive: -1, Share: 0.1, Least: 50, Window: 10 * time.Second}))
		for i := range 49 {
			ask(b, i%2 == 0)
		}
		if b.State() != breaker.Closed {
			t.Fatal("opened by fewer requests than Least")
		}
		time.Sleep(12 * time.Second) // all slide out
		for i := range 200 {
			ask(b, i%11 == 10)
			time.Sleep(10 * time.Millisecond)
		}
		if b.State() != breaker.Closed {
			t.Fatal("opened by a share of one in eleven")
		}
		for range 10 {
			ask(b, true)
		}
		if b.State() != breaker.Open {
			t.Fatal("closed after a share of one in eight")
		}
	})
}

// TestProbe has one request try at a time, and one that never ends give way.
func TestProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := must(breaker.New("x", breaker.Options{Consecutive: 1, Out: time.Second}))
		old, _ := b.Ask()
		ask(b, true)
		time.Sleep(time.Second)
		first, err := b.Ask()
		if err != nil {
			t.Fatal(err)
		}
		old.Done(true) // began before the breaker opened: it says nothing of now
		if ask(b, false) {
			t.Error("two requests try at a time")
		}
		first.Forget()
		second, err := b.Ask()
		if err != nil {
			t.Errorf("after one that was forgotten: %v", err)
		}
		time.Sleep(time.Second)
		if !ask(b, false) || b.State() != breaker.Closed {
			t.Error("a request that never ends keeps others from trying")
		}
		second.Done(true)
		if b.State() != breaker.Closed {
			t.Error("a result of an older state counts")
		}
	})
}

func TestSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := must(breaker.New("x", breaker.Options{Consecutive: 2, Slow: time.Second}))
		p, _ := b.Ask()
		q, _ := b.Ask()
		time.Sleep(1100 * time.Millisecond)
		p.Done(false)
		q.Forget()
		if b.State() != breaker.Open {
			t.Error("closed after two slow requests")
		}
	})
}

// TestGroup never has more than half out, whatever fails.
func TestGroup(t *testing.T) {
	g := must(breaker.NewGroup(breaker.Options{Consecutive: 3}, 0))
	passing := func(names ...string) (n int) {
		for _, name := range names {
			if ask(g.Member(name), true) {
				n++
			}
		}
		return n
	}
	for range 10 {
		passing("a")
	}
	if g.Out() != 0 {
		t.Error("the only member is out")
	}
	names := []string{"a", "b", "c", "d", "e"}
	for range 10 {
		passing(names...)
	}
	if n := passing(names...); n != 3 || g.Out() != 2 {
		t.Errorf("%d of 5 pass, %d are out, want 3 and 2", n, g.Out())
	}
	for _, name := range names {
		if b := g.Member(name); b.State() == breaker.Open {
			g.Remove(name)
		}
	}
	if g.Out() != 0 {
		t.Errorf("%d are out after they were removed", g.Out())
	}
	if passing(names...); g.Out() != 2 { // places that came free are taken
		t.Errorf("%d are out", g.Out())
	}
	g.Remove("none")
}

func TestOptions(t *testing.T) {
	for _, o := range []breaker.Options{{Out: -1}, {Share: 2}, {Share: math.NaN()}, {Probes: -1}} {
		if _, err := breaker.New("x", o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
		if _, err := breaker.NewTransport(o, http.DefaultTransport); err == nil {
			t.Errorf("%+v is accepted by a transport", o)
		}
	}
	if _, err := breaker.NewGroup(breaker.Options{}, 1.5); err == nil {
		t.Error("more than all may be out")
	}
}

// TestMiddleware counts failures and panics, and neither those who went away nor what
// the fallback says.
func TestMiddleware(t *testing.T) {
	b := must(breaker.New("x", breaker.Options{Consecutive: 2, Fallback: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "as known from before")
	})}))
	var do func(http.ResponseWriter, *http.Request)
	h := b.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { do(w, r) }))
	serve := func(ctx context.Context) string {
		defer func() { _ = recover() }()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil).WithContext(ctx))
		return w.Body.String()
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	do = func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	for range 5 {
		serve(gone)
	}
	if b.State() != breaker.Closed {
		t.Error("opened by clients that went away")
	}
	serve(t.Context())
	do = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }
	serve(t.Context())
	if got := serve(t.Context()); b.State() != breaker.Open || got != "as known from before" {
		t.Errorf("%s, answer %q", b.State(), got)
	}
}

// TestSlowClients has clients send and read slowly, and go away: that opens nothing. A handler and
// an upstream that take their time do.
func TestSlowClients(t *testing.T) {
	for name, c := range map[string]struct {
		do   http.HandlerFunc
		want breaker.State
	}{
		"slow body": {func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }, breaker.Closed},
		"slow body, read beside": {func(_ http.ResponseWriter, r *http.Request) {
			go func() { _, _ = io.Copy(io.Discard, r.Body) }()
			time.Sleep(5 * time.Second)
		}, breaker.Closed},
		"slow reader":  {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200); time.Sleep(time.Minute) }, breaker.Closed},
		"slow handler": {func(http.ResponseWriter, *http.Request) { time.Sleep(2 * time.Second) }, breaker.Open},
		"slow with both": {func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			time.Sleep(2 * time.Second)
		}, breaker.Open},
	} {
		synctest.Test(t, func(t *testing.T) {
			o := breaker.Options{Consecutive: 2, Slow: time.Second}
			b := must(breaker.New("x", o))
			tr := must(breaker.NewTransport(o, roundTrip(func(r *http.Request) (*http.Response, error) {
				c.do(httptest.NewRecorder(), r)
				return nil, context.Canceled
			})))
			for range 2 {
				gone, cancel := context.WithCancel(t.Context())
				cancel()
				r := httptest.NewRequest("POST", "http://upstream/", io.NopCloser(&slowly{left: 10})).WithContext(gone)
				b.Middleware(c.do).ServeHTTP(httptest.NewRecorder(), r)
				r = httptest.NewRequest("POST", "http://upstream/", io.NopCloser(&slowly{left: 10})).WithContext(gone)
				if res, err := tr.RoundTrip(r); err == nil {
					res.Body.Close()
				}
			}
			if b.State() != c.want {
				t.Errorf("%s: the middleware is %s, want %s", name, b.State(), c.want)
			}
			if got := tr.Host("upstream").State(); got != c.want && name != "slow reader" {
				t.Errorf("%s: the transport is %s, want %s", name, got, c.want)
			}
			time.Sleep(time.Minute) // reads end
		})
	}
}

// TestTakenOver has handlers take connections over, as for a WebSocket, and keep them: that opens
// nothing. One that takes its time before does.
func TestTakenOver(t *testing.T) {
	for before, want := range map[time.Duration]breaker.State{0: breaker.Closed, 2 * time.Second: breaker.Open} {
		synctest.Test(t, func(t *testing.T) {
			b := must(breaker.New("x", breaker.Options{Consecutive: 2, Slow: time.Second}))
			h := b.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				time.Sleep(before)
				if _, _, err := http.NewResponseController(w).Hijack(); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Hour)
			}))
			for range 2 {
				h.ServeHTTP(hijackable{httptest.NewRecorder()}, httptest.NewRequest("GET", "/", nil))
			}
			if b.State() != want {
				t.Errorf("taken over after %s: the breaker is %s, want %s", before, b.State(), want)
			}
		})
	}
}

type hijackable struct{ http.ResponseWriter }

func (hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, nil }

// slowly is a body of which a byte comes each second.
type slowly struct{ left int }

func (s *slowly) Read(p []byte) (int, error) {
	if s.left--; s.left < 0 {
		return 0, io.EOF
	}
	time.Sleep(time.Second)
	return copy(p, "x"), nil
}

// TestTransport guards hosts apart from each other.
func TestTransport(t *testing.T) {
	var asked atomic.Int64
	bad := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusInternalServerError)
	}))
	defer bad.Close()
	good := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer good.Close()
	guarded := must(breaker.NewTransport(breaker.Options{Consecutive: 3}, http.DefaultTransport))
	c := &http.Client{Transport: guarded}
	defer c.CloseIdleConnections()
	for i := range 6 {
		res, err := c.Post(bad.URL, "text/plain", strings.NewReader("body"))
		var open *breaker.OpenError
		if refused := errors.As(err, &open); refused != (i >= 3) {
			t.Errorf("request %d: %v", i, err)
		}
		if err == nil {
			res.Body.Close()
		}
		if res, err = c.Get(good.URL); err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	if asked.Load() != 3 {
		t.Errorf("the host was asked %d times", asked.Load())
	}
	fallback := must(breaker.NewTransport(breaker.Options{Consecutive: 1, Fallback: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Host", r.URL.Host)
		http.Error(w, "later", http.StatusServiceUnavailable)
	})}, http.DefaultTransport))
	for _, want := range []string{"500 Internal Server Error ", "503 Service Unavailable later\n"} {
		r := must(http.NewRequest("GET", bad.URL, nil))
		res := must(fallback.RoundTrip(r))
		text := must(io.ReadAll(res.Body))
		res.Body.Close()
		if got := res.Status + " " + string(text); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestStalledHost has a time-out count as a failure, and a caller that went away not.
func TestStalledHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := must(breaker.NewTransport(breaker.Options{Consecutive: 2}, stalled{}))
		for _, end := range []func(context.Context) (context.Context, context.CancelFunc){
			func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(ctx)
				time.AfterFunc(time.Second, cancel)
				return ctx, cancel
			},
			func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, time.Second)
			},
		} {
			if tr.Host("h").State() != breaker.Closed {
				t.Error("opened by callers that went away")
			}
			for range 2 {
				ctx, cancel := end(t.Context())
				if _, err := tr.RoundTrip(must(http.NewRequestWithContext(ctx, "GET", "http://h/", nil))); err == nil {
					t.Error("no error")
				}
				cancel()
			}
		}
		if tr.Host("h").State() != breaker.Open {
			t.Error("closed after time-outs")
		}
	})
}

type stalled struct{}

func (stalled) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// TestManyHosts bounds what a transport remembers.
func TestManyHosts(t *testing.T) {
	tr := must(breaker.NewTransport(breaker.Options{}, stalled{}))
	n := 0
	for i := range 5000 {
		if tr.Host(fmt.Sprint(i)) != nil {
			n++
		}
	}
	if n != 1024 || tr.Host("7") == nil {
		t.Errorf("%d hosts are remembered", n)
	}
}

// TestConcurrent has a thousand clients at a group whose members fail and recover.
func TestConcurrent(t *testing.T) {
	g := must(breaker.NewGroup(breaker.Options{Consecutive: 3, Out: time.Millisecond}, 0.5))
	for i := range 10 {
		g.Member(fmt.Sprint(i))
	}
	var all sync.WaitGroup
	var most atomic.Int64
	for i := range 1000 {
		all.Go(func() {
			b := g.Member(fmt.Sprint(i % 10))
			for n := range 100 {
				if p, err := b.Ask(); err == nil {
					if n%7 == 0 {
						p.Forget()
					} else {
						p.Done((i+n/10)%3 != 0)
					}
				}
				if out := int64(g.Out()); out > most.Load() {
					most.Store(out)
				}
			}
		})
	}
	all.Wait()
	if most.Load() > 5 {
		t.Errorf("%d of 10 were out at a time", most.Load())
	}
	out := 0
	for i := range 10 {
		if g.Member(fmt.Sprint(i)).State() != breaker.Closed {
			out++
		}
	}
	if out != g.Out() {
		t.Errorf("%d are out, the group counts %d", out, g.Out())
	}
}

func TestAllocs(t *testing.T) {
	b := must(breaker.New("x", breaker.Options{}))
	if n := testing.AllocsPerRun(1000, func() { ask(b, false) }); n != 0 {
		t.Errorf("%v allocations a request", n)
	}
	h := b.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	w, _ := chain.Record(httptest.NewRecorder())
	r := httptest.NewRequest("GET", "/", nil)
	if n := testing.AllocsPerRun(1000, func() { h.ServeHTTP(w, r) }); n != 0 {
		t.Errorf("%v allocations a request of the middleware", n)
	}
}

func BenchmarkAsk(b *testing.B) {
	br := must(breaker.New("x", breaker.Options{Slow: time.Second}))
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			ask(br, false)
		}
	})
}

// panics is a transport that does, and a body that is open until it is closed.
type panics struct{ closed int }

func (p *panics) RoundTrip(*http.Request) (*http.Response, error) { panic("broken") }
func (p *panics) Read([]byte) (int, error)                        { return 0, io.EOF }
func (p *panics) Close() error                                    { p.closed++; return nil }

// TestTransportPanics counts a panic of the transport as a failure. One of the fallback
// leaves no body open.
func TestTransportPanics(t *testing.T) {
	p := &panics{}
	tr := must(breaker.NewTransport(breaker.Options{Consecutive: 2, Fallback: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("no answer") })}, p))
	send := func() (with any) {
		defer func() { with = recover() }()
		r := must(http.NewRequest("POST", "http://h/", p))
		_, _ = tr.RoundTrip(r)
		return nil
	}
	if first, second := send(), send(); first != "broken" || second != "broken" || tr.Host("h").State() != breaker.Open {
		t.Errorf("%v, %v: the breaker is %s", first, second, tr.Host("h").State())
	}
	if with := send(); with != "no answer" || p.closed != 1 {
		t.Errorf("%v: the body was closed %d times", with, p.closed)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
