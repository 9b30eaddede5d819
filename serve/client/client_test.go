package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarehq/tare/serve/client"
	"github.com/tarehq/tare/serve/client/breaker"
	"github.com/tarehq/tare/serve/client/clienttest"
	"github.com/tarehq/tare/serve/client/transport"
)

func Example() {
	guarded, err := breaker.NewTransport(breaker.Options{}, client.NewTransport())
	if err != nil {
		panic(err)
	}
	c, err := client.New(client.Options{Next: guarded})
	if err != nil {
		panic(err)
	}
	hc := &http.Client{Transport: c} // one for the whole program

	n := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n++; n < 3 {
			http.Error(w, "not yet", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(w, "seven in stock")
	}))
	defer s.Close()
	res, err := hc.Get(s.URL)
	if err != nil {
		panic(err)
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	fmt.Println(string(text), c.Counts())
	// Output: seven in stock {1 2 0 0}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// upstream is a transport that answers by a function, which gets the number of the
// attempt, from 1.
type upstream struct {
	n      atomic.Int64
	bodies []string
	do     func(n int, r *http.Request) (*http.Response, error)
}

func (u *upstream) RoundTrip(r *http.Request) (*http.Response, error) {
	n := int(u.n.Add(1))
	if r.Body != nil {
		b, _ := io.ReadAll(r.Body)
		u.bodies = append(u.bodies, string(b))
		r.Body.Close()
	}
	return u.do(n, r)
}

func respond(status int, header ...string) *http.Response {
	res := &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("text"))}
	for i := 0; i < len(header); i += 2 {
		res.Header.Set(header[i], header[i+1])
	}
	return res
}

var (
	errRefused = &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	errReset   = &net.OpError{Op: "read", Err: syscall.ECONNRESET}
)

// TestRepeats says what is sent again, and what never is.
func TestRepeats(t *testing.T) {
	body := func() io.Reader { return strings.NewReader("an order") }
	stream := func() io.Reader { return io.MultiReader(strings.NewReader("an order")) }
	key := []string{"Idempotency-Key", "7"}
	for _, c := range []struct {
		name, method string
		body         func() io.Reader
		header       []string
		status       int
		err          error
		want         int // attempts
	}{
		{"get", "GET", nil, nil, 503, nil, 3},
		{"empty method", "", nil, nil, 503, nil, 3},
		{"get reset", "GET", nil, nil, 0, errReset, 3},
		{"get ends early", "GET", nil, nil, 0, io.ErrUnexpectedEOF, 3},
		{"bad gateway", "GET", nil, nil, 502, nil, 3},
		{"too many", "GET", nil, nil, 429, nil, 3},
		{"not found", "GET", nil, nil, 404, nil, 1},
		{"error of the handler", "GET", nil, nil, 500, nil, 1},
		{"put", "PUT", body, nil, 503, nil, 3},
		{"put of a stream", "PUT", stream, nil, 503, nil, 1},
		{"post", "POST", body, nil, 503, nil, 1},
		{"post reset", "POST", body, nil, 0, errReset, 1},
		{"post with a key", "POST", body, key, 503, nil, 3},
		{"post refused", "POST", body, nil, 0, errRefused, 3},
		{"post of a stream refused", "POST", stream, nil, 0, errRefused, 1},
		{"patch", "PATCH", body, nil, 502, nil, 1},
		{"post without a free connection", "POST", body, nil, 0, &transport.BusyError{Err: errors.New("none")}, 3},
		{"no such host", "GET", nil, nil, 0, &net.OpError{Op: "dial", Err: &net.DNSError{IsNotFound: true}}, 1},
		{"open breaker", "GET", nil, nil, 0, &breaker.OpenError{}, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			u := &upstream{do: func(int, *http.Request) (*http.Response, error) {
				if c.err != nil {
					return nil, c.err
				}
				return respond(c.status), nil
			}}
			cl := must(client.New(client.Options{Next: u}))
			var b io.Reader
			if c.body != nil {
				b = c.body()
			}
			r := must(http.NewRequest(c.method, "http://upstream/", b))
			r.Method = c.method
			if c.header != nil {
				r.Header.Set(c.header[0], c.header[1])
			}
			res, err := cl.RoundTrip(r)
			if c.err == nil && (err != nil || res.StatusCode != c.status) || c.err != nil && !errors.Is(err, c.err) {
				t.Errorf("%s: %v, %v: want the last attempt's outcome", c.name, res, err)
			}
			if err == nil {
				if text, err := io.ReadAll(res.Body); string(text) != "text" || err != nil {
					t.Errorf("%s: the last answer's body is %q, %v", c.name, text, err)
				}
				res.Body.Close()
			}
			if got := int(u.n.Load()); got != c.want {
				t.Errorf("%s: %d attempts, want %d", c.name, got, c.want)
			}
			for i, got := range u.bodies {
				if got != "an order" {
					t.Errorf("%s: attempt %d had the body %q", c.name, i+1, got)
				}
			}
		})
	}
}

// TestPermanentErrors has requests that no attempt could send be sent once.
func TestPermanentErrors(t *testing.T) {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	s.Config.ErrorLog = nil
	defer s.Close()
	for name, change := range map[string]func(*http.Request){
		"scheme":      func(r *http.Request) { r.URL.Scheme = "gopher" },
		"host":        func(r *http.Request) { r.URL.Host = "" },
		"field name":  func(r *http.Request) { r.Header["a b"] = []string{"x"} },
		"field value": func(r *http.Request) { r.Header["A"] = []string{"x\n"} },
		"method":      func(r *http.Request) { r.Method = "GET /" },
		"certificate": func(r *http.Request) {},
	} {
		for _, next := range []http.RoundTripper{client.NewTransport(), &transport.Transport{Options: transport.Options{Other: client.NewTransport()}}} {
			for _, scheme := range []string{"https", "http"} {
				if scheme == "http" && name == "certificate" {
					continue
				}
				cl := must(client.New(client.Options{Next: next, Backoff: time.Millisecond, Repeatable: func(*http.Request) bool { return true }}))
				r := must(http.NewRequest("GET", scheme+strings.TrimPrefix(s.URL, "https"), nil))
				change(r)
				if _, err := cl.RoundTrip(r); err == nil || cl.Counts().Retries != 0 {
					t.Errorf("%s by %s with %T: %v, %+v", name, scheme, next, err, cl.Counts())
				}
			}
		}
	}
	if _, err := must(client.New(client.Options{})).RoundTrip(new(http.Request)); err == nil {
		t.Error("a request without URL is sent")
	}
}

// TestWaits holds the waits to their bounds, Retry-After and the deadline.
func TestWaits(t *testing.T) {
	in := func(d time.Duration) func() string {
		return func() string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
	}
	say := func(text string) func() string { return func() string { return text } }
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			name     string
			after    func() string // Retry-After
			deadline time.Duration
			attempts int
			least    time.Duration
			most     time.Duration
		}{
			{"no word", say(""), time.Minute, 3, 2, 300 * time.Millisecond},
			{"seconds", say("2"), time.Minute, 3, 4 * time.Second, 4300 * time.Millisecond},
			{"a date", in(3 * time.Second), time.Minute, 3, 4 * time.Second, 6300 * time.Millisecond},
			{"a date gone by", in(-time.Hour), time.Minute, 3, 2, 300 * time.Millisecond},
			{"nonsense", say("soon"), time.Minute, 3, 2, 300 * time.Millisecond},
			{"too long", say("11"), time.Minute, 1, 0, 0},
			{"too long to count", say("99999999999999999999"), time.Minute, 1, 0, 0},
			{"beyond the deadline", say("5"), 4 * time.Second, 1, 0, 0},
		} {
			u := &upstream{do: func(int, *http.Request) (*http.Response, error) {
				return respond(503, "Retry-After", c.after()), nil
			}}
			cl := must(client.New(client.Options{Next: u}))
			ctx, cancel := context.WithTimeout(t.Context(), c.deadline)
			begun := time.Now()
			res, err := cl.RoundTrip(must(http.NewRequestWithContext(ctx, "GET", "http://upstream/", nil)))
			if err != nil || res.StatusCode != 503 {
				t.Errorf("%s: %v", c.name, err)
			}
			if took := time.Since(begun); took < c.least || took > c.most || int(u.n.Load()) != c.attempts {
				t.Errorf("%s: %d attempts in %s, want %d in %s to %s", c.name, u.n.Load(), took, c.attempts, c.least, c.most)
			}
			cancel()
		}
	})
}

// TestCallerGone ends a wait with its caller.
func TestCallerGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &upstream{do: func(int, *http.Request) (*http.Response, error) { return respond(503, "Retry-After", "9"), nil }}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		begun := time.Now()
		_, err := must(client.New(client.Options{Next: u})).RoundTrip(must(http.NewRequestWithContext(ctx, "GET", "http://upstream/", nil)))
		if took := time.Since(begun); !errors.Is(err, context.Canceled) || took != time.Second || u.n.Load() != 1 {
			t.Errorf("%v after %s, %d attempts", err, took, u.n.Load())
		}
	})
}

// TestDeadline gives a request that has none one, ends its body with it, and passes it on.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var field string
		u := &upstream{do: func(_ int, r *http.Request) (*http.Response, error) {
			field = r.Header.Get("X-Deadline-Ms")
			res := respond(200)
			res.Body = io.NopCloser(&endless{r.Context()})
			return res, nil
		}}
		cl := must(client.New(client.Options{Next: u, Timeout: 2 * time.Second, DeadlineField: "x-deadline-ms"}))
		r := must(http.NewRequestWithContext(t.Context(), "GET", "http://upstream/", nil))
		begun := time.Now()
		res := must(cl.RoundTrip(r))
		_, err := io.ReadAll(res.Body)
		if took := time.Since(begun); !errors.Is(err, context.DeadlineExceeded) || took != 2*time.Second {
			t.Errorf("%v after %s", err, took)
		}
		if field != "2000" || r.Header.Get("X-Deadline-Ms") != "" {
			t.Errorf("the upstream was sent %q, the request changed to %q", field, r.Header.Get("X-Deadline-Ms"))
		}
	})
}

// endless is a body that never comes.
type endless struct{ ctx context.Context }

func (e *endless) Read([]byte) (int, error) {
	<-e.ctx.Done()
	return 0, e.ctx.Err()
}

// TestAttemptTimeout has an attempt that stalls give way to another one, and the time
// not apply to the body.
func TestAttemptTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &upstream{do: func(n int, r *http.Request) (*http.Response, error) {
			if n < 3 {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			res := respond(200)
			res.Body = io.NopCloser(&late{r.Context(), 10 * time.Second})
			return res, nil
		}}
		guard := must(breaker.NewTransport(breaker.Options{Consecutive: 2}, u))
		cl := must(client.New(client.Options{Next: guard, AttemptTimeout: time.Second}))
		_, err := cl.RoundTrip(must(http.NewRequest("POST", "http://upstream/", nil)))
		var timeout interface{ Timeout() bool }
		if !errors.As(err, &timeout) || !timeout.Timeout() || !errors.Is(err, context.DeadlineExceeded) || u.n.Load() != 1 {
			t.Errorf("POST: %v after %d attempts", err, u.n.Load())
		}
		if _, err := cl.RoundTrip(must(http.NewRequest("POST", "http://upstream/", nil))); err == nil || guard.Host("upstream").State() != breaker.Open {
			t.Error("attempts that time out do not open the breaker")
		}
		time.Sleep(5 * time.Second)
		res := must(cl.RoundTrip(must(http.NewRequest("GET", "http://upstream/", nil))))
		if text, err := io.ReadAll(res.Body); string(text) != "late" || err != nil {
			t.Errorf("body %q, %v", text, err)
		}
		res.Body.Close()
	})
}

// late is a body that comes after a time.
type late struct {
	ctx   context.Context
	after time.Duration
}

func (l *late) Read(p []byte) (int, error) {
	select {
	case <-time.After(l.after):
		return copy(p, "late"), io.EOF
	case <-l.ctx.Done():
		return 0, l.ctx.Err()
	}
}

// TestBudget bounds what a host in trouble is sent, and leaves other hosts theirs.
func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &upstream{do: func(_ int, r *http.Request) (*http.Response, error) {
			if r.URL.Host == "bad" {
				return nil, errReset
			}
			return respond(200), nil
		}}
		cl := must(client.New(client.Options{Next: u, Backoff: time.Nanosecond}))
		for range 1000 {
			_, _ = cl.RoundTrip(must(http.NewRequest("GET", "http://bad/", nil)))
		}
		// Ten at first, and one for every ten requests.
		if got := u.n.Load() - 1000; got < 105 || got > 111 {
			t.Errorf("1000 requests were sent again %d times, want 110 at most", got)
		}
		if c := cl.Counts(); c.Requests != 1000 || c.Refused < 800 || int64(c.Retries) != u.n.Load()-1000 {
			t.Errorf("%+v", c)
		}
		time.Sleep(time.Minute)
		before := u.n.Load()
		for range 20 {
			_, _ = cl.RoundTrip(must(http.NewRequest("GET", "http://bad/", nil)))
		}
		if got := u.n.Load() - before - 20; got < 10 || got > 12 {
			t.Errorf("after a rest 20 requests were sent again %d times, want 12 at most", got)
		}
		none := must(client.New(client.Options{Next: u, Budget: -1}))
		before = u.n.Load()
		if _, _ = none.RoundTrip(must(http.NewRequest("GET", "http://bad/", nil))); u.n.Load() != before+1 {
			t.Error("without a budget a request was sent again")
		}
	})
}

func TestOptions(t *testing.T) {
	for _, o := range []client.Options{{Attempts: -1}, {Attempts: 1000}, {Budget: 2}, {Budget: math.NaN()}, {Hedge: -1}, {Backoff: -1}} {
		if _, err := client.New(o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}

// TestUpgrade leaves the body of a 101 one that can be written to.
func TestUpgrade(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		rw.Flush()
		_, _ = io.CopyN(conn, rw, 4)
	}))
	defer s.Close()
	cl := must(client.New(client.Options{Next: clienttest.CheckBodies(t, client.NewTransport())}))
	r := must(http.NewRequest("GET", s.URL, nil))
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "echo")
	res := must(cl.RoundTrip(r))
	defer res.Body.Close()
	stream, ok := res.Body.(io.ReadWriter)
	if !ok {
		t.Fatalf("the body is a %T", res.Body)
	}
	fmt.Fprint(stream, "ping")
	got := make([]byte, 4)
	if _, err := io.ReadFull(stream, got); err != nil || !bytes.Equal(got, []byte("ping")) {
		t.Errorf("%q, %v", got, err)
	}
}

// TestAllocs counts what a client adds to a request that has a deadline.
func TestAllocs(t *testing.T) {
	cl := must(client.New(client.Options{Next: fixed{respond(200)}}))
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	r := must(http.NewRequestWithContext(ctx, "GET", "http://upstream/", nil))
	if n := testing.AllocsPerRun(1000, func() { _, _ = cl.RoundTrip(r) }); n != 0 {
		t.Errorf("%v allocations a request", n)
	}
}

type fixed struct{ res *http.Response }

func (f fixed) RoundTrip(*http.Request) (*http.Response, error) { return f.res, nil }

// answering is a transport that makes a new answer each time.
type answering struct{}

func (answering) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
}

// BenchmarkRoundTrip says what a client adds to its transport, which makes an answer.
func BenchmarkRoundTrip(b *testing.B) {
	ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
	defer cancel()
	for _, c := range []struct {
		name string
		ctx  context.Context
		rt   http.RoundTripper
	}{
		{"client=none", ctx, answering{}},
		{"client=deadline", ctx, must(client.New(client.Options{Next: answering{}}))},
		{"client=timeout", b.Context(), must(client.New(client.Options{Next: answering{}}))},
		{"client=hedge", ctx, must(client.New(client.Options{Next: answering{}, Hedge: time.Second}))},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := must(http.NewRequestWithContext(c.ctx, "GET", "http://upstream/", nil))
			b.ReportAllocs()
			for b.Loop() {
				res, err := c.rt.RoundTrip(r)
				if err != nil {
					b.Fatal(err)
				}
				res.Body.Close()
			}
		})
	}
}
