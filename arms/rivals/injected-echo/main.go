//tare:module github.com/labstack/echo/v4

// Command injected-echo serves what arms/injected does through middlewares of
// labstack/echo version 4.
package main

import (
	"net/http"
	_ "net/http/pprof"

	"github.com/labstack/echo/v4"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/injected/work"
)

func main() {
	set := work.FromFlags("injected-echo")
	e := echo.New()
	e.GET("/", hello, all(set)...)
	e.GET("/truth", echo.WrapHandler(set))
	e.Any("/debug/pprof/*", echo.WrapHandler(http.DefaultServeMux))
	arm.Main(arm.Options{Handler: e})
}

// all returns the middlewares of what there is to do, outermost first.
func all(s *work.Set) []echo.MiddlewareFunc {
	return work.Present(s, spin(s.Spin), alloc(s.Alloc), block(s.Block), lock(s.Lock), log(s.Log))
}

func spin(s *work.Spin) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			s.Do()
			return next(c)
		}
	}
}

func alloc(a *work.Alloc) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			a.Do()
			return next(c)
		}
	}
}

func block(b *work.Block) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			b.Do()
			return next(c)
		}
	}
}

func lock(l *work.Lock) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			l.Do()
			return next(c)
		}
	}
}

func log(l *work.Log) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			err := next(c)
			l.Do(c.Request().Method, c.Request().URL.Path)
			return err
		}
	}
}

func hello(c echo.Context) error { return c.Blob(http.StatusOK, "text/plain", []byte(work.Body)) }
