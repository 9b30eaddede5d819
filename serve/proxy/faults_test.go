package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarehq/tare/serve/client/breaker"
	"github.com/tarehq/tare/serve/proxy"
	"github.com/tarehq/tare/serve/servetest"
)

// runs counts how often each order was run, by its id.
type runs struct{ m sync.Map }

func (r *runs) add(req *http.Request) {
	if id := req.Header.Get("X-Order"); id != "" {
		n, _ := r.m.LoadOrStore(id, new(atomic.Int64))
		n.(*atomic.Int64).Add(1)
	}
}

func (r *runs) most() (most int64) {
	r.m.Range(func(_, n any) bool {
		most = max(most, n.(*atomic.Int64).Load())
		return true
	})
	return most
}

// bad is an upstream that reads each request, counts it, and does something else than
// answer; nil closes the connection.
func bad(t *testing.T, counted *runs, then func(net.Conn)) string {
	t.Helper()
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	var open sync.Map
	t.Cleanup(func() {
		l.Close()
		open.Range(func(c, _ any) bool { c.(net.Conn).Close(); return true })
	})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			open.Store(c, true)
			go func() {
				defer c.Close()
				r, err := http.ReadRequest(bufio.NewReader(c))
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, r.Body)
				counted.add(r)
				if then != nil {
					then(c)
				}
			}()
		}
	}()
	return l.Addr().String()
}

// closedPort is an address where nobody listens.
func closedPort() string {
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	defer l.Close()
	return l.Addr().String()
}

// TestAnswersByClass has the pool count what a server answers, by class, and not those attempts
// that it does not answer.
func TestAnswersByClass(t *testing.T) {
	up := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/drop" {
			panic(http.ErrAbortHandler)
		}
		var status int
		_, _ = fmt.Sscanf(r.URL.Path, "/%d", &status)
		w.WriteHeader(status)
	})
	pool := must(proxy.NewPool(proxy.PoolOptions{Servers: []proxy.Server{{Address: up}}}))
	t.Cleanup(pool.Close)
	s := servetest.NewServer(must(proxy.New(proxy.Options{Pool: pool, Attempts: 1})))
	t.Cleanup(s.Close)
	for _, path := range []string{"/200", "/204", "/304", "/404", "/500", "/599", "/drop"} {
		get(t, s.URL+path)
	}
	want := map[string]uint64{"1xx": 0, "2xx": 2, "3xx": 1, "4xx": 1, "5xx": 2}
	if got := pool.Status()[0]; !maps.Equal(got.Answers, want) || got.Requests != 7 {
		t.Errorf("got %v of %d, want %v of 7", got.Answers, got.Requests, want)
	}
}

// TestPause has an answer that pauses amid its body break off, its request end, and its upstream
// be ejected; one that goes on within the time is passed on whole.
func TestPause(t *testing.T) {
	const pause = 900 * time.Millisecond
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			ended := make(chan struct{}, 1)
			address := upstreamOf(t, kind.scheme, kind.http2, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, strings.Repeat("a", 100))
				_ = http.NewResponseController(w).Flush()
				if r.URL.Path == "/stalls" {
					<-r.Context().Done()
					ended <- struct{}{}
					return
				}
				time.Sleep(pause / 10)
				_, _ = io.WriteString(w, "b")
			})
			pool := must(proxy.NewPool(proxy.PoolOptions{Scheme: kind.scheme, Servers: []proxy.Server{{Address: address}}, Eject: breaker.Options{Consecutive: 1}, MostOut: 1, Panic: -1}))
			defer pool.Close()
			s := servetest.NewServer(must(proxy.New(proxy.Options{Pool: pool, Transport: oneEach(t, kind.scheme, time.Minute), Pause: pause})))
			defer s.Close()
			if res, text := get(t, s.URL); res.StatusCode != http.StatusOK || len(text) != 101 {
				t.Errorf("an answer that goes on: got %s, %d bytes", res.Status, len(text))
			}
			res, err := http.Get(s.URL + "/stalls")
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(res.Body)
			res.Body.Close()
			if err == nil || len(text) != 100 {
				t.Errorf("an answer that pauses: got %d bytes and %v, want 100 and an error", len(text), err)
			}
			<-ended
			eventually(t, "the upstream is not ejected", func() bool { return pool.Status()[0].Ejected == 1 })
		})
	}
}

// TestFaults is the table of one bad upstream of three: nothing of it reaches a client
// whose request may be sent again, and no order is run twice.
func TestFaults(t *testing.T) {
	var counted runs
	good := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		counted.add(r)
		fmt.Fprint(w, "done")
	}
	stalled := make(chan struct{})
	t.Cleanup(func() { close(stalled) })
	for fault, address := range map[string]func() string{
		"refuses": closedPort,
		"drops":   func() string { return bad(t, &counted, nil) },
		"stalls":  func() string { return bad(t, &counted, func(net.Conn) { <-stalled }) },
		"answers 503": func() string {
			return upstream(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				counted.add(r)
				http.Error(w, "busy", http.StatusServiceUnavailable)
			})
		},
		"breaks off": func() string {
			return bad(t, &counted, func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Le") })
		},
	} {
		for _, balance := range []proxy.Balance{proxy.LeastRequests, proxy.RoundRobin} {
			t.Run(fmt.Sprintf("%s, %s", fault, balance), func(t *testing.T) {
				url, h := front(t, proxy.Options{TryTimeout: 300 * time.Millisecond, Transport: proxy.NewTransport(time.Second)}, proxy.PoolOptions{Balance: balance},
					upstream(t, good), address(), upstream(t, good))
				failed := map[string]int{}
				var mu sync.Mutex
				send := func(i int) {
					method := []string{"GET", "HEAD", "PUT", "POST"}[i%4]
					r := must(http.NewRequest(method, url, nil))
					if method == "PUT" || method == "POST" {
						r = must(http.NewRequest(method, url, strings.NewReader("an order")))
						r.Header.Set("X-Order", fmt.Sprint(method, fault, balance, i))
					}
					if method == "PUT" {
						r.Header.Set("Idempotency-Key", fmt.Sprint(i))
						r.Header.Del("X-Order") // this may be run twice
					}
					res, err := http.DefaultTransport.RoundTrip(r)
					if err == nil {
						_, err = io.Copy(io.Discard, res.Body)
						res.Body.Close()
					}
					if err != nil || res.StatusCode != http.StatusOK {
						mu.Lock()
						failed[method]++
						mu.Unlock()
					}
				}
				var all sync.WaitGroup
				for c := range 8 {
					all.Go(func() {
						for i := range 40 {
							send(40*c + i)
						}
					})
				}
				all.Wait()
				if n := failed["GET"] + failed["HEAD"] + failed["PUT"]; n > 0 {
					t.Errorf("failed: %v; %+v", failed, h.Counts())
				}
				if fault == "refuses" && failed["POST"] > 0 {
					t.Errorf("%d orders failed that were never sent", failed["POST"])
				}
			})
		}
	}
	if n := counted.most(); n > 1 {
		t.Errorf("an order was run %d times", n)
	}
}

// TestNotTwice has requests that may have been done not be sent again.
func TestNotTwice(t *testing.T) {
	large := strings.Repeat("x", 100<<10)
	for _, c := range []struct {
		name, method, body string
		fields             http.Header
		want               int // attempts
	}{
		{"get", "GET", "", nil, 3},
		{"post", "POST", "an order", nil, 1},
		{"post without a body", "POST", "", nil, 1},
		{"post with a key", "POST", "an order", http.Header{"Idempotency-Key": {"7"}}, 3},
		{"post with a key of one hop", "POST", "an order", http.Header{"Idempotency-Key": {"7"}, "Connection": {"Idempotency-Key"}}, 1},
		{"put", "PUT", "an order", nil, 3},
		{"put of more than is kept", "PUT", large, nil, 1},
		{"patch", "PATCH", "an order", nil, 1},
	} {
		var asked atomic.Int64
		h503 := func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			if body, _ := io.ReadAll(r.Body); string(body) != c.body {
				t.Errorf("%s: attempt %d had a body of %d bytes, want %d", c.name, asked.Load(), len(body), len(c.body))
			}
			http.Error(w, "busy", http.StatusServiceUnavailable)
		}
		url, _ := front(t, proxy.Options{}, proxy.PoolOptions{}, upstream(t, h503), upstream(t, h503), upstream(t, h503), upstream(t, h503))
		r := must(http.NewRequest(c.method, url, strings.NewReader(c.body)))
		maps.Copy(r.Header, c.fields)
		if res, body := ask(t, r); res.StatusCode != http.StatusServiceUnavailable || body != "busy\n" {
			t.Errorf("%s: got %d %q, want the last answer", c.name, res.StatusCode, body)
		}
		if got := int(asked.Load()); got != c.want {
			t.Errorf("%s: %d attempts, want %d", c.name, got, c.want)
		}
	}
}

// TestBudget has retries be a share of the requests, once the reserve is used up.
func TestBudget(t *testing.T) {
	h503 := func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "busy", http.StatusServiceUnavailable) }
	url, h := front(t, proxy.Options{Budget: 0.1}, proxy.PoolOptions{Eject: breaker.Options{Consecutive: -1}}, upstream(t, h503), upstream(t, h503))
	for range 500 {
		get(t, url)
	}
	if c := h.Counts(); c.Retries < 140 || c.Retries > 151 || c.Refused != 500-c.Retries {
		t.Errorf("%+v: want a hundred retries and a tenth of the requests", c)
	}
}

// TestFallback answers in the place of upstreams that are not there, or fail.
func TestFallback(t *testing.T) {
	o := proxy.Options{Fallback: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "as of yesterday") })}
	h503 := upstream(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "busy", http.StatusServiceUnavailable) })
	for name, address := range map[string]string{"refuses": closedPort(), "answers 503": h503} {
		url, _ := front(t, o, proxy.PoolOptions{}, address)
		if res, body := get(t, url); res.StatusCode != 200 || body != "as of yesterday" {
			t.Errorf("%s: got %d %q", name, res.StatusCode, body)
		}
	}
	for want, o := range map[int]proxy.Options{http.StatusBadGateway: {}, http.StatusGatewayTimeout: {Transport: &http.Transport{ResponseHeaderTimeout: 50 * time.Millisecond}}} {
		var counted runs
		stop := make(chan struct{})
		address := closedPort()
		if want == http.StatusGatewayTimeout {
			address = bad(t, &counted, func(net.Conn) { <-stop })
		}
		url, _ := front(t, o, proxy.PoolOptions{}, address)
		if res, _ := get(t, url); res.StatusCode != want {
			t.Errorf("without a fallback: got %d, want %d", res.StatusCode, want)
		}
		close(stop)
	}
}

// TestEjection has an upstream left alone after three failures, and come back.
func TestEjection(t *testing.T) {
	const out = time.Second
	var ill atomic.Bool
	var asked atomic.Int64
	ill.Store(true)
	sick := upstream(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		if ill.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	well := func(http.ResponseWriter, *http.Request) {}
	url, h := front(t, proxy.Options{}, proxy.PoolOptions{Balance: proxy.RoundRobin, Eject: breaker.Options{Out: out}},
		sick, upstream(t, well), upstream(t, well))
	begun := time.Now()
	for range 60 {
		get(t, url)
		if n := asked.Load(); n > 3 && time.Since(begun) < out {
			t.Fatalf("the sick upstream was asked %d times, want 3", n)
		}
	}
	if n := asked.Load(); n < 3 {
		t.Errorf("the sick upstream was asked %d times, want 3", n)
	}
	ill.Store(false)
	asked.Store(0)
	eventually(t, "it does not come back", func() bool { get(t, url); return asked.Load() > 0 })
	asked.Store(0)
	for range 60 {
		get(t, url)
	}
	if n := asked.Load(); n < 18 {
		t.Errorf("back again, it was asked %d times, want about 20", n)
	}
	if c := h.Counts(); c.Retries != 0 {
		t.Errorf("500 was retried: %+v", c)
	}
}

// TestLateEjected has an upstream left alone whose answers begin late, and one not whose
// answers take long.
func TestLateEjected(t *testing.T) {
	const slow, longer = 500 * time.Millisecond, 700 * time.Millisecond
	var late, long atomic.Int64
	url, _ := front(t, proxy.Options{}, proxy.PoolOptions{Balance: proxy.RoundRobin, Eject: breaker.Options{Slow: slow}},
		upstream(t, func(http.ResponseWriter, *http.Request) {
			late.Add(1)
			time.Sleep(longer)
		}),
		upstream(t, func(w http.ResponseWriter, _ *http.Request) {
			long.Add(1)
			w.(http.Flusher).Flush()
			time.Sleep(longer)
		}),
		upstream(t, func(http.ResponseWriter, *http.Request) {}))
	for range 14 {
		get(t, url)
	}
	if late.Load() != 3 || long.Load() < 4 {
		t.Errorf("the late upstream was asked %d times, want 3, the one that takes long %d times, want 4 or more", late.Load(), long.Load())
	}
}

// TestPanic has health count for nothing when too few are well.
func TestPanic(t *testing.T) {
	var asked atomic.Int64
	sick := func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusInternalServerError)
	}
	for _, c := range []struct {
		panicking float64
		atLeast   int64
		atMost    int64
	}{{0.9, 70, 100}, {-1, 3, 30}} {
		asked.Store(0)
		url, _ := front(t, proxy.Options{}, proxy.PoolOptions{Balance: proxy.RoundRobin, MostOut: 1, Panic: c.panicking},
			upstream(t, sick), upstream(t, sick), upstream(t, sick))
		for range 100 {
			get(t, url)
		}
		if n := asked.Load(); n < c.atLeast || n > c.atMost {
			t.Errorf("panic at %v: asked %d times, want %d to %d", c.panicking, n, c.atLeast, c.atMost)
		}
	}
}

// TestChecks has an upstream left alone while it says that it is ill.
func TestChecks(t *testing.T) {
	var ill atomic.Bool
	var asked atomic.Int64
	half := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			asked.Add(1)
		} else if ill.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	pool := must(proxy.NewPool(proxy.PoolOptions{
		Servers: []proxy.Server{{Address: half}, {Address: upstream(t, func(http.ResponseWriter, *http.Request) {})}},
		Check:   proxy.Check{Path: "/healthz", Interval: 10 * time.Millisecond, Fall: 2, Rise: 2},
	}))
	defer pool.Close()
	s := httptest.NewServer(must(proxy.New(proxy.Options{Pool: pool})))
	defer s.Close()
	await := func(healthy bool) {
		t.Helper()
		for range 500 {
			if pool.Status()[0].Healthy == healthy {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Fatalf("healthy is not %t: %+v", healthy, pool.Status())
	}
	ill.Store(true)
	await(false)
	for range 50 {
		get(t, s.URL)
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("asked %d times while it was ill", n)
	}
	ill.Store(false)
	await(true)
	for range 50 {
		get(t, s.URL)
	}
	if asked.Load() == 0 {
		t.Error("not asked once it was well")
	}
}

// hammer sends requests by several clients until stop is closed, and returns how many
// succeeded and what failed.
func hammer(url string, stop <-chan struct{}) func() (int64, []string) {
	var good atomic.Int64
	var mu sync.Mutex
	var failed []string
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				res, err := http.Get(url)
				if err == nil {
					_, err = io.Copy(io.Discard, res.Body)
					res.Body.Close()
				}
				if err == nil && res.StatusCode == 200 {
					good.Add(1)
					continue
				}
				mu.Lock()
				failed = append(failed, fmt.Sprint(err, res))
				mu.Unlock()
			}
		})
	}
	return func() (int64, []string) {
		all.Wait()
		return good.Load(), failed
	}
}

// TestChanges has weights and upstreams change 1,000 times under load, and no request fail.
func TestChanges(t *testing.T) {
	var ups []string
	for i := range 4 {
		ups = append(ups, upstream(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, i) }))
	}
	for _, balance := range []proxy.Balance{proxy.LeastRequests, proxy.RoundRobin, proxy.PeakEWMA, proxy.ConsistentHash} {
		pool := must(proxy.NewPool(proxy.PoolOptions{Balance: balance, Servers: []proxy.Server{{Address: ups[0]}}}))
		s := httptest.NewServer(must(proxy.New(proxy.Options{Pool: pool})))
		stop := make(chan struct{})
		wait := hammer(s.URL, stop)
		for i := range 1000 {
			var servers []proxy.Server
			for j, a := range ups {
				if (i+j)%4 != 0 {
					servers = append(servers, proxy.Server{Address: a, Weight: 1 + (i*j)%10, Drain: (i+j)%7 == 1})
				}
			}
			if err := pool.Set(servers); err != nil {
				t.Fatal(err)
			}
			if i%20 == 0 {
				time.Sleep(time.Millisecond) // requests come between
			}
		}
		close(stop)
		if n, failed := wait(); len(failed) > 0 || n == 0 {
			t.Errorf("%s: %d requests, failed: %v", balance, n, failed)
		}
		s.Close()
		pool.Close()
	}
}

// TestKilled has an upstream of three end under load, and no GET fail.
func TestKilled(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "done") })
	victim := httptest.NewServer(handler)
	url, h := front(t, proxy.Options{}, proxy.PoolOptions{}, victim.Listener.Addr().String(), upstream(t, handler), upstream(t, handler))
	stop := make(chan struct{})
	wait := hammer(url, stop)
	time.Sleep(100 * time.Millisecond)
	victim.Listener.Close()
	victim.CloseClientConnections()
	time.Sleep(200 * time.Millisecond)
	close(stop)
	if n, failed := wait(); len(failed) > 0 || n == 0 {
		t.Errorf("%d requests, failed: %v; %+v", n, failed, h.Counts())
	}
	victim.Close()
}

// TestKeys has one client's requests go to one upstream, by header, cookie or address.
func TestKeys(t *testing.T) {
	var ups []string
	for i := range 5 {
		ups = append(ups, upstream(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, i) }))
	}
	for name, c := range map[string]struct {
		key  func(*http.Request) string
		set  func(*http.Request, string)
		many bool
	}{
		"header": {proxy.ByHeader("X-User"), func(r *http.Request, s string) { r.Header.Set("X-User", s) }, true},
		"cookie": {proxy.ByCookie("sid"), func(r *http.Request, s string) { r.AddCookie(&http.Cookie{Name: "sid", Value: s}) }, true},
		"client": {nil, func(*http.Request, string) {}, false},
	} {
		url, _ := front(t, proxy.Options{}, proxy.PoolOptions{Balance: proxy.ConsistentHash, Key: c.key}, ups...)
		seen := map[string]bool{}
		for user := range 30 {
			first := ""
			for range 4 {
				r := must(http.NewRequest("GET", url, nil))
				c.set(r, fmt.Sprint("user", user))
				_, body := ask(t, r)
				if first == "" {
					first = body
				}
				if body != first {
					t.Errorf("%s: a user was with %s, then %s", name, first, body)
				}
			}
			seen[first] = true
		}
		if many := len(seen) > 2; many != c.many || !c.many && len(seen) != 1 {
			t.Errorf("%s: %d upstreams were used", name, len(seen))
		}
	}
}

// TestEarlyAnswer has an answer that comes before the request's end reach a client that waits for
// it in the middle of the body, of which nobody reads the rest. That is no other request.
func TestEarlyAnswer(t *testing.T) {
	var asked atomic.Int64
	early := transportFunc(func(*http.Request) (*http.Response, error) {
		asked.Add(1)
		return &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{"Content-Length": {"5"}}, ContentLength: 5, Body: io.NopCloser(strings.NewReader("early"))}, nil
	})
	url, _ := front(t, proxy.Options{Transport: early}, proxy.PoolOptions{}, "127.0.0.1:1")
	for _, head := range []string{"Content-Length: 200000\r\n\r\nsome of it", "Transfer-Encoding: chunked\r\n\r\na\r\nsome of it\r\n"} {
		c := must(net.Dial("tcp", strings.TrimPrefix(url, "http://")))
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(5 * time.Second))
		fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\n%s", head)
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Errorf("%.20q: %v", head, err)
			continue
		}
		text, err := io.ReadAll(res.Body)
		if res.StatusCode != http.StatusForbidden || string(text) != "early" || err != nil {
			t.Errorf("%.20q: got %s %q, %v", head, res.Status, text, err)
		}
		_, _ = io.WriteString(c, smuggled+smuggled) // the connection may have ended
		_ = c.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, c)
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("two requests, and %d were passed on", n)
	}
}

// TestShortTimeout has an attempt wait no longer than the transport's time, also while another may
// follow: two of three upstreams never answer.
func TestShortTimeout(t *testing.T) {
	const each = 300 * time.Millisecond // the one that answers does within it, on a busy machine, too
	stalled := make(chan struct{})
	defer close(stalled)
	stalls := func() string { return bad(t, new(runs), func(net.Conn) { <-stalled }) }
	url, _ := front(t, proxy.Options{Transport: proxy.NewTransport(each)}, proxy.PoolOptions{Balance: proxy.RoundRobin},
		stalls(), stalls(), upstream(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "done") }))
	began := time.Now()
	for range 3 {
		if _, text := ask(t, must(http.NewRequest("GET", url, nil))); text != "done" {
			t.Errorf("got %q", text)
		}
	}
	if took := time.Since(began); took > 14*each {
		t.Errorf("three requests took %v, want %v for each attempt that fails", took, each)
	}
}
