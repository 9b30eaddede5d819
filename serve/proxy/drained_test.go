package proxy_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarehq/tare/serve/proxy"
)

// TestDrainedIsNoOther has a server that gets no requests be no reason to leave the last one
// alone: requests go on to that, well or not.
func TestDrainedIsNoOther(t *testing.T) {
	var bad atomic.Bool
	last := upstream(t, func(w http.ResponseWriter, _ *http.Request) {
		if bad.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	drained := proxy.Server{Address: upstream(t, func(http.ResponseWriter, *http.Request) { t.Error("the drained server was asked") }), Drain: true}
	url, _ := front(t, proxy.Options{}, proxy.PoolOptions{Servers: []proxy.Server{drained}}, last)
	bad.Store(true)
	for range 3 {
		get(t, url)
	}
	bad.Store(false)
	if res, _ := get(t, url); res.StatusCode != http.StatusOK {
		t.Errorf("after three failures of the one server that is not drained: got %d, want its answer, 200", res.StatusCode)
	}
}

// TestLastHasItsTime has an attempt have all of its time where no other server is left to ask,
// since it is drained, or ejected.
func TestLastHasItsTime(t *testing.T) {
	const try = 50 * time.Millisecond
	var asked atomic.Int64
	slow := upstream(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		time.Sleep(4 * try)
		fmt.Fprint(w, "done")
	})
	broken := upstream(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	for name, other := range map[string]proxy.Server{"drained": {Address: broken, Drain: true}, "ejected": {Address: broken}} {
		url, h := front(t, proxy.Options{TryTimeout: try}, proxy.PoolOptions{Balance: proxy.RoundRobin, Servers: []proxy.Server{other}}, slow)
		for i := 0; name == "ejected" && i < 8; i++ { // a POST is not sent again, nor has it a time
			if _, err := http.Post(url, "", nil); err != nil {
				t.Fatal(err)
			}
		}
		asked.Store(0)
		res, body := get(t, url)
		if res.StatusCode != http.StatusOK || body != "done" || asked.Load() != 1 {
			t.Errorf("%s: got %d %q after %d attempts, want the answer of the only server that is left, asked once; %+v", name, res.StatusCode, body, asked.Load(), h.Counts())
		}
	}
}
