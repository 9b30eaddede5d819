//tare:module github.com/go-chi/chi/v5

// Command layers-chi answers behind layers of go-chi/chi, as package plan says,
// in the same http.Server as the control: values by the request's context,
// status by chi's own wrapped writer.
package main

import (
	"context"
	"flag"
	"net/http"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/layers/plan"
)

type userKey int

func main() {
	depth := plan.Flag()
	flag.Parse()
	users := plan.Users(*depth)
	answer := plan.NewAnswer()
	plain := func(w http.ResponseWriter, _ *http.Request) { answer.Write(w) }
	router := chi.NewRouter()
	router.With(layers(*depth, noop)...).Get(plan.Noop, plain)
	router.With(layers(*depth, record)...).Get(plan.Record, plain)
	router.With(layers(*depth, func(i int) func(http.Handler) http.Handler { return value(i, users[i]) })...).
		Get(plan.Value, func(w http.ResponseWriter, r *http.Request) {
			if last := len(users) - 1; last >= 0 {
				u, _ := r.Context().Value(userKey(0)).(*plan.User)
				plan.Found(u, users[0])
				u, _ = r.Context().Value(userKey(last)).(*plan.User)
				plan.Found(u, users[last])
			}
			answer.Write(w)
		})
	arm.Main(arm.Options{Handler: router})
}

func layers(n plan.Depth, layer func(i int) func(http.Handler) http.Handler) []func(http.Handler) http.Handler {
	all := make([]func(http.Handler) http.Handler, n)
	for i := range all {
		all[i] = layer(i)
	}
	return all
}

func noop(int) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(w, r) })
	}
}

func value(i int, u *plan.User) func(http.Handler) http.Handler {
	var key any = userKey(i) // made once, as it would be moved to the heap
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), key, u)))
		})
	}
}

func record(int) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ww := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
			next.ServeHTTP(ww, r)
			plan.Saw(ww.Status())
		})
	}
}
