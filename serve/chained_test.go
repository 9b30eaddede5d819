package serve_test

import (
	"net/http"
	"sync"
	"testing"

	"github.com/tarehq/tare/serve"
	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/router"
)

// firstKey is among a program's first, whose values a chain's state has places for.
var firstKey = chain.NewKey[*http.Cookie]("user")

// TestChainedAllocations holds that a chain behind a router, with a value and a
// record of the answer, adds no allocation to a request on a Server.
func TestChainedAllocations(t *testing.T) {
	key, ann := firstKey, &http.Cookie{Name: "ann"}
	kind := []string{"text/plain"}
	body := []byte("hello")
	set := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, key.With(r, ann))
		})
	}
	record := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w, rec := chain.Record(w)
			next.ServeHTTP(w, r)
			if rec.Status() != http.StatusOK {
				t.Errorf("status %d recorded, want 200", rec.Status())
			}
		})
	}
	h, err := chain.New(record, set).Then(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u, ok := key.Value(r); !ok || u != ann {
			t.Errorf("value %v, %t, want ann", u, ok)
		}
		w.Header()["Content-Type"] = kind
		w.Write(body)
	}))
	if err != nil {
		t.Fatal(err)
	}
	rt := new(router.Router)
	rt.Handle("GET /users/{user}/posts/{post}", h)
	for _, reuse := range []bool{false, true} {
		want, most := 5.0, 1700.0 // two of them, of 400 bytes, are the map of the answer's fields
		if reuse {
			want, most = 0, 1
		}
		got, bytes := requestAllocations(t, &serve.Server{Handler: rt, Reuse: reuse})
		if got > want || bytes > most {
			t.Errorf("reuse %t: %v allocations and %.0f bytes a request, want at most %v and %.0f", reuse, got, bytes, want, most)
		}
	}
}

// manyKeys are more than a chain's state has places for itself.
var manyKeys = func() (all [50]*chain.Key[*http.Cookie]) {
	for i := range all {
		all[i] = chain.NewKey[*http.Cookie]("cookie")
	}
	return all
}()

// TestCrowdedAllocations holds that fifty layers that each keep a value add no
// allocation either, once the engine has seen a request with so many.
func TestCrowdedAllocations(t *testing.T) {
	value := new(http.Cookie)
	layers := new(chain.Chain)
	for _, key := range manyKeys {
		layers = layers.Use(func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				next.ServeHTTP(w, key.With(r, value))
			})
		})
	}
	kind := []string{"text/plain"}
	body := []byte("hello")
	h := chain.Must(layers.Then(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, key := range manyKeys {
			if v, _ := key.Value(r); v != value {
				t.Errorf("value %v, want what was set", v)
			}
		}
		w.Header()["Content-Type"] = kind
		w.Write(body)
	})))
	for _, reuse := range []bool{false, true} {
		want := 5.0
		if reuse {
			want = 0
		}
		if got, _ := requestAllocations(t, &serve.Server{Handler: h, Reuse: reuse}); got > want {
			t.Errorf("reuse %t: %v allocations a request, want at most %v", reuse, got, want)
		}
	}
}

// TestChainFillsPlace holds that a goroutine of a layer outside a chain may look for values
// while the chain makes the state of a program's first request, which the engine does not yet
// bring along. The race detector is what would find it.
func TestChainFillsPlace(t *testing.T) {
	ann := &http.Cookie{Name: "ann"}
	inner := chain.Must(chain.New(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, firstKey.With(r, ann))
		})
	}).Then(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	s := &serve.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun, end := make(chan bool), make(chan bool)
		var outside sync.WaitGroup
		outside.Go(func() {
			for r.Context().Value(firstKey); ; r.Context().Value(firstKey) {
				select {
				case begun <- true:
				case <-end:
					return
				default:
				}
			}
		})
		<-begun
		inner.ServeHTTP(w, r)
		close(end)
		outside.Wait()
		if v, _ := firstKey.Value(r); v != ann {
			t.Errorf("value %v outside the chain, want what a layer of it set", v)
		}
	})}
	res, err := http.Get("http://" + listening(t, s))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
}
