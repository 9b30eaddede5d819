//tare:module github.com/gofiber/fiber/v3

// Command weights-fiber answers behind middlewares of gofiber/fiber version 3, one or several,
// on its own server. Package plan of arms/weights says how they are set up, and what is
// answered.
package main

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	otelfiber "github.com/gofiber/contrib/v3/otel"
	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/extractors"
	"github.com/gofiber/fiber/v3/middleware/basicauth"
	"github.com/gofiber/fiber/v3/middleware/compress"
	"github.com/gofiber/fiber/v3/middleware/cors"
	"github.com/gofiber/fiber/v3/middleware/helmet"
	"github.com/gofiber/fiber/v3/middleware/keyauth"
	"github.com/gofiber/fiber/v3/middleware/limiter"
	"github.com/gofiber/fiber/v3/middleware/logger"
	"github.com/gofiber/fiber/v3/middleware/recover"
	"github.com/gofiber/fiber/v3/middleware/requestid"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/rivals/internal/fastloop"
	"github.com/tarehq/tare/arms/rivals/internal/spans"
	"github.com/tarehq/tare/arms/weights/plan"
)

func main() {
	layer := flag.String("layer", "none", "`what` stands before the handler: none, or layers with commas between")
	flag.Parse()
	app, err := newApp(*layer)
	if err != nil {
		fmt.Fprintf(os.Stderr, "weights-fiber: %v\n", err)
		os.Exit(2)
	}
	arm.Main(arm.Options{
		Serve: func(l net.Listener) error {
			return app.Listener(l, fiber.ListenConfig{DisableStartupMessage: true})
		},
		Loop: fastloop.Of(app.Handler()),
	})
}

func newApp(layer string) (*fiber.App, error) {
	names, err := plan.Names(layer, nil, makers)
	if err != nil {
		return nil, err
	}
	app := fiber.New()
	for _, name := range names {
		app.Use(makers[name]())
	}
	body := plan.AnswerBody()
	app.Get("/orders/:id", func(c fiber.Ctx) error {
		c.Set(fiber.HeaderContentType, plan.AnswerType)
		return c.Send(body)
	})
	return app, nil
}

// makers make each layer, as its documentation shows it.
var makers = map[string]func() fiber.Handler{
	"recovery":  func() fiber.Handler { return recover.New() },
	"requestid": func() fiber.Handler { return requestid.New() },
	"accesslog": func() fiber.Handler { return logger.New(logger.Config{Stream: plan.Log()}) },
	"secure":    func() fiber.Handler { return helmet.New() },
	"cors": func() fiber.Handler {
		return cors.New(cors.Config{AllowOrigins: []string{plan.Origin}, AllowMethods: []string{fiber.MethodPut}, AllowCredentials: true})
	},
	"ratelimit":       func() fiber.Handler { return limiter.New(limiter.Config{Max: plan.Rate, Expiration: time.Second}) },
	"compress":        func() fiber.Handler { return compress.New() },
	"tracing":         func() fiber.Handler { return tracing(sdktrace.NeverSample()) },
	"tracing-sampled": func() fiber.Handler { return tracing(sdktrace.AlwaysSample()) },
	"basicauth":       withPassword,
	"apikey": func() fiber.Handler {
		return keyauth.New(keyauth.Config{Extractor: extractors.FromHeader("X-Api-Key"), Validator: func(_ fiber.Ctx, key string) (bool, error) {
			return subtle.ConstantTimeCompare([]byte(key), []byte(plan.Key)) == 1, nil
		}})
	},
}

// tracing is otelfiber as its package shows it, without its metrics.
func tracing(s sdktrace.Sampler) fiber.Handler {
	return otelfiber.Middleware(otelfiber.WithTracerProvider(spans.Provider(s)), otelfiber.WithMeterProvider(metricnoop.NewMeterProvider()),
		otelfiber.WithPropagators(propagation.TraceContext{}))
}

// withPassword has the user's password, which is kept as a quick hash, in place of the
// study's token.
func withPassword() fiber.Handler {
	sum := sha256.Sum256([]byte(plan.Password))
	check := basicauth.New(basicauth.Config{Users: map[string]string{plan.User: "{SHA256}" + base64.StdEncoding.EncodeToString(sum[:])}})
	asked := &http.Request{Header: http.Header{}}
	asked.SetBasicAuth(plan.User, plan.Password)
	field := asked.Header.Get(fiber.HeaderAuthorization)
	return func(c fiber.Ctx) error {
		c.Request().Header.Set(fiber.HeaderAuthorization, field)
		return check(c)
	}
}
