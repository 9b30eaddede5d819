package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarehq/tare/serve/client/breaker"
	"github.com/tarehq/tare/serve/proxy"
)

// TestHedge has a second upstream answer where the first is slow, the slow attempt end, and
// nothing that may not be done twice be sent twice.
func TestHedge(t *testing.T) {
	var asked, ended atomic.Int64
	slow := func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-r.Context().Done():
			ended.Add(1)
		case <-time.After(300 * time.Millisecond):
			fmt.Fprint(w, "late")
		}
	}
	quick := func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "soon") }
	for _, c := range []struct {
		method, body string
		want         string
		hedges       uint64
	}{
		{"GET", "", "soon", 1},
		{"HEAD", "", "", 1},
		{"POST", "", "late", 0},
		{"PUT", "an order", "late", 0},
		{"GET", "a question", "late", 0},
	} {
		asked.Store(0)
		url, h := front(t, proxy.Options{Hedge: 20 * time.Millisecond}, proxy.PoolOptions{Balance: proxy.RoundRobin}, upstream(t, slow), upstream(t, quick))
		for asked.Load() == 0 { // until it is the slow one's turn
			before := h.Counts().Hedges
			res, body := ask(t, must(http.NewRequest(c.method, url, strings.NewReader(c.body))))
			if asked.Load() == 0 {
				continue
			}
			if res.StatusCode != 200 || body != c.want {
				t.Errorf("%s %s: got %d %q, want %q", c.method, c.body, res.StatusCode, body, c.want)
			}
			if got := h.Counts().Hedges - before; got != c.hedges {
				t.Errorf("%s %s: %d hedges, want %d", c.method, c.body, got, c.hedges)
			}
		}
	}
	for range 500 {
		if ended.Load() == 2 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if got := ended.Load(); got != 2 {
		t.Errorf("%d slow attempts were ended, want 2", got)
	}
}

// TestHedgeFails has the slow answer be waited for where the other one is bad, or the
// budget has nothing.
func TestHedgeFails(t *testing.T) {
	slow := func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(30 * time.Millisecond)
		fmt.Fprint(w, "late")
	}
	busy := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }
	const n = 20 // each begins with either at random
	for name, o := range map[string]proxy.Options{"a bad one": {Hedge: 5 * time.Millisecond}, "no budget": {Hedge: 5 * time.Millisecond, Budget: -1}} {
		url, h := front(t, o, proxy.PoolOptions{Eject: breaker.Options{Consecutive: -1}}, upstream(t, slow), upstream(t, busy))
		late := 0
		for range n {
			if res, body := get(t, url); res.StatusCode == 200 && body == "late" {
				late++
			}
		}
		c := h.Counts()
		switch {
		case name == "a bad one" && (late != n || c.Hedges == 0), name == "no budget" && (late == 0 || late == n || c.Hedges != 0 || c.Refused == 0):
			t.Errorf("%s: %d of %d were answered, %+v", name, late, n, c)
		}
	}
}

// TestHedgeBudget has hedges end with the budget.
func TestHedgeBudget(t *testing.T) {
	slow := func(http.ResponseWriter, *http.Request) { time.Sleep(3 * time.Millisecond) }
	url, h := front(t, proxy.Options{Hedge: time.Millisecond, Budget: 0.01}, proxy.PoolOptions{}, upstream(t, slow), upstream(t, slow))
	for range 200 {
		get(t, url)
	}
	if c := h.Counts(); c.Hedges < 20 || c.Hedges > 102 || c.Hedges+c.Refused < 50 {
		t.Errorf("%+v: want a hundred hedges, and one for a hundred requests", c)
	}
}

// transportFunc is a transport that answers by a function.
type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// pooled is a handler whose upstreams are counted, and answer by a function.
func pooled(po proxy.PoolOptions, status func(host string) int) (h http.Handler, pool *proxy.Pool, counts func() map[string]int) {
	asked := map[string]int{}
	pool = must(proxy.NewPool(po))
	return must(proxy.New(proxy.Options{Pool: pool, Attempts: 1, Transport: transportFunc(func(r *http.Request) (*http.Response, error) {
			asked[r.URL.Host]++
			return &http.Response{StatusCode: status(r.URL.Host), Header: http.Header{}, Body: http.NoBody}, nil
		})})), pool, func() map[string]int {
			got := asked
			asked = map[string]int{}
			return got
		}
}

// send sends n requests.
func send(h http.Handler, n int) {
	for range n {
		h.ServeHTTP(&nobody{http.Header{}}, must(http.NewRequest("GET", "http://x/", nil)))
	}
}

// nobody is a client that does not listen.
type nobody struct{ header http.Header }

func (n *nobody) Header() http.Header         { return n.header }
func (n *nobody) Write(p []byte) (int, error) { return len(p), nil }
func (n *nobody) WriteHeader(int)             {}

func well(string) int { return 200 }

// TestSlowStart has a server that is new, or well again, get a tenth of its share, then
// more, then all of it; and all requests if it is alone.
func TestSlowStart(t *testing.T) {
	for _, balance := range []proxy.Balance{proxy.LeastRequests, proxy.RoundRobin, proxy.PeakEWMA} {
		synctest.Test(t, func(t *testing.T) {
			ill := ""
			first := []proxy.Server{{Address: "a:1"}, {Address: "b:1"}}
			h, pool, counts := pooled(proxy.PoolOptions{Servers: first, Balance: balance, SlowStart: 10 * time.Second, Eject: breaker.Options{Out: time.Second}},
				func(host string) int {
					if host == ill {
						return 500
					}
					return 200
				})
			defer pool.Close()
			const n = 3000
			within := func(when, server string, lo, hi float64) {
				t.Helper()
				counts()
				send(h, n)
				if share := float64(counts()[server]) / n; share < lo || share > hi {
					t.Errorf("%s, %s: %s got %.3f of the requests, want %.2f to %.2f", balance, when, server, share, lo, hi)
				}
			}
			within("at first", "a:1", 0.42, 0.58)
			if err := pool.Set(append(first, proxy.Server{Address: "c:1"})); err != nil {
				t.Fatal(err)
			}
			within("new", "c:1", 0.005, 0.12)
			time.Sleep(5 * time.Second)
			within("half way", "c:1", 0.12, 0.29)
			time.Sleep(6 * time.Second)
			within("at the end", "c:1", 0.26, 0.41)
			ill = "c:1"
			within("ill", "c:1", 0, 0.01)
			ill = ""
			time.Sleep(1100 * time.Millisecond)
			send(h, 10) // one of them tries it
			within("well again", "c:1", 0.002, 0.12)
			time.Sleep(11 * time.Second)
			within("for a while", "c:1", 0.26, 0.41)
			if err := pool.Set([]proxy.Server{{Address: "d:1"}}); err != nil {
				t.Fatal(err)
			}
			within("alone", "d:1", 1, 1)
		})
	}
}

// TestZones has the proxy's own zone get all requests while enough of it is well, a part
// while less is, and none once nothing is.
func TestZones(t *testing.T) {
	ill := map[string]bool{}
	var servers []proxy.Server
	for i := range 10 {
		servers = append(servers, proxy.Server{Address: fmt.Sprintf("near-%d:1", i), Zone: "a"})
	}
	for i := range 10 {
		servers = append(servers, proxy.Server{Address: fmt.Sprintf("far-%d:1", i), Zone: "b"})
	}
	h, pool, counts := pooled(proxy.PoolOptions{Servers: servers, Zone: "a", MostOut: 1, Panic: -1, Balance: proxy.RoundRobin, Eject: breaker.Options{Out: time.Hour}},
		func(host string) int {
			if ill[host] {
				return 500
			}
			return 200
		})
	defer pool.Close()
	for _, c := range []struct {
		ill    int
		lo, hi float64 // share of what is near
	}{{0, 1, 1}, {2, 1, 1}, {5, 0.66, 0.74}, {8, 0.24, 0.32}, {10, 0, 0}} {
		for i := range c.ill {
			ill[fmt.Sprintf("near-%d:1", i)] = true
		}
		send(h, 400) // so that the ill ones are left alone
		counts()
		const n = 5000
		send(h, n)
		near := 0
		for host, k := range counts() {
			if strings.HasPrefix(host, "near") {
				near += k
			}
		}
		if share := float64(near) / n; share < c.lo || share > c.hi {
			t.Errorf("%d of 10 are ill: %.3f of the requests were near, want %.2f to %.2f", c.ill, share, c.lo, c.hi)
		}
	}
}

// TestZoneRecovers has requests come back to the proxy's own zone, all of which was left alone,
// once its time is over.
func TestZoneRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		status := 500
		h, pool, counts := pooled(proxy.PoolOptions{
			Servers: []proxy.Server{{Address: "near:1", Zone: "a"}, {Address: "far:1", Zone: "b"}},
			Zone:    "a", Eject: breaker.Options{Consecutive: 1, Out: time.Minute},
		}, func(host string) int {
			if host == "near:1" {
				return status
			}
			return 200
		})
		defer pool.Close()
		send(h, 5)
		if got := counts(); got["near:1"] != 1 || got["far:1"] < 4 {
			t.Errorf("the near server fails: got %v, want one request there", got)
		}
		status = 200
		time.Sleep(time.Minute + time.Second)
		send(h, 5)
		if got := counts(); got["near:1"] != 5 {
			t.Errorf("the near server is well again: got %v, want all 5 requests there", got)
		}
	})
}

// TestBackups has backups get nothing while another server is well, those of a request that all
// others failed, and all while none is; the others are tried again once their time is over.
func TestBackups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ill := map[string]bool{}
		h, pool, counts := pooled(proxy.PoolOptions{
			Servers: []proxy.Server{{Address: "a:1"}, {Address: "b:1"}, {Address: "spare:1", Backup: true}},
			MostOut: 1, Eject: breaker.Options{Consecutive: 1, Out: time.Minute},
		}, func(host string) int {
			if ill[host] {
				return 503
			}
			return 200
		})
		defer pool.Close()
		expect := func(what string, requests, spare int) {
			t.Helper()
			send(h, requests)
			if got := counts(); got["spare:1"] != spare {
				t.Errorf("%s: of %d requests got %v, want %d at the spare one", what, requests, got, spare)
			}
		}
		expect("all are well", 200, 0)
		ill["a:1"] = true
		expect("one is ill", 200, 0)
		ill["b:1"] = true
		expect("both are ill", 200, 199) // the first one finds that out
		clear(ill)
		time.Sleep(time.Minute + time.Second)
		expect("both are well again", 200, 0)
		if err := pool.Set([]proxy.Server{{Address: "a:1", Drain: true}, {Address: "spare:1", Backup: true}}); err != nil {
			t.Fatal(err)
		}
		expect("the other one is drained", 10, 10)
		if err := pool.Set([]proxy.Server{{Address: "spare:1", Backup: true}}); err != nil {
			t.Fatal(err)
		}
		expect("there is no other", 10, 10)
	})
	if _, err := proxy.NewPool(proxy.PoolOptions{Zone: "z", Servers: []proxy.Server{{Address: "a:1"}, {Address: "b:1", Backup: true}}}); err == nil || !strings.Contains(err.Error(), "b:1 is a backup") {
		t.Errorf("backups beside zones: got %v", err)
	}
}

// TestBackupsOrPanic has a request go to a backup rather than to a server that is not well, however
// few are well.
func TestBackupsOrPanic(t *testing.T) {
	servers := []proxy.Server{{Address: "spare:1", Backup: true}}
	for i := range 5 {
		servers = append(servers, proxy.Server{Address: fmt.Sprintf("ill-%d:1", i)})
	}
	h, pool, counts := pooled(proxy.PoolOptions{Servers: servers, MostOut: 1, Eject: breaker.Options{Consecutive: 1}}, func(host string) int {
		if host == "spare:1" {
			return 200
		}
		return 503
	})
	defer pool.Close()
	send(h, 50)
	if got := counts(); got["spare:1"] != 45 {
		t.Errorf("got %v, want one request for each ill server", got)
	}
}

// TestFound has a pool begin without servers, and answer 503 until there are some.
func TestFound(t *testing.T) {
	po := proxy.PoolOptions{Found: true}
	url, _ := front(t, proxy.Options{}, po)
	if res, _ := get(t, url); res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("got %d", res.StatusCode)
	}
	h, pool, counts := pooled(po, well)
	defer pool.Close()
	for _, servers := range [][]proxy.Server{{{Address: "a:1"}}, nil} {
		if err := pool.Set(servers); err != nil {
			t.Fatal(err)
		}
		send(h, 1)
		if got := counts()["a:1"]; got != len(servers) {
			t.Errorf("%d servers: asked %d times", len(servers), got)
		}
	}
}
