// Command injected serves GET / through middlewares whose costs are known: one
// spins, one allocates, one blocks, one works under a shared lock. Instruments
// that attribute costs are held against it.
//
// GET /truth answers what each middleware measured of itself with the clock, and
// /debug/pprof/ has the process's profiles.
package main

import (
	"flag"
	"net/http"
	_ "net/http/pprof"
	"time"

	"github.com/tarehq/tare/arms/arm"
)

func main() {
	spin := flag.Duration("spin", 20*time.Microsecond, "CPU that one middleware burns")
	alloc := flag.Int("alloc", 32<<10, "bytes that one middleware allocates")
	block := flag.Duration("block", 0, "how long one middleware sleeps; 0 leaves it out")
	lock := flag.Duration("lock", 0, "CPU that one middleware burns under a shared lock; 0 leaves it out")
	flag.Parse()

	p := perSecond()
	var t truth
	var h http.Handler = http.HandlerFunc(hello)
	if *lock > 0 {
		h = Lock(&t, loops(p, *lock))(h)
	}
	if *block > 0 {
		h = Block(&t, *block)(h)
	}
	if *alloc > 0 {
		h = Alloc(&t, *alloc)(h)
	}
	if *spin > 0 {
		h = Spin(&t, loops(p, *spin))(h)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", h)
	mux.HandleFunc("GET /truth", t.answer)
	mux.Handle("/debug/pprof/", http.DefaultServeMux)
	arm.Main(arm.Options{Handler: mux})
}

func hello(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain")
	w.Write([]byte("hello\n"))
}
