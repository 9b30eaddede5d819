// Command nethttp is the control: the standard library's server and ServeMux
// with nothing around them.
package main

import (
	"flag"
	"net/http"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/routes"
)

func main() {
	table := routes.Flag()
	flag.Parse()
	arm.Main(arm.Options{Handler: handler(*table)})
}

func handler(table routes.Table) http.Handler {
	mux := http.NewServeMux()
	for _, r := range table {
		answer := r.Answer()
		mux.HandleFunc(r.Method+" "+r.Pattern, func(w http.ResponseWriter, q *http.Request) {
			answer.Write(w, q.PathValue)
		})
	}
	return mux
}
