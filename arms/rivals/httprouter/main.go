//tare:module github.com/julienschmidt/httprouter

// Command httprouter serves a route table by julienschmidt/httprouter: its own
// handler type, which spares the context, in the same http.Server as the
// control.
package main

import (
	"flag"
	"net/http"

	"github.com/julienschmidt/httprouter"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/routes"
)

func main() {
	table := routes.Flag()
	flag.Parse()
	router := httprouter.New()
	for _, r := range *table {
		answer := r.Answer()
		router.Handle(r.Method, r.Colon(), func(w http.ResponseWriter, _ *http.Request, params httprouter.Params) {
			answer.Write(w, params.ByName)
		})
	}
	arm.Main(arm.Options{Handler: router})
}
