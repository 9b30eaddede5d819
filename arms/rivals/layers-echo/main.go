//tare:module github.com/labstack/echo/v4

// Command layers-echo answers behind layers of labstack/echo version 4, as
// package plan says, in the same http.Server as the control: values by the name
// in echo's context, status by the response that all share.
package main

import (
	"flag"

	"github.com/labstack/echo/v4"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/layers/plan"
)

func main() {
	depth := plan.Flag()
	flag.Parse()
	users, names := plan.Users(*depth), plan.Names(*depth)
	answer := plan.NewAnswer()
	plain := func(c echo.Context) error {
		answer.Write(c.Response())
		return nil
	}
	e := echo.New()
	e.GET(plan.Noop, plain, layers(*depth, noop)...)
	e.GET(plan.Record, plain, layers(*depth, record)...)
	e.GET(plan.Value, func(c echo.Context) error {
		if last := len(users) - 1; last >= 0 {
			u, _ := c.Get(names[0]).(*plan.User)
			plan.Found(u, users[0])
			u, _ = c.Get(names[last]).(*plan.User)
			plan.Found(u, users[last])
		}
		answer.Write(c.Response())
		return nil
	}, layers(*depth, func(i int) echo.MiddlewareFunc { return value(names[i], users[i]) })...)
	arm.Main(arm.Options{Handler: e})
}

func layers(n plan.Depth, layer func(i int) echo.MiddlewareFunc) []echo.MiddlewareFunc {
	all := make([]echo.MiddlewareFunc, n)
	for i := range all {
		all[i] = layer(i)
	}
	return all
}

func noop(int) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error { return next(c) }
	}
}

func value(name string, u *plan.User) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			c.Set(name, u)
			return next(c)
		}
	}
}

func record(int) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			err := next(c)
			plan.Saw(c.Response().Status)
			return err
		}
	}
}
