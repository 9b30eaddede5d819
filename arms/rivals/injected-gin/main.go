//tare:module github.com/gin-gonic/gin

// Command injected-gin serves what arms/injected does through middlewares of
// gin-gonic/gin, in release mode.
package main

import (
	"net/http"
	_ "net/http/pprof"

	"github.com/gin-gonic/gin"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/injected/work"
)

func main() {
	set := work.FromFlags("injected-gin")
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.GET("/", append(all(set), hello)...)
	engine.GET("/truth", gin.WrapH(set))
	engine.Any("/debug/pprof/*any", gin.WrapH(http.DefaultServeMux))
	arm.Main(arm.Options{Handler: engine})
}

// all returns the middlewares of what there is to do, outermost first.
func all(s *work.Set) []gin.HandlerFunc {
	return work.Present(s, spin(s.Spin), alloc(s.Alloc), block(s.Block), lock(s.Lock), log(s.Log))
}

func spin(s *work.Spin) gin.HandlerFunc {
	return func(c *gin.Context) {
		s.Do()
		c.Next()
	}
}

func alloc(a *work.Alloc) gin.HandlerFunc {
	return func(c *gin.Context) {
		a.Do()
		c.Next()
	}
}

func block(b *work.Block) gin.HandlerFunc {
	return func(c *gin.Context) {
		b.Do()
		c.Next()
	}
}

// lock leaves it to gin to go on, as many middlewares do.
func lock(l *work.Lock) gin.HandlerFunc { return func(*gin.Context) { l.Do() } }

func log(l *work.Log) gin.HandlerFunc {
	return func(c *gin.Context) {
		c.Next()
		l.Do(c.Request.Method, c.Request.URL.Path)
	}
}

func hello(c *gin.Context) { c.Data(http.StatusOK, "text/plain", []byte(work.Body)) }
