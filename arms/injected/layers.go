package main

import (
	"encoding/json"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// middleware is the usual shape. The constructors below are small and closures
// on purpose: the compiler may inline them, which takes their names away, and an
// instrument has to cope with that.
type middleware = func(http.Handler) http.Handler

// truth is what the middlewares measured of themselves.
type truth struct{ spin, alloc, block, lock measured }

type measured struct{ calls, nanos atomic.Int64 }

func (m *measured) since(t time.Time) {
	m.calls.Add(1)
	m.nanos.Add(int64(time.Since(t)))
}

// answer tells the truth as JSON: calls and nanoseconds of each.
func (t *truth) answer(w http.ResponseWriter, _ *http.Request) {
	type one struct {
		Calls int64 `json:"calls"`
		Nanos int64 `json:"ns"`
	}
	of := func(m *measured) one { return one{m.calls.Load(), m.nanos.Load()} }
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]one{
		"spin": of(&t.spin), "alloc": of(&t.alloc), "block": of(&t.block), "lock": of(&t.lock),
	})
}

// Spin burns CPU.
func Spin(t *truth, n int) middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			begun := time.Now()
			sink.Store(burn(n))
			t.spin.since(begun)
			next.ServeHTTP(w, r)
		})
	}
}

// Alloc allocates memory that is garbage at the next request.
func Alloc(t *truth, bytes int) middleware {
	var kept atomic.Pointer[[]byte]
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			begun := time.Now()
			b := make([]byte, bytes)
			kept.Store(&b)
			t.alloc.since(begun)
			next.ServeHTTP(w, r)
		})
	}
}

// Block sleeps.
func Block(t *truth, d time.Duration) middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			begun := time.Now()
			time.Sleep(d)
			t.block.since(begun)
			next.ServeHTTP(w, r)
		})
	}
}

// Lock burns CPU while it holds a mutex that all requests want.
func Lock(t *truth, n int) middleware {
	var mu sync.Mutex
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			begun := time.Now()
			mu.Lock()
			sink.Store(burn(n))
			mu.Unlock()
			t.lock.since(begun)
			next.ServeHTTP(w, r)
		})
	}
}

// sink keeps the compiler from leaving burn out.
var sink atomic.Uint64

// burn takes a time in proportion to n: xorshift, which nothing can skip.
//
//go:noinline
func burn(n int) uint64 {
	x := uint64(88172645463325252)
	for range n {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}

// perSecond returns how many rounds of burn a second has, at its best of many
// tries: what else ran meanwhile only makes it less.
func perSecond() float64 {
	const rounds = 200_000
	best := time.Duration(1 << 62)
	for range 50 {
		begun := time.Now()
		sink.Store(burn(rounds))
		best = min(best, time.Since(begun))
	}
	return rounds / best.Seconds()
}

func loops(perSecond float64, d time.Duration) int { return max(1, int(perSecond*d.Seconds())) }
