//tare:module github.com/gofiber/fiber/v3

// Command injected-fiber serves what arms/injected does through middlewares of
// gofiber/fiber version 3, in one process on its own server.
package main

import (
	"net"
	"net/http"
	_ "net/http/pprof"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/adaptor"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/injected/work"
	"github.com/tarehq/tare/arms/rivals/internal/fastloop"
)

func main() {
	set := work.FromFlags("injected-fiber")
	app := fiber.New()
	handlers := append(all(set), hello)
	app.Get("/", handlers[0], handlers[1:]...)
	app.Get("/truth", adaptor.HTTPHandler(set))
	app.All("/debug/pprof/*", adaptor.HTTPHandler(http.DefaultServeMux))
	arm.Main(arm.Options{
		Serve: func(l net.Listener) error {
			return app.Listener(l, fiber.ListenConfig{DisableStartupMessage: true})
		},
		Loop: fastloop.Of(app.Handler()),
	})
}

// all returns the middlewares of what there is to do, outermost first, as fiber
// wants them.
func all(s *work.Set) []any {
	return work.Present[any](s, spin(s.Spin), alloc(s.Alloc), block(s.Block), lock(s.Lock), log(s.Log))
}

func spin(s *work.Spin) fiber.Handler {
	return func(c fiber.Ctx) error {
		s.Do()
		return c.Next()
	}
}

func alloc(a *work.Alloc) fiber.Handler {
	return func(c fiber.Ctx) error {
		a.Do()
		return c.Next()
	}
}

func block(b *work.Block) fiber.Handler {
	return func(c fiber.Ctx) error {
		b.Do()
		return c.Next()
	}
}

func lock(l *work.Lock) fiber.Handler {
	return func(c fiber.Ctx) error {
		l.Do()
		return c.Next()
	}
}

func log(l *work.Log) fiber.Handler {
	return func(c fiber.Ctx) error {
		err := c.Next()
		l.Do(c.Method(), c.Path())
		return err
	}
}

func hello(c fiber.Ctx) error {
	c.Set(fiber.HeaderContentType, "text/plain")
	return c.SendString(work.Body)
}
