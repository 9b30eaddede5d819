//tare:module github.com/gofiber/fiber/v3

// Command layers-fiber answers behind layers of gofiber/fiber version 3, as
// package plan says, in one process on its own server: values by the name in
// fiber's context, status by the response that all share.
package main

import (
	"flag"
	"net"

	"github.com/gofiber/fiber/v3"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/layers/plan"
	"github.com/tarehq/tare/arms/rivals/internal/fastloop"
)

func main() {
	depth := plan.Flag()
	flag.Parse()
	users, names := plan.Users(*depth), keys(*depth)
	body := plan.Body()
	plain := func(c fiber.Ctx) error {
		c.Set(fiber.HeaderContentType, plan.JSON)
		return c.Send(body)
	}
	app := fiber.New()
	get(app, plan.Noop, layers(*depth, noop, plain))
	get(app, plan.Record, layers(*depth, record, plain))
	get(app, plan.Value, layers(*depth, func(i int) fiber.Handler { return value(names[i], users[i]) }, func(c fiber.Ctx) error {
		if last := len(users) - 1; last >= 0 {
			u, _ := c.Locals(names[0]).(*plan.User)
			plan.Found(u, users[0])
			u, _ = c.Locals(names[last]).(*plan.User)
			plan.Found(u, users[last])
		}
		return plain(c)
	}))
	arm.Main(arm.Options{
		Serve: func(l net.Listener) error {
			return app.Listener(l, fiber.ListenConfig{DisableStartupMessage: true})
		},
		Loop: fastloop.Of(app.Handler()),
	})
}

// get registers handlers, which fiber wants as the first and the others.
func get(app *fiber.App, path string, handlers []any) { app.Get(path, handlers[0], handlers[1:]...) }

func layers(n plan.Depth, layer func(i int) fiber.Handler, h fiber.Handler) []any {
	all := make([]any, 0, n+1)
	for i := range int(n) {
		all = append(all, layer(i))
	}
	return append(all, h)
}

func noop(int) fiber.Handler { return func(c fiber.Ctx) error { return c.Next() } }

// keys are the names as fiber wants them, made once as those of a service are, which
// are constants: fiber would have the others moved to the heap by each call.
func keys(n plan.Depth) []any {
	all := make([]any, n)
	for i, name := range plan.Names(n) {
		all[i] = name
	}
	return all
}

func value(name any, u *plan.User) fiber.Handler {
	return func(c fiber.Ctx) error {
		c.Locals(name, u)
		return c.Next()
	}
}

func record(int) fiber.Handler {
	return func(c fiber.Ctx) error {
		err := c.Next()
		plan.Saw(c.Response().StatusCode())
		return err
	}
}
