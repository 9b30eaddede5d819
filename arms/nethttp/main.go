// Command nethttp is the control: the standard library's server and ServeMux
// with nothing around them.
//
// With the flag -fprintf it is what a published comparison had in this place: static
// routes that HandleFunc registers for all methods, answered by fmt.Fprintf, which
// leaves the content type to be found out. With -close it closes each connection
// after one answer. With -tls it speaks TLS, by the version, key and features given, and
// answers /handshake after a handshake in memory by the same. With -match its in-process
// loop finds the handler of a request and does not call it.
package main

import (
	"cmp"
	"crypto/tls"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/routes"
)

func main() {
	table := routes.Flag()
	formatted := flag.Bool("fprintf", false, "register without methods and answer by Fprintf; for tables without parameters")
	closing := flag.Bool("close", false, "close each connection after one answer")
	secure := flag.String("tls", "", "speak TLS; `words` of 1.2, 1.3, ecdsa, rsa, no-tickets and no-alpn, separated by commas")
	match := flag.Bool("match", false, "the in-process loop finds a request's handler and does not call it")
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
	o := arm.Options{Handler: h, Serve: serve}
	if *match {
		o.Loop = matching(h)
	}
	arm.Main(o)
}

// matching is a loop of which only finding the handler is timed: each request is
// answered once, when it is prepared.
func matching(mux *http.ServeMux) func(arm.LoopRequest) func() arm.Answer {
	return func(q arm.LoopRequest) func() arm.Answer {
		r := httptest.NewRequest(cmp.Or(q.Method, http.MethodGet), q.Target, nil)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		answer := arm.Answer{Status: w.Code, Body: w.Body.Bytes()}
		return func() arm.Answer {
			if _, pattern := mux.Handler(r); pattern == "" && answer.Status != http.StatusNotFound {
				panic("no handler was found of a request that was answered")
			}
			return answer
		}
	}
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
