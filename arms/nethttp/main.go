// Command nethttp is the control: the standard library's server and ServeMux
// with nothing around them.
//
// With the flag -fprintf it is what a published comparison had in this place: static
// routes that HandleFunc registers for all methods, answered by fmt.Fprintf, which
// leaves the content type to be found out. With -close it closes each connection
// after one answer. With -tls it speaks TLS, by the version, key and features given, and
// answers /handshake after a handshake in memory by the same.
package main

import (
	"crypto/tls"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/routes"
)

func main() {
	table := routes.Flag()
	formatted := flag.Bool("fprintf", false, "register without methods and answer by Fprintf; for tables without parameters")
	closing := flag.Bool("close", false, "close each connection after one answer")
	secure := flag.String("tls", "", "speak TLS; `words` of 1.2, 1.3, ecdsa, rsa, no-tickets and no-alpn, separated by commas")
	flag.Parse()
	mux := handler
	if *formatted {
		mux = fprintf
	}
	h := mux(*table)
	server := &http.Server{Handler: h}
	server.SetKeepAlivesEnabled(!*closing)
	serve := server.Serve
	if *secure != "" {
		config, err := secureConfig(*secure)
		if err != nil {
			fmt.Fprintf(os.Stderr, "nethttp: %v\n", err)
			os.Exit(2)
		}
		serve = func(l net.Listener) error { return server.Serve(tls.NewListener(l, config)) }
		h.HandleFunc("GET /handshake", shakingHands(config))
	}
	arm.Main(arm.Options{Handler: h, Serve: serve})
}

func handler(table routes.Table) *http.ServeMux {
	mux := http.NewServeMux()
	for _, r := range table {
		answer := r.Answer()
		mux.HandleFunc(r.Method+" "+r.Pattern, func(w http.ResponseWriter, q *http.Request) {
			answer.Write(w, q.PathValue)
		})
	}
	return mux
}

func fprintf(table routes.Table) *http.ServeMux {
	mux := http.NewServeMux()
	for _, r := range table {
		mux.HandleFunc(r.Pattern, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, "%s", r.Pattern) })
	}
	return mux
}
