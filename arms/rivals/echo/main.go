//tare:module github.com/labstack/echo/v4

// Command echo serves a route table by labstack/echo version 4: no middleware,
// in the same http.Server as the control.
package main

import (
	"flag"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/routes"
)

func main() {
	table := routes.Flag()
	flag.Parse()
	e := echo.New()
	for _, r := range *table {
		answer := r.Answer()
		e.Add(r.Method, r.Colon(), func(c echo.Context) error {
			contentType, body := answer.Make(c.Param)
			return c.Blob(http.StatusOK, contentType, body)
		})
	}
	e.RouteNotFound("/*", echo.WrapHandler(http.NotFoundHandler())) // as the routers without an answer of their own
	arm.Main(arm.Options{Handler: e})
}
