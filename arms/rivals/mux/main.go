//tare:module github.com/gorilla/mux

// Command mux serves a route table by gorilla/mux: no middleware, in the same
// http.Server as the control.
package main

import (
	"flag"
	"net/http"
	"strings"

	"github.com/gorilla/mux"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/routes"
)

func main() {
	table := routes.Flag()
	flag.Parse()
	router := mux.NewRouter()
	for _, r := range *table {
		answer := r.Answer()
		path := strings.Replace(r.Path(), "/*", "/{*:.*}", 1) // what is left of a path takes an expression
		router.HandleFunc(path, func(w http.ResponseWriter, q *http.Request) {
			answer.Write(w, func(name string) string { return mux.Vars(q)[name] })
		}).Methods(r.Method)
	}
	arm.Main(arm.Options{Handler: router})
}
