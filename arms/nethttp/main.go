// Command nethttp is the control: the standard library's server and ServeMux
// with nothing around them.
//
// With the flag -fprintf it is what a published comparison had in this place: static
// routes that HandleFunc registers for all methods, answered by fmt.Fprintf, which
// leaves the content type to be found out. With -close it closes each connection
// after one answer.
package main

import (
	"flag"
	"fmt"
	"net/http"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/routes"
)

func main() {
	table := routes.Flag()
	formatted := flag.Bool("fprintf", false, "register without methods and answer by Fprintf; for tables without parameters")
	closing := flag.Bool("close", false, "close each connection after one answer")
	flag.Parse()
	mux := handler
	if *formatted {
		mux = fprintf
	}
	h := mux(*table)
	server := &http.Server{Handler: h}
	server.SetKeepAlivesEnabled(!*closing)
	arm.Main(arm.Options{Handler: h, Serve: server.Serve})
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

func fprintf(table routes.Table) http.Handler {
	mux := http.NewServeMux()
	for _, r := range table {
		mux.HandleFunc(r.Pattern, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, "%s", r.Pattern) })
	}
	return mux
}
