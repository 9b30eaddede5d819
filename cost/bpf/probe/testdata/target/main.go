// Command target serves GET / through middlewares that do what makes probes
// difficult: they block, panic, recover, recurse and hand on in different ways.
// It prints its address, and serves until it is killed.
package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

type truth struct{ calls, nanos atomic.Int64 }

func (t *truth) since(begun time.Time) {
	t.calls.Add(1)
	t.nanos.Add(int64(time.Since(begun)))
}

type truths struct{ spin, block, handler, panics truth }

func (t *truths) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	type one struct{ Calls, Nanos int64 }
	of := func(m *truth) one { return one{m.calls.Load(), m.nanos.Load()} }
	json.NewEncoder(w).Encode(map[string]one{
		"spin": of(&t.spin), "block": of(&t.block), "handler": of(&t.handler), "panics": of(&t.panics),
	})
}

func spin(t *truth, d time.Duration) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			begun := time.Now()
			for time.Since(begun) < d {
			}
			t.since(begun)
			next.ServeHTTP(w, r)
		})
	}
}

// block is a named type rather than a literal, and hands on in the middle.
type block struct {
	next http.Handler
	d    time.Duration
	t    *truth
}

func (b *block) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/fast" {
		b.next.ServeHTTP(w, r)
		return
	}
	b.next.ServeHTTP(w, r)
	begun := time.Now()
	time.Sleep(b.d)
	b.t.since(begun)
}

func recovers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if e := recover(); e != nil {
				http.Error(w, fmt.Sprint(e), http.StatusInternalServerError)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// deep has the stack grow, and so be moved, below the handlers.
//
//go:noinline
func deep(n int) int {
	var room [1024]byte
	room[n%len(room)] = byte(n)
	if n == 0 {
		return int(room[0])
	}
	return deep(n-1) + int(room[n%len(room)])
}

func (t *truths) handle(w http.ResponseWriter, r *http.Request) {
	begun := time.Now()
	defer t.handler.since(begun)
	switch r.URL.Path {
	case "/panic":
		t.panics.calls.Add(1)
		panic("as asked")
	case "/abort":
		t.panics.calls.Add(1)
		panic(http.ErrAbortHandler)
	case "/deep":
		deep(200)
	}
	w.Write([]byte("hello\n"))
}

// turn has another program go on in this process.
func turn(w http.ResponseWriter, r *http.Request) {
	err := syscall.Exec(r.FormValue("into"), []string{"target"}, os.Environ())
	http.Error(w, err.Error(), http.StatusInternalServerError)
}

// unrecovered lets a panic through to the server.
func unrecovered(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) }

// silent writes nothing, and is inlined into the function of its method value.
func (t *truths) silent(http.ResponseWriter, *http.Request) { deep(1) }

// hushed makes handlers that write nothing, of which the linker's names have type arguments.
func hushed[T any](what *T) http.HandlerFunc {
	return func(http.ResponseWriter, *http.Request) { deep(1) }
}

// told makes handlers of which the linker's names have type arguments.
func told[T fmt.Stringer](what T) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, what) }
}

func main() {
	var t truths
	h := recovers(spin(&t.spin, 20*time.Microsecond)(&block{http.HandlerFunc(t.handle), 200 * time.Microsecond, &t.block}))
	mux := http.NewServeMux()
	mux.Handle("/", h)
	mux.Handle("/truth", &t)
	mux.HandleFunc("/turn", turn)
	mux.HandleFunc("/unrecovered", unrecovered)
	mux.HandleFunc("/silent", t.silent)
	mux.Handle("/hushed", hushed(&t))
	mux.Handle("/told", told(http.StateActive))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(l.Addr())
	http.Serve(l, mux)
}
