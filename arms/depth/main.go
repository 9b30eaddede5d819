// Command depth answers behind closures that do nothing but call the next, to
// whatever depth.
//
//	GET /now        answers at once, on the connection's goroutine
//	GET /goroutine  answers on a new goroutine, whose stack has to grow
//	GET /held       answers after a quarter of a second, so that many stacks are held at a time
package main

import (
	"flag"
	"net/http"
	"time"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/layers/plan"
)

func main() {
	depth := plan.Flag()
	flag.Parse()
	arm.Main(arm.Options{Handler: routes(*depth, 250*time.Millisecond)})
}

func routes(depth plan.Depth, hold time.Duration) http.Handler {
	answer := plan.NewAnswer()
	now := nested(depth, func(w http.ResponseWriter, _ *http.Request) { answer.Write(w) })
	held := nested(depth, func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(hold)
		answer.Write(w)
	})
	mux := http.NewServeMux()
	mux.Handle("GET /now", now)
	mux.Handle("GET /held", held)
	mux.HandleFunc("GET /goroutine", func(w http.ResponseWriter, r *http.Request) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			now.ServeHTTP(w, r)
		}()
		<-done
	})
	return mux
}

// nested puts closures around a handler.
func nested(depth plan.Depth, h http.HandlerFunc) http.Handler {
	var outer http.Handler = h
	for range depth {
		outer = layer(outer)
	}
	return outer
}

func layer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(w, r) })
}
