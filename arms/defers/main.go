// Command defers answers behind three layers that each count a request in and
// out again, with a defer or without.
package main

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"sync/atomic"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/layers/plan"
)

const names = "none, outer, middle, inner, all, recover, loop or unrolled"

func main() {
	defers := flag.String("defers", "none", "`layers` that defer, or how the handler does: "+names)
	flag.Parse()
	s := newService()
	h, err := s.handler(*defers)
	if err != nil {
		fmt.Fprintf(os.Stderr, "defers: %v\n", err)
		os.Exit(2)
	}
	arm.Main(arm.Options{Handler: h})
}

// gauge counts what is under way.
type gauge struct{ now, all atomic.Int64 }

func (g *gauge) enter() { g.now.Add(1); g.all.Add(1) }
func (g *gauge) leave() { g.now.Add(-1) }

// service is three layers with a gauge each around a handler with eight.
type service struct {
	layers [3]gauge
	parts  [8]gauge
	answer *plan.Answer
}

func newService() *service { return &service{answer: plan.NewAnswer()} }

func (s *service) handler(defers string) (http.Handler, error) {
	var deferring [3]bool
	layer, inner := deferred, s.plain
	switch defers {
	case "none":
	case "outer":
		deferring[0] = true
	case "middle":
		deferring[1] = true
	case "inner":
		deferring[2] = true
	case "all":
		deferring = [3]bool{true, true, true}
	case "recover":
		deferring, layer = [3]bool{true, true, true}, recovering
	case "loop":
		inner = s.looped
	case "unrolled":
		inner = s.unrolled
	default:
		return nil, fmt.Errorf("defers %q: want %s", defers, names)
	}
	var h http.Handler = http.HandlerFunc(inner)
	for i := len(s.layers) - 1; i >= 0; i-- {
		if deferring[i] {
			h = layer(&s.layers[i], h)
		} else {
			h = straight(&s.layers[i], h)
		}
	}
	return h, nil
}

// straight counts out after the next layer has returned; after a panic it does
// not.
func straight(g *gauge, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.enter()
		next.ServeHTTP(w, r)
		g.leave()
	})
}

// deferred counts out whatever happens.
func deferred(g *gauge, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.enter()
		defer g.leave()
		next.ServeHTTP(w, r)
	})
}

// recovering counts out and answers a panic with status 500.
func recovering(g *gauge, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.enter()
		defer func() {
			g.leave()
			if v := recover(); v != nil {
				http.Error(w, "internal server error", http.StatusInternalServerError)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

func (s *service) plain(w http.ResponseWriter, _ *http.Request) { s.answer.Write(w) }

// looped enters every part and defers leaving it, in a loop: how many there are
// is not known when it is compiled, so the records of the defers are linked at
// run time.
func (s *service) looped(w http.ResponseWriter, _ *http.Request) {
	for i := range s.parts {
		s.parts[i].enter()
		defer s.parts[i].leave()
	}
	s.answer.Write(w)
}

// unrolled does what looped does with a loop of its own for leaving.
func (s *service) unrolled(w http.ResponseWriter, _ *http.Request) {
	for i := range s.parts {
		s.parts[i].enter()
	}
	s.answer.Write(w)
	for i := len(s.parts) - 1; i >= 0; i-- {
		s.parts[i].leave()
	}
}
