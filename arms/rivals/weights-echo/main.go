//tare:module github.com/labstack/echo/v4

// Command weights-echo answers behind middlewares of labstack/echo version 4, one or several.
// Package plan of arms/weights says how they are set up, and what is answered.
package main

import (
	"crypto/subtle"
	"flag"
	"fmt"
	"net/http"
	"os"

	echojwt "github.com/labstack/echo-jwt/v4"
	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/weights/plan"
)

func main() {
	layer := flag.String("layer", "none", "`what` stands before the handler: none, or layers with commas between")
	flag.Parse()
	h, err := handler(*layer)
	if err != nil {
		fmt.Fprintf(os.Stderr, "weights-echo: %v\n", err)
		os.Exit(2)
	}
	arm.Main(arm.Options{Handler: h})
}

func handler(layer string) (http.Handler, error) {
	names, err := plan.Names(layer, nil, makers)
	if err != nil {
		return nil, err
	}
	e := echo.New()
	e.IPExtractor = echo.ExtractIPFromXFFHeader() // which trusts loopback
	for _, name := range names {
		e.Use(makers[name]())
	}
	answer := plan.NewAnswer()
	e.GET("/orders/:id", func(c echo.Context) error {
		answer.Write(c.Response())
		return nil
	})
	return e, nil
}

// makers make each layer, as its documentation shows it.
var makers = map[string]func() echo.MiddlewareFunc{
	"recovery":   middleware.Recover,
	"requestid":  middleware.RequestID,
	"clientaddr": func() echo.MiddlewareFunc { return findAddress },
	"accesslog": func() echo.MiddlewareFunc {
		//lint:ignore SA1019 it is deprecated and still what many services have
		return middleware.LoggerWithConfig(middleware.LoggerConfig{Output: plan.Log()})
	},
	"secure": middleware.Secure,
	"cors": func() echo.MiddlewareFunc {
		return middleware.CORSWithConfig(middleware.CORSConfig{AllowOrigins: []string{plan.Origin}, AllowMethods: []string{"PUT"}, AllowCredentials: true})
	},
	"limit": func() echo.MiddlewareFunc { return middleware.BodyLimit("1M") },
	"ratelimit": func() echo.MiddlewareFunc {
		return middleware.RateLimiter(middleware.NewRateLimiterMemoryStore(plan.Rate))
	},
	"timeout":    func() echo.MiddlewareFunc { return middleware.ContextTimeout(plan.Timeout) },
	"compress":   middleware.Gzip,
	"decompress": middleware.Decompress,
	"jwt":        func() echo.MiddlewareFunc { return echojwt.JWT(plan.Secret) },
	"apikey": func() echo.MiddlewareFunc {
		config := middleware.KeyAuthConfig{KeyLookup: "header:X-Api-Key", Validator: func(key string, _ echo.Context) (bool, error) {
			return subtle.ConstantTimeCompare([]byte(key), []byte(plan.Key)) == 1, nil
		}}
		return middleware.KeyAuthWithConfig(config)
	},
}

// findAddress has the client's address found, which echo does where somebody asks.
func findAddress(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		c.Set("address", c.RealIP())
		return next(c)
	}
}
