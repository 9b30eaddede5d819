//tare:module github.com/cloudwego/hertz

// Command hertz serves a route table by cloudwego/hertz on its default network
// library, netpoll: no middleware, no logs.
package main

import (
	"context"
	"flag"
	"net"
	"net/http"

	"github.com/cloudwego/hertz/pkg/app"
	"github.com/cloudwego/hertz/pkg/app/server"
	"github.com/cloudwego/hertz/pkg/common/hlog"
	"github.com/cloudwego/hertz/pkg/route"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/routes"
)

func main() {
	table := routes.Flag()
	flag.Parse()
	hlog.SetLevel(hlog.LevelFatal)
	arm.Main(arm.Options{
		Serve: func(l net.Listener) error {
			h := server.New(server.WithListener(l))
			register(h.Engine, *table)
			return h.Run()
		},
		Loop: loop(*table),
	})
}

func register(engine *route.Engine, table routes.Table) {
	for _, r := range table {
		answer := r.Answer()
		engine.Handle(r.Method, r.Colon(), func(_ context.Context, c *app.RequestContext) {
			contentType, body := answer.Make(c.Param)
			c.Data(http.StatusOK, contentType, body)
		})
	}
	engine.NoRoute(func(_ context.Context, c *app.RequestContext) {
		c.Data(http.StatusNotFound, routes.Text, []byte(routes.NotFound))
	})
}

// loop answers with an engine of its own that listens to nothing. Between
// calls it resets of a context what routing and answering leave in it.
func loop(table routes.Table) func(arm.LoopRequest) func() arm.Answer {
	return func(q arm.LoopRequest) func() arm.Answer {
		engine := server.New().Engine
		register(engine, table)
		c := engine.NewContext()
		c.Request.SetMethod(q.Method)
		c.Request.SetRequestURI(q.Target)
		c.Request.SetHost("127.0.0.1")
		c.Request.SetHeaders(q.Header)
		c.Request.SetBodyString(q.Body)
		ctx := context.Background()
		return func() arm.Answer {
			c.Response.Reset()
			c.Params = c.Params[:0]
			c.SetIndex(-1)
			engine.ServeHTTP(ctx, c)
			return arm.Answer{Status: c.Response.StatusCode(), Body: c.Response.Body()}
		}
	}
}
