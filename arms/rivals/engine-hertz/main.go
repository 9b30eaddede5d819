//tare:module github.com/cloudwego/hertz

// Command engine-hertz answers what the engine study asks by cloudwego/hertz on
// its default network library, netpoll: no middleware, no logs.
package main

import (
	"context"
	"net"
	"net/http"

	"github.com/cloudwego/hertz/pkg/app"
	"github.com/cloudwego/hertz/pkg/app/server"
	"github.com/cloudwego/hertz/pkg/common/hlog"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/engine/answers"
)

func main() {
	hlog.SetLevel(hlog.LevelFatal)
	arm.Main(arm.Options{Serve: serve})
}

func serve(l net.Listener) error {
	h := server.New(server.WithListener(l))
	h.GET(answers.PlainPath, fixed(answers.Text, answers.Plain()))
	h.GET(answers.JSONPath, fixed(answers.JSON, answers.Object()))
	h.GET(answers.PagePath, fixed(answers.Text, answers.Page()))
	h.POST(answers.EchoPath, func(_ context.Context, c *app.RequestContext) {
		c.Data(http.StatusOK, answers.Text, c.Request.Body())
	})
	h.NoRoute(func(_ context.Context, c *app.RequestContext) {
		c.Data(http.StatusNotFound, answers.Text, []byte(answers.NotFound))
	})
	return h.Run()
}

// fixed sends a body as it is; Data would copy it for every answer.
func fixed(contentType string, body []byte) app.HandlerFunc {
	return func(_ context.Context, c *app.RequestContext) {
		c.SetContentType(contentType)
		c.Response.SetBodyRaw(body)
	}
}
