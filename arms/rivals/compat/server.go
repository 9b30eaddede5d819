package compat

import (
	"io"
	"log"
	"net"
	"net/http"

	"github.com/cloudwego/hertz/pkg/app/server"
	hertzadaptor "github.com/cloudwego/hertz/pkg/common/adaptor"
	"github.com/cloudwego/hertz/pkg/common/hlog"
	"github.com/gofiber/fiber/v3"
	fiberadaptor "github.com/gofiber/fiber/v3/middleware/adaptor"
	fiberrecover "github.com/gofiber/fiber/v3/middleware/recover"

	"github.com/tarehq/tare/serve"
)

// Server runs handlers of net/http.
type Server struct {
	Name  string // for command lines
	Title string // for the table
	Setup string // how it is set up, a sentence without its full stop
	// Serve serves h on l until l fails.
	Serve func(l net.Listener, h http.Handler) error
}

// Servers returns the servers, the one that makes the promises first. Rivals are
// set up as their authors document for what the probes ask: bodies streamed where
// that can be had, panics recovered from, a lost client noticed.
func Servers() []Server {
	quiet := log.New(io.Discard, "", 0)
	return []Server{
		{"nethttp", "net/http", "`http.Server`, as it comes", func(l net.Listener, h http.Handler) error {
			return (&http.Server{Handler: h, ErrorLog: quiet}).Serve(l)
		}},
		{"serve", "serve", "`serve.Server`, as it comes", func(l net.Listener, h http.Handler) error {
			return (&serve.Server{Handler: h, ErrorLog: quiet}).Serve(l)
		}},
		{"serve-reuse", "serve, Reuse", "`serve.Server` with `Reuse`, which is documented as not for what keeps something of a request; all that breaks here does", func(l net.Listener, h http.Handler) error {
			return (&serve.Server{Handler: h, ErrorLog: quiet, Reuse: true}).Serve(l)
		}},
		{"fiber", "Fiber v3", "`adaptor.HTTPHandler` with `StreamRequestBody` and the `recover` middleware, without which a panic ends the process", serveFiber},
		{"hertz", "Hertz", "`adaptor.HertzHandler` in `server.Default` on netpoll, with `WithStreamBody` and `WithSenseClientDisconnection`", serveHertz},
	}
}

func serveFiber(l net.Listener, h http.Handler) error {
	app := fiber.New(fiber.Config{StreamRequestBody: true})
	app.Use(fiberrecover.New(), fiberadaptor.HTTPHandler(h))
	return app.Listener(l, fiber.ListenConfig{DisableStartupMessage: true})
}

func serveHertz(l net.Listener, h http.Handler) error {
	hlog.SetLevel(hlog.LevelFatal)
	engine := server.Default(server.WithListener(l), server.WithStreamBody(true), server.WithSenseClientDisconnection(true))
	engine.Any("/*path", hertzadaptor.HertzHandler(h))
	return engine.Run()
}
