package main

import (
	"context"
	"net/http"
	"time"
)

// flattened is what auth, measure, recovery and the handler do in one ServeHTTP: it
// calls no other handler, copies no request and wraps no writer. The user whom a
// request comes from is a local variable, and the status is known where it is written.
type flattened struct {
	*service
	body []byte
}

func (f *flattened) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !bears(r, f.token) {
		unauthorized(w)
		return
	}
	start, status := time.Now(), http.StatusOK
	defer func() {
		if v := recover(); v != nil {
			recovered(w, r, f.errors, v)
			status = http.StatusInternalServerError
		}
		f.metrics.observe(r.Method, status, time.Since(start))
	}()
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_, _ = w.Write(f.body) // fails when the client has gone
}

// merged does in one function what auth, measure and recovery do nested:
// the same answers, metrics and user in the request's context, by the same
// functions where those are not the nesting itself. It saves the calls through
// two handlers and nothing else; the wrapped writer, the request's copy and
// the deferred recovery are what the three have, too.
func merged(s *service) middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !bears(r, s.token) {
				unauthorized(w)
				return
			}
			r = r.WithContext(context.WithValue(r.Context(), userKey{}, s.user))
			start := time.Now()
			sw := &statusWriter{ResponseWriter: w}
			defer func() {
				if v := recover(); v != nil {
					recovered(sw, r, s.errors, v)
				}
				s.metrics.observe(r.Method, sw.sent(), time.Since(start))
			}()
			next.ServeHTTP(sw, r)
		})
	}
}
