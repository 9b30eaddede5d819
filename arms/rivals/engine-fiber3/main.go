//tare:module github.com/gofiber/fiber/v3

// Command engine-fiber3 answers what the engine study asks by gofiber/fiber
// version 3 in one process, on its own server: no middleware, no start-up
// message, and request data not copied for handlers that keep it, which is the
// default.
package main

import (
	"net"

	"github.com/gofiber/fiber/v3"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/engine/answers"
)

func main() {
	app := fiber.New()
	app.Get(answers.PlainPath, fixed(answers.Text, answers.Plain()))
	app.Get(answers.JSONPath, fixed(answers.JSON, answers.Object()))
	app.Get(answers.PagePath, fixed(answers.Text, answers.Page()))
	app.Post(answers.EchoPath, func(c fiber.Ctx) error {
		c.Set(fiber.HeaderContentType, answers.Text)
		return c.Send(c.Body())
	})
	app.Use(func(c fiber.Ctx) error {
		c.Set(fiber.HeaderContentType, answers.Text)
		return c.Status(fiber.StatusNotFound).SendString(answers.NotFound)
	})
	arm.Main(arm.Options{Serve: func(l net.Listener) error {
		return app.Listener(l, fiber.ListenConfig{DisableStartupMessage: true})
	}})
}

func fixed(contentType string, body []byte) fiber.Handler {
	return func(c fiber.Ctx) error {
		c.Set(fiber.HeaderContentType, contentType)
		return c.Send(body)
	}
}
