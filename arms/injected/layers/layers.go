// Package layers wraps the injected work in middlewares of net/http, as people
// write them: small constructors that return closures. The compiler may inline
// them, which takes their names away, and an instrument has to cope with that.
package layers

import (
	"net/http"

	"github.com/tarehq/tare/arms/injected/work"
)

// All returns the middlewares of what there is to do, outermost first.
func All(s *work.Set) []func(http.Handler) http.Handler {
	return work.Present(s, Spin(s.Spin), Alloc(s.Alloc), Block(s.Block), Lock(s.Lock), Log(s.Log))
}

// Spin burns CPU.
func Spin(s *work.Spin) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.Do()
			next.ServeHTTP(w, r)
		})
	}
}

// Alloc allocates.
func Alloc(a *work.Alloc) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			a.Do()
			next.ServeHTTP(w, r)
		})
	}
}

// Block sleeps.
func Block(b *work.Block) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b.Do()
			next.ServeHTTP(w, r)
		})
	}
}

// Lock works under a lock that all requests want.
func Lock(l *work.Lock) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			l.Do()
			next.ServeHTTP(w, r)
		})
	}
}

// Log writes a line once the request is answered.
func Log(l *work.Log) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r)
			l.Do(r.Method, r.URL.Path)
		})
	}
}

// Hello is the handler.
func Hello(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain")
	w.Write([]byte(work.Body)) // who asked is gone if it fails
}
