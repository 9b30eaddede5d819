//tare:module github.com/gofiber/fiber/v2

// Command fiber serves a route table by gofiber/fiber version 2 in one process,
// on its own server: no middleware, no start-up message, and request data not
// copied for handlers that keep it, which is the default.
package main

import (
	"flag"

	"github.com/gofiber/fiber/v2"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/rivals/internal/fastloop"
	"github.com/tarehq/tare/arms/routes"
)

func main() {
	table := routes.Flag()
	flag.Parse()
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	for _, r := range *table {
		answer := r.Answer()
		app.Add(r.Method, r.Colon(), func(c *fiber.Ctx) error {
			contentType, body := answer.Make(func(name string) string { return c.Params(name) })
			c.Set(fiber.HeaderContentType, contentType)
			return c.Send(body)
		})
	}
	app.Use(func(c *fiber.Ctx) error {
		c.Set(fiber.HeaderContentType, routes.Text)
		return c.Status(fiber.StatusNotFound).SendString(routes.NotFound)
	})
	arm.Main(arm.Options{Serve: app.Listener, Loop: fastloop.Of(app.Handler())})
}
