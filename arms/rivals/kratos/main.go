//tare:module github.com/go-kratos/kratos/v2

// Command kratos serves a route table by the HTTP server of go-kratos/kratos
// version 2, on its own: no middleware, no logs, no application around it. The
// time limit of a second a request is the default.
package main

import (
	"context"
	"flag"
	"io"
	"net"
	"net/http"
	"net/url"

	"github.com/go-kratos/kratos/v2/log"
	kratos "github.com/go-kratos/kratos/v2/transport/http"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/routes"
)

func main() {
	table := routes.Flag()
	flag.Parse()
	log.SetLogger(log.NewStdLogger(io.Discard))
	server := newServer(*table)
	arm.Main(arm.Options{
		Handler: server, // for the loop
		Serve: func(l net.Listener) error {
			kratos.Listener(l)(server)
			return server.Start(context.Background())
		},
	})
}

func newServer(table routes.Table) *kratos.Server {
	server := kratos.NewServer()
	router := server.Route("/")
	for _, r := range table {
		answer := r.Answer()
		router.Handle(r.Method, r.Path(), func(c kratos.Context) error {
			var vars url.Values // a call of Vars makes them: once, and only for routes that ask
			contentType, body := answer.Make(func(name string) string {
				if vars == nil {
					vars = c.Vars()
				}
				return vars.Get(name)
			})
			return c.Blob(http.StatusOK, contentType, body)
		})
	}
	return server
}
