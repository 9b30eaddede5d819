package proxy_test

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarehq/tare/serve/client/breaker"
	"github.com/tarehq/tare/serve/client/transport"
	"github.com/tarehq/tare/serve/proxy"
	"github.com/tarehq/tare/serve/servetest"
)

// bounded is a transport with so many connections to each upstream, and no queue.
func bounded(conns int) *transport.Transport {
	tr := proxy.NewTransport(0)
	tr.Conns, tr.Queue = conns, -1
	return tr
}

// eventually has a condition come true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 3000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal(what)
}

// TestBusyUpstream has requests beyond an upstream's connections go to another one, whatever
// their method, and be answered 503 where there is none; that says nothing of its health.
func TestBusyUpstream(t *testing.T) {
	var asked atomic.Int64
	going := make(chan struct{})
	stall := func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		<-going
		fmt.Fprint(w, "ok")
	}
	pool := must(proxy.NewPool(proxy.PoolOptions{Servers: []proxy.Server{{Address: upstream(t, stall)}, {Address: upstream(t, stall)}}, Balance: proxy.RoundRobin}))
	defer pool.Close()
	h := must(proxy.New(proxy.Options{Pool: pool, Transport: bounded(1)}))
	s := servetest.NewServer(h)
	defer s.Close()
	answers := make(chan string, 2)
	for i := range 2 { // of which each is to be at one of them
		go func() {
			res, err := http.Post(s.URL, "text/plain", strings.NewReader("an order"))
			if err != nil {
				answers <- err.Error()
				return
			}
			res.Body.Close()
			answers <- res.Status
		}()
		eventually(t, "a request does not go to the upstream that has a connection for it", func() bool { return asked.Load() == int64(i+1) })
	}
	for range 5 {
		if res, _ := get(t, s.URL); res.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("all are busy: got %s", res.Status)
		}
	}
	close(going)
	for range 2 {
		if got := <-answers; got != "200 OK" {
			t.Errorf("got %s for one of those that were first", got)
		}
	}
	if res, text := get(t, s.URL); res.StatusCode != http.StatusOK || text != "ok" {
		t.Errorf("once there is a connection: got %s %q", res.Status, text)
	}
	for _, s := range pool.Status() {
		if !s.Healthy || s.Ejected != 0 {
			t.Errorf("an upstream that was busy is taken for ill: %+v", s)
		}
	}
	if n := h.Counts().Busy; n < 5 {
		t.Errorf("%d attempts found no connection, want 5 and more", n)
	}
}

// kinds are how upstreams are asked.
var kinds = []struct {
	name, scheme string
	http2        bool
}{{"HTTP/1.1", "http", false}, {"HTTP/1.1 by TLS", "https", false}, {"HTTP/2 by TLS", "https", true}, {"HTTP/2", proxy.UnencryptedHTTP2, true}}

// upstreamOf serves h in one of those ways, and returns its address.
func upstreamOf(t *testing.T, scheme string, http2 bool, h http.HandlerFunc) string {
	t.Helper()
	if scheme != "https" {
		if http2 {
			return upstreamH2C(t, h)
		}
		return upstream(t, h)
	}
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = http2
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// oneEach is a transport with one connection to each upstream, or one stream, for which requests
// wait for so long.
func oneEach(t *testing.T, scheme string, wait time.Duration) *transport.Transport {
	tr := proxy.NewTransport(0)
	tr.Conns, tr.QueueTimeout = 1, wait
	tr.TLS = &tls.Config{InsecureSkipVerify: true}
	tr.Other.(*http.Transport).TLSClientConfig = tr.TLS.Clone()
	if scheme == proxy.UnencryptedHTTP2 {
		tr.UnencryptedHTTP2, tr.Other = true, proxy.NewUnencryptedHTTP2(0)
	}
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

// TestWaitIsOurs has what a request waits for a connection be the failure of no upstream, though
// it is longer than an attempt may take, or than answers may be late.
func TestWaitIsOurs(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			var asked atomic.Int64
			going := make(chan struct{})
			var addresses []string
			for range 2 {
				addresses = append(addresses, upstreamOf(t, kind.scheme, kind.http2, func(w http.ResponseWriter, r *http.Request) {
					asked.Add(1)
					<-going
					fmt.Fprint(w, "ok")
				}))
			}
			o := proxy.Options{TryTimeout: time.Millisecond, Transport: oneEach(t, kind.scheme, 100*time.Millisecond)}
			po := proxy.PoolOptions{Scheme: kind.scheme, Balance: proxy.RoundRobin, Eject: breaker.Options{Consecutive: 1, Slow: 20 * time.Millisecond}}
			for _, a := range addresses {
				po.Servers = append(po.Servers, proxy.Server{Address: a})
			}
			pool := must(proxy.NewPool(po))
			defer pool.Close()
			o.Pool = pool
			h := must(proxy.New(o))
			s := servetest.NewServer(h)
			defer s.Close()
			var holds sync.WaitGroup
			for i := range 2 { // orders, which have no time
				holds.Go(func() {
					res, err := http.Post(s.URL, "text/plain", strings.NewReader("an order"))
					if err != nil {
						t.Error(err)
						return
					}
					res.Body.Close()
					if res.StatusCode != http.StatusOK {
						t.Errorf("an order: got %s", res.Status)
					}
				})
				eventually(t, "an order does not come", func() bool { return asked.Load() == int64(i+1) })
			}
			for range 3 {
				res, text := get(t, s.URL)
				if res.StatusCode != http.StatusServiceUnavailable || text != "Service Unavailable: no connection to a server is free\n" {
					t.Errorf("got %s %q", res.Status, text)
				}
			}
			for _, s := range pool.Status() {
				if !s.Healthy || s.Ejected != 0 {
					t.Errorf("an upstream is taken for ill: %+v", s)
				}
			}
			if got := h.Counts(); got.Busy != 6 || got.Retries != 3 || asked.Load() != 2 {
				t.Errorf("got %+v and %d requests, want 6 attempts that found no connection, and 2", got, asked.Load())
			}
			close(going)
			holds.Wait()
		})
	}
}

// TestWaitIsNotSlow has an answer that comes soon once its request has a connection not be late.
func TestWaitIsNotSlow(t *testing.T) {
	const slow = 700 * time.Millisecond
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			asked, going := make(chan struct{}, 2), make(chan struct{})
			address := upstreamOf(t, kind.scheme, kind.http2, func(w http.ResponseWriter, r *http.Request) {
				asked <- struct{}{}
				if r.Method == "POST" {
					<-going
				}
			})
			pool := must(proxy.NewPool(proxy.PoolOptions{Scheme: kind.scheme, Servers: []proxy.Server{{Address: address}}, Eject: breaker.Options{Consecutive: 1, Slow: slow}, MostOut: 1}))
			defer pool.Close()
			s := servetest.NewServer(must(proxy.New(proxy.Options{Pool: pool, Transport: oneEach(t, kind.scheme, time.Minute)})))
			defer s.Close()
			var both sync.WaitGroup
			for _, method := range []string{"POST", "GET"} {
				both.Go(func() {
					res, err := http.DefaultTransport.RoundTrip(must(http.NewRequest(method, s.URL, strings.NewReader(map[string]string{"POST": "an order"}[method]))))
					if err != nil {
						t.Error(err)
						return
					}
					res.Body.Close()
					if res.StatusCode != http.StatusOK {
						t.Errorf("%s: got %s", method, res.Status)
					}
				})
				if method == "POST" {
					<-asked
				}
			}
			time.Sleep(slow + 200*time.Millisecond)
			close(going)
			both.Wait()
			if got := pool.Status()[0]; !got.Healthy || got.Ejected != 0 {
				t.Errorf("the upstream is taken for ill: %+v", got)
			}
		})
	}
}

// TestWarmUpstreams has connections be open to the servers that get requests, as these come and
// go, and none be opened once the pool is closed.
func TestWarmUpstreams(t *testing.T) {
	before := runtime.NumGoroutine()
	listen := func() (address string, conns *atomic.Int64, end func()) {
		conns = new(atomic.Int64)
		s := httptest.NewUnstartedServer(http.NotFoundHandler())
		s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				conns.Add(1)
			}
		}
		s.Start()
		return s.Listener.Addr().String(), conns, s.Close
	}
	a, toA, endA := listen()
	b, toB, endB := listen()
	pool := must(proxy.NewPool(proxy.PoolOptions{Servers: []proxy.Server{{Address: a}}}))
	tr := proxy.NewTransport(0)
	tr.Warm = 2
	must(proxy.New(proxy.Options{Pool: pool, Transport: tr}))
	eventually(t, "the first one is not warm", func() bool { return toA.Load() == 2 })
	if err := pool.Set([]proxy.Server{{Address: a, Drain: true}, {Address: b}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the second one is not warm", func() bool { return toB.Load() == 2 })
	tr.CloseIdleConnections()
	if err := pool.Set([]proxy.Server{{Address: a}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the first one is not warm again", func() bool { return toA.Load() == 4 })
	pool.Close()
	tr.CloseIdleConnections()
	endA()
	endB()
	if toB.Load() != 2 {
		t.Errorf("%d connections to a server that gets nothing", toB.Load())
	}
	eventually(t, "goroutines are left", func() bool { return runtime.NumGoroutine() <= before })
}
