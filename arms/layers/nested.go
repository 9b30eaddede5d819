package main

import (
	"context"
	"net/http"

	"github.com/tarehq/tare/arms/layers/plan"
)

// middleware is a layer around a handler.
type middleware = func(http.Handler) http.Handler

// userKey is the context's key of what the layer of that number keeps.
type userKey int

// nested is what services do without a chain: closures around closures, a copy
// of the request for each value, a writer around the writer for each status.
type nested struct{ users []*plan.User }

func newNested(users []*plan.User) layering {
	n := nested{users}
	return layering{n.wrap, n.noop, n.value, n.record, n.find}
}

func (n nested) wrap(h http.Handler, layer func(i int) middleware) http.Handler {
	for i := len(n.users) - 1; i >= 0; i-- {
		h = layer(i)(h)
	}
	return h
}

func (n nested) noop(int) middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(w, r) })
	}
}

func (n nested) value(i int) middleware {
	var key any = userKey(i) // made once, as it would be moved to the heap
	u := n.users[i]
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), key, u)))
		})
	}
}

func (n nested) record(int) middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			sw := &statusWriter{ResponseWriter: w}
			next.ServeHTTP(sw, r)
			plan.Saw(sw.status)
		})
	}
}

// find looks up the outermost's and the innermost's value.
func (n nested) find(r *http.Request) {
	if last := len(n.users) - 1; last >= 0 {
		u, _ := r.Context().Value(userKey(0)).(*plan.User)
		plan.Found(u, n.users[0])
		u, _ = r.Context().Value(userKey(last)).(*plan.User)
		plan.Found(u, n.users[last])
	}
}

// statusWriter remembers the status that was answered.
type statusWriter struct {
	http.ResponseWriter
	status int // 0 until the header is written
}

func (w *statusWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
