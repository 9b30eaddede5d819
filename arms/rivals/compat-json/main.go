//tare:module go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp

// Command compat-json answers what the engine study asks with one handler of
// net/http, on a server of net/http's kind or on Fiber by its adaptor, alone or
// behind otelhttp.
//
// Every request is traced and its span thrown away as soon as it has ended, while
// the request still holds: what spans cost to send is not the server's.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/adaptor"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/engine/answers"
	"github.com/tarehq/tare/arms/serve/engines"
)

func main() {
	server := choice(engines.NetHTTP)
	flag.Var(&server, "server", "`server` to run: nethttp, serve, serve-reuse or fiber")
	traced := flag.Bool("traced", false, "trace every request")
	flag.Parse()
	var h http.Handler = answers.New()
	if *traced {
		h = tracedBy(h)
	}
	arm.Main(arm.Options{Handler: h, Serve: server.run(h)})
}

func tracedBy(h http.Handler) http.Handler {
	provider := trace.NewTracerProvider(trace.WithSampler(trace.AlwaysSample()), trace.WithSyncer(discarding{}))
	return otelhttp.NewHandler(h, "arm", otelhttp.WithTracerProvider(provider),
		otelhttp.WithPropagators(propagation.TraceContext{}))
}

// discarding is an exporter that throws spans away.
type discarding struct{}

func (discarding) ExportSpans(context.Context, []trace.ReadOnlySpan) error { return nil }

func (discarding) Shutdown(context.Context) error { return nil }

// choice is the name of a server.
type choice string

const byFiber choice = "fiber"

// String returns the name.
func (c *choice) String() string { return string(*c) }

// Set chooses the server of that name.
func (c *choice) Set(name string) error {
	var e engines.Engine
	if choice(name) != byFiber && e.Set(name) != nil {
		return fmt.Errorf("no such server: there are %s, %s, %s and %s", engines.NetHTTP, engines.Serve, engines.ServeReuse, byFiber)
	}
	*c = choice(name)
	return nil
}

// run returns what serves a listener with h.
func (c choice) run(h http.Handler) func(net.Listener) error {
	if c != byFiber {
		return engines.Engine(c).Run(h)
	}
	return func(l net.Listener) error {
		app := fiber.New()
		app.Use(adaptor.HTTPHandler(h))
		return app.Listener(l, fiber.ListenConfig{DisableStartupMessage: true})
	}
}
