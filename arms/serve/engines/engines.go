// Package engines lets an arm run its handler on one server or another, so that
// what a study compares is the engine and nothing else.
//
//	nethttp      http.Server
//	serve        serve.Server
//	serve-reuse  serve.Server with Reuse, for handlers that keep nothing
//
// All their settings are at their defaults.
package engines

import (
	"crypto/tls"
	"flag"
	"fmt"
	"net"
	"net/http"

	"github.com/tarehq/tare/serve"
)

// Engine is one of the servers, by its name. As a flag's value it is chosen.
type Engine string

// The engines.
const (
	NetHTTP    Engine = "nethttp"
	Serve      Engine = "serve"
	ServeReuse Engine = "serve-reuse"
)

// Flag defines the flag -server of an arm, to be read after flag.Parse.
func Flag(otherwise Engine) *Engine {
	e := otherwise
	flag.Var(&e, "server", "`server` to run: nethttp, serve or serve-reuse")
	return &e
}

// Set makes e the engine of that name.
func (e *Engine) Set(name string) error {
	switch Engine(name) {
	case NetHTTP, Serve, ServeReuse:
		*e = Engine(name)
		return nil
	}
	return fmt.Errorf("no such server: there are %s, %s and %s", NetHTTP, Serve, ServeReuse)
}

// String returns the name.
func (e *Engine) String() string { return string(*e) }

// Run returns what serves a listener with h until it fails, as arm.Options wants
// it. An engine without a name is http.Server.
func (e Engine) Run(h http.Handler) func(net.Listener) error {
	switch e {
	case Serve:
		return (&serve.Server{Handler: h}).Serve
	case ServeReuse:
		return (&serve.Server{Handler: h, Reuse: true}).Serve
	}
	return (&http.Server{Handler: h}).Serve
}

// RunTLS returns what serves a listener by TLS as a configuration has it, and by it HTTP/1.1
// alone.
func (e Engine) RunTLS(h http.Handler) func(*tls.Config) func(net.Listener) error {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return func(config *tls.Config) func(net.Listener) error {
		var server interface {
			ServeTLS(l net.Listener, certFile, keyFile string) error
		} = &http.Server{Handler: h, TLSConfig: config, Protocols: &protocols}
		if e == Serve || e == ServeReuse {
			server = &serve.Server{Handler: h, Reuse: e == ServeReuse, TLSConfig: config, Protocols: &protocols}
		}
		return func(l net.Listener) error { return server.ServeTLS(l, "", "") }
	}
}
