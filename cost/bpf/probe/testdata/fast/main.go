// Command fast serves GET / by fasthttp, through a middleware, and links net/http for
// its profiles, which nobody asks for. It prints its address, and serves until it is
// killed.
package main

import (
	"flag"
	"fmt"
	"log"
	"net"
	_ "net/http/pprof"

	"github.com/valyala/fasthttp"
)

func tagged(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		ctx.Response.Header.Set("Tag", "fast")
		next(ctx)
	}
}

func hello(ctx *fasthttp.RequestCtx) { ctx.SetBodyString("hello\n") }

func main() {
	stream := flag.Bool("stream", false, "hand bodies on as they come")
	flag.Parse()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(l.Addr())
	log.Fatal((&fasthttp.Server{Handler: tagged(hello), StreamRequestBody: *stream}).Serve(l))
}
