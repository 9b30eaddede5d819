//tare:module github.com/valyala/fasthttp

// Command fasthttp serves a route table by valyala/fasthttp, which has no router
// of its own, with fasthttp/router, one of those its documentation names: the
// default server, bodies not copied.
package main

import (
	"flag"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/rivals/internal/fastloop"
	"github.com/tarehq/tare/arms/routes"
)

func main() {
	table := routes.Flag()
	flag.Parse()
	rt := router.New()
	for _, r := range *table {
		answer := r.Answer()
		rt.Handle(r.Method, r.Path(), func(ctx *fasthttp.RequestCtx) {
			contentType, body := answer.Make(func(name string) string { return ctx.UserValue(name).(string) })
			ctx.SetContentType(contentType)
			ctx.Response.SetBodyRaw(body)
		})
	}
	rt.NotFound = func(ctx *fasthttp.RequestCtx) {
		ctx.SetStatusCode(fasthttp.StatusNotFound)
		ctx.SetContentType(routes.Text)
		ctx.SetBodyString(routes.NotFound)
	}
	server := &fasthttp.Server{Handler: rt.Handler}
	arm.Main(arm.Options{Serve: server.Serve, Loop: fastloop.Of(rt.Handler)})
}
