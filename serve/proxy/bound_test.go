package proxy_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

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
