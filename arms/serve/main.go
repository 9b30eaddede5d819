// Command serve serves a route table by serve/router: on serve.Server, or on
// http.Server as the control does, which leaves the router alone to be compared.
package main

import (
	"flag"
	"net/http"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/routes"
	"github.com/tarehq/tare/arms/serve/engines"
	"github.com/tarehq/tare/serve/router"
)

func main() {
	table := routes.Flag()
	server := engines.Flag(engines.Serve)
	flag.Parse()
	h := handler(*table)
	arm.Main(arm.Options{Handler: h, Serve: server.Run(h)})
}

func handler(table routes.Table) http.Handler {
	var rt router.Router
	for _, r := range table {
		answer := r.Answer()
		rt.HandleFunc(r.Method+" "+r.Pattern, func(w http.ResponseWriter, q *http.Request) {
			answer.Write(w, q.PathValue)
		})
	}
	return &rt
}
