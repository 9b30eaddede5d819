//tare:module github.com/valyala/fasthttp

// Command engine-fasthttp answers what the engine study asks by valyala/fasthttp
// alone: the default server, bodies not copied where they are fixed.
//
// The flag -lean gives up buffers between requests, as the server's option
// ReduceMemoryUsage does at the price of CPU. With -tls it speaks TLS.
package main

import (
	"crypto/tls"
	"flag"
	"net"
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/engine/answers"
)

func main() {
	lean := flag.Bool("lean", false, "give up buffers between requests")
	secure := flag.Bool("tls", false, "speak TLS")
	flag.Parse()
	server := &fasthttp.Server{Handler: handler(), ReduceMemoryUsage: *lean}
	arm.Main(arm.Options{Serve: answers.Secure(*secure, server.Serve, func(c *tls.Config) func(net.Listener) error {
		return func(l net.Listener) error { return server.Serve(tls.NewListener(l, c)) }
	})})
}

func handler() fasthttp.RequestHandler {
	plain, object, page, long := answers.Plain(), answers.Object(), answers.Page(), answers.Long()
	return func(ctx *fasthttp.RequestCtx) {
		path := string(ctx.Path())
		switch {
		case ctx.IsPost() && path == answers.EchoPath:
			ctx.SetContentType(answers.Text)
			ctx.SetBody(ctx.PostBody())
		case ctx.IsPost() && path == answers.CountPath:
			ctx.SetContentType(answers.Text)
			ctx.SetBodyString(strconv.Itoa(len(ctx.PostBody())))
		case !ctx.IsGet():
			notFound(ctx)
		case path == answers.PlainPath:
			fixed(ctx, answers.Text, plain)
		case path == answers.JSONPath:
			fixed(ctx, answers.JSON, object)
		case path == answers.PagePath:
			fixed(ctx, answers.Text, page)
		case path == answers.LongPath:
			fixed(ctx, answers.Text, long)
		default:
			notFound(ctx)
		}
	}
}

func fixed(ctx *fasthttp.RequestCtx, contentType string, body []byte) {
	ctx.SetContentType(contentType)
	ctx.Response.SetBodyRaw(body)
}

func notFound(ctx *fasthttp.RequestCtx) {
	ctx.SetStatusCode(fasthttp.StatusNotFound)
	ctx.SetContentType(answers.Text)
	ctx.SetBodyString(answers.NotFound)
}
