//tare:module github.com/kataras/iris/v12

// Command injected-iris serves what arms/injected does through middlewares of
// kataras/iris version 12.
package main

import (
	"fmt"
	"net/http"
	_ "net/http/pprof"
	"os"

	"github.com/kataras/iris/v12"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/injected/work"
)

func main() {
	set := work.FromFlags("injected-iris")
	app := iris.New()
	app.Logger().SetLevel("disable")
	app.Get("/", append(all(set), hello)...)
	app.Get("/truth", iris.FromStd(set))
	app.Any("/debug/pprof/{any:path}", iris.FromStd(http.DefaultServeMux))
	if err := app.Build(); err != nil {
		fmt.Fprintf(os.Stderr, "injected-iris: %v\n", err)
		os.Exit(1)
	}
	arm.Main(arm.Options{Handler: app})
}

// all returns the middlewares of what there is to do, outermost first.
func all(s *work.Set) []iris.Handler {
	return work.Present(s, spin(s.Spin), alloc(s.Alloc), block(s.Block), lock(s.Lock), log(s.Log))
}

func spin(s *work.Spin) iris.Handler {
	return func(c iris.Context) {
		s.Do()
		c.Next()
	}
}

func alloc(a *work.Alloc) iris.Handler {
	return func(c iris.Context) {
		a.Do()
		c.Next()
	}
}

func block(b *work.Block) iris.Handler {
	return func(c iris.Context) {
		b.Do()
		c.Next()
	}
}

func lock(l *work.Lock) iris.Handler {
	return func(c iris.Context) {
		l.Do()
		c.Next()
	}
}

func log(l *work.Log) iris.Handler {
	return func(c iris.Context) {
		c.Next()
		l.Do(c.Method(), c.Path())
	}
}

func hello(c iris.Context) {
	c.ResponseWriter().Header().Set("Content-Type", "text/plain")
	c.Write([]byte(work.Body)) // who asked is gone if it fails
}
