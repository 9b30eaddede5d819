//tare:module github.com/uptrace/bunrouter

// Command bunrouter serves a route table by uptrace/bunrouter: its own request
// type, which spares the context, and no middleware, in the same http.Server as
// the control.
package main

import (
	"flag"
	"net/http"

	"github.com/uptrace/bunrouter"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/routes"
)

func main() {
	table := routes.Flag()
	flag.Parse()
	router := bunrouter.New()
	for _, r := range *table {
		answer := r.Answer()
		router.Handle(r.Method, r.Colon(), func(w http.ResponseWriter, q bunrouter.Request) error {
			answer.Write(w, q.Param)
			return nil
		})
	}
	arm.Main(arm.Options{Handler: router})
}
