//tare:module github.com/gin-gonic/gin

// Command gin serves a route table by gin-gonic/gin in release mode, in the same
// http.Server as the control.
//
// The flag -middleware adds what gin.Default adds, each alone or both as there.
// The logger writes to standard output. With the flag -string static routes are
// answered by gin's own String, as a published comparison did. Only what every version since 1.8 has
// is used, so that versions can be compared.
package main

import (
	"flag"
	"fmt"
	"net/http"
	"os"

	"github.com/gin-gonic/gin"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/routes"
)

func main() {
	table := routes.Flag()
	middleware := flag.String("middleware", "none", "`middlewares` to use: none, logger, recovery or logger+recovery")
	text := flag.Bool("string", false, "answer by String; for tables without parameters")
	flag.Parse()
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	switch *middleware {
	case "none":
	case "logger":
		engine.Use(gin.Logger())
	case "recovery":
		engine.Use(gin.Recovery())
	case "logger+recovery":
		engine.Use(gin.Logger(), gin.Recovery())
	default:
		fmt.Fprintf(os.Stderr, "gin: no middleware %q: want none, logger, recovery or logger+recovery\n", *middleware)
		os.Exit(2)
	}
	for _, r := range *table {
		answer := r.Answer()
		if *text {
			engine.Handle(r.Method, r.Colon(), func(c *gin.Context) { c.String(http.StatusOK, "%s", r.Pattern) })
			continue
		}
		engine.Handle(r.Method, r.Colon(), func(c *gin.Context) {
			contentType, body := answer.Make(c.Param)
			c.Data(http.StatusOK, contentType, body)
		})
	}
	engine.NoRoute(gin.WrapF(http.NotFound)) // as the routers without an answer of their own
	arm.Main(arm.Options{Handler: engine})
}
