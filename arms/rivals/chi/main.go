//tare:module github.com/go-chi/chi/v5

// Command chi serves a route table by go-chi/chi: no middleware, in the same
// http.Server as the control.
package main

import (
	"flag"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/routes"
)

func main() {
	table := routes.Flag()
	flag.Parse()
	router := chi.NewRouter()
	for _, r := range *table {
		answer := r.Answer()
		router.MethodFunc(r.Method, r.Path(), func(w http.ResponseWriter, q *http.Request) {
			answer.Write(w, func(name string) string { return chi.URLParam(q, name) })
		})
	}
	arm.Main(arm.Options{Handler: router})
}
