// Command engine answers what the engine study asks on one of three servers
// with one and the same handler, all settings at their defaults.
//
//	nethttp      http.Server
//	serve        serve.Server
//	serve-reuse  serve.Server with Reuse, which the handler allows
package main

import (
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/engine/answers"
	"github.com/tarehq/tare/serve"
)

func main() {
	name := flag.String("server", "nethttp", "`server` to run: nethttp, serve or serve-reuse")
	flag.Parse()
	h := answers.New()
	accept, err := server(*name, h)
	if err != nil {
		fmt.Fprintf(os.Stderr, "engine: %v\n", err)
		os.Exit(2)
	}
	arm.Main(arm.Options{Handler: h, Serve: accept})
}

// server returns the method of the named server that serves a listener with h.
func server(name string, h http.Handler) (func(net.Listener) error, error) {
	switch name {
	case "nethttp":
		return (&http.Server{Handler: h}).Serve, nil
	case "serve":
		return (&serve.Server{Handler: h}).Serve, nil
	case "serve-reuse":
		return (&serve.Server{Handler: h, Reuse: true}).Serve, nil
	}
	return nil, fmt.Errorf("no server %q: want nethttp, serve or serve-reuse", name)
}
