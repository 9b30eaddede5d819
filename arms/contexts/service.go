package main

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarehq/tare/arms/layers/plan"
	"github.com/tarehq/tare/serve/chain"
)

const names = "argument, captured, captured-anew, closure, single, values, global or chain"

// layers is how many layers keep a value.
const layers = 5

// kept are the values of one request.
type kept [layers]*plan.User

// service is what the layers and the handler share.
type service struct {
	users   []*plan.User
	answer  *plan.Answer
	holds   map[string]time.Duration // by path
	audited atomic.Int64

	later     func(func())                                 // calls what it is given
	laterWith func(context.Context, func(context.Context)) // the same, with a context
	audit     func(context.Context)                        // made once
}

func newService(holds map[string]time.Duration) *service {
	s := &service{users: plan.Users(layers), answer: plan.NewAnswer(), holds: holds}
	s.later = func(f func()) { f() }
	s.laterWith = func(ctx context.Context, f func(context.Context)) { f(ctx) }
	s.audit = s.count
	return s
}

// count is the step that needs the context: it counts requests whose client is
// still there.
func (s *service) count(ctx context.Context) {
	if ctx.Err() == nil {
		s.audited.Add(1)
	}
}

// finish answers a request whose values have been found.
func (s *service) finish(w http.ResponseWriter, r *http.Request, found kept) {
	for i, u := range found {
		plan.Found(u, s.users[i])
	}
	if d := s.holds[r.URL.Path]; d > 0 {
		time.Sleep(d)
	}
	s.answer.Write(w)
}

// handler is the layers around the answer.
func (s *service) handler(by string) (http.Handler, error) {
	switch by {
	case "argument":
		return s.arguments(func(r *http.Request) { s.laterWith(r.Context(), s.audit) }), nil
	case "captured":
		step := capture(context.Background(), s.users[0])
		return s.arguments(func(*http.Request) { step(s) }), nil
	case "captured-anew":
		return s.arguments(func(r *http.Request) { capture(r.Context(), s.users[0])(s) }), nil
	case "closure":
		return s.arguments(func(r *http.Request) {
			ctx := r.Context()
			s.later(func() { s.count(ctx) }) // 32 B: code, service and both words of the context
		}), nil
	case "single":
		return s.single(), nil
	case "values":
		return s.values(), nil
	case "global":
		return s.global(), nil
	case "chain":
		return s.chain()
	}
	return nil, fmt.Errorf("values by %q: want %s", by, names)
}

// capture is the published constructor: it makes a value context, 48 B, and returns a
// closure that captures it and nothing else, 24 B. That is what is claimed to be 32 B.
func capture(parent context.Context, u *plan.User) func(*service) {
	ctx := context.WithValue(parent, key(0), u)
	return func(s *service) { s.laterWith(ctx, s.audit) }
}

// step is a handler that is given the values so far.
type step func(http.ResponseWriter, *http.Request, kept)

// arguments hands values from layer to layer as an argument, on the stack.
func (s *service) arguments(audit func(*http.Request)) http.Handler {
	next := step(func(w http.ResponseWriter, r *http.Request, k kept) {
		audit(r)
		s.finish(w, r, k)
	})
	for i := layers - 1; i >= 0; i-- {
		next = keeping(i, s.users[i], next)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next(w, r, kept{}) })
}

func keeping(i int, u *plan.User, next step) step {
	return func(w http.ResponseWriter, r *http.Request, k kept) {
		k[i] = u
		next(w, r, k)
	}
}

// key is the context's key of what the layer of that number keeps; one more, of
// what all keep together.
type key int

// around puts layers around a handler.
func around(h http.HandlerFunc, layer func(i int, next http.Handler) http.Handler) http.Handler {
	var outer http.Handler = h
	for i := layers - 1; i >= 0; i-- {
		outer = layer(i, outer)
	}
	return outer
}

// values derives a context in each layer, and a copy of the request to carry it.
func (s *service) values() http.Handler {
	return around(func(w http.ResponseWriter, r *http.Request) {
		s.laterWith(r.Context(), s.audit)
		var found kept
		for i := range found {
			found[i], _ = r.Context().Value(key(i)).(*plan.User)
		}
		s.finish(w, r, found)
	}, func(i int, next http.Handler) http.Handler {
		var k any = key(i)
		u := s.users[i]
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), k, u)))
		})
	})
}

// single derives one context, in the outermost layer, for a struct that all
// layers fill.
func (s *service) single() http.Handler {
	var all any = key(layers)
	shared := func(r *http.Request) *kept {
		k, _ := r.Context().Value(all).(*kept)
		return k
	}
	h := around(func(w http.ResponseWriter, r *http.Request) {
		s.laterWith(r.Context(), s.audit)
		s.finish(w, r, *shared(r))
	}, func(i int, next http.Handler) http.Handler {
		u := s.users[i]
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			shared(r)[i] = u
			next.ServeHTTP(w, r)
		})
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), all, new(kept))))
	})
}

// global keeps values in one map for the whole program, by request, until it is
// answered: the nearest in Go to storage by thread.
func (s *service) global() http.Handler {
	var mu sync.Mutex
	all := map[*http.Request]*kept{}
	h := around(func(w http.ResponseWriter, r *http.Request) {
		s.laterWith(r.Context(), s.audit)
		mu.Lock()
		found := *all[r]
		mu.Unlock()
		s.finish(w, r, found)
	}, func(i int, next http.Handler) http.Handler {
		u := s.users[i]
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			all[r][i] = u
			mu.Unlock()
			next.ServeHTTP(w, r)
		})
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		all[r] = new(kept)
		mu.Unlock()
		defer func() {
			mu.Lock()
			delete(all, r)
			mu.Unlock()
		}()
		h.ServeHTTP(w, r)
	})
}

// chain keeps values by typed keys in the state that the layers of serve/chain
// share.
func (s *service) chain() (http.Handler, error) {
	var keys [layers]*chain.Key[*plan.User]
	c := new(chain.Chain)
	for i, name := range plan.Names(layers) {
		keys[i] = chain.NewKey[*plan.User](name)
		u := s.users[i]
		c = c.Use(func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				next.ServeHTTP(w, keys[i].With(r, u))
			})
		})
	}
	return c.Then(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.laterWith(r.Context(), s.audit)
		var found kept
		for i, k := range keys {
			found[i], _ = k.Value(r)
		}
		s.finish(w, r, found)
	}))
}
