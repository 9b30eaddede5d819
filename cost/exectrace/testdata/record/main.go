// Command record writes the traces that the tests beside it read: of one server for
// each framework that they have no module for, with a middleware that
// sleeps on /slow. It is copied to where those modules are and run there:
//
//	cp -r cost/exectrace/testdata/record arms/rivals/
//	go -C arms/rivals run -trimpath ./record ../../cost/exectrace/testdata
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/trace"
	"time"

	"github.com/cloudwego/hertz/pkg/app"
	"github.com/cloudwego/hertz/pkg/app/server"
	"github.com/cloudwego/hertz/pkg/common/hlog"
	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	"github.com/gofiber/fiber/v2"
	"github.com/labstack/echo/v4"
	"github.com/lesismal/nbio/logging"
	"github.com/lesismal/nbio/nbhttp"
	"github.com/valyala/fasthttp"
)

const pause = 5 * time.Millisecond

func serveChi(l net.Listener) {
	r := chi.NewRouter()
	r.Use(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/slow" {
				time.Sleep(pause)
			}
			next.ServeHTTP(w, r)
		})
	})
	users := func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "users") }
	r.Get("/slow", users)
	r.Get("/", users)
	http.Serve(l, r)
}

func serveGin(l net.Listener) {
	gin.SetMode(gin.ReleaseMode)
	r := gin.New()
	r.Use(func(c *gin.Context) {
		if c.Request.URL.Path == "/slow" {
			time.Sleep(pause)
		}
		c.Next()
	})
	users := func(c *gin.Context) { c.String(http.StatusOK, "users") }
	r.GET("/slow", users)
	r.GET("/", users)
	http.Serve(l, r)
}

func serveEcho(l net.Listener) {
	e := echo.New()
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if c.Path() == "/slow" {
				time.Sleep(pause)
			}
			return next(c)
		}
	})
	users := func(c echo.Context) error { return c.String(http.StatusOK, "users") }
	e.GET("/slow", users)
	e.GET("/", users)
	http.Serve(l, e)
}

func serveFiber(l net.Listener) {
	a := fiber.New(fiber.Config{DisableStartupMessage: true})
	a.Use(func(c *fiber.Ctx) error {
		if c.Path() == "/slow" {
			time.Sleep(pause)
		}
		return c.Next()
	})
	users := func(c *fiber.Ctx) error { return c.SendString("users") }
	a.Get("/slow", users)
	a.Get("/", users)
	a.Listener(l)
}

func serveFastHTTP(l net.Listener) {
	fasthttp.Serve(l, func(c *fasthttp.RequestCtx) {
		if string(c.Path()) == "/slow" {
			time.Sleep(pause)
		}
		c.WriteString("users")
	})
}

func serveHertz(l net.Listener) {
	hlog.SetLevel(hlog.LevelFatal)
	h := server.New(server.WithListener(l))
	users := func(_ context.Context, c *app.RequestContext) {
		if string(c.Path()) == "/slow" {
			time.Sleep(pause)
		}
		c.String(http.StatusOK, "users")
	}
	h.GET("/slow", users)
	h.GET("/", users)
	h.Run()
}

func serveNbio(l net.Listener) {
	logging.SetLevel(logging.LevelNone)
	nbhttp.NewEngine(nbhttp.Config{
		Network: "tcp",
		Addrs:   []string{l.Addr().String()},
		Listen:  func(string, string) (net.Listener, error) { return l, nil },
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/slow" {
				time.Sleep(pause)
			}
			io.WriteString(w, "users")
		}),
	}).Start()
}

func main() {
	for _, s := range []struct {
		name string
		run  func(net.Listener)
	}{
		{"chi", serveChi}, {"gin", serveGin}, {"echo", serveEcho}, {"fiber", serveFiber}, {"fasthttp", serveFastHTTP},
		{"hertz", serveHertz}, {"nbio", serveNbio}, // last: they stay on, and are seen in what follows
	} {
		if err := record(filepath.Join(os.Args[1], s.name+".trace"), s.run); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// record traces a server that answers eight requests on one connection, two of them
// slow.
func record(path string, serve func(net.Listener)) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go serve(l)
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := trace.Start(f); err != nil {
		return err
	}
	defer trace.Stop()
	c := &http.Client{Transport: &http.Transport{}}
	for i := range 8 {
		url := "http://" + l.Addr().String() + "/"
		if i%4 == 1 {
			url += "slow"
		}
		res, err := c.Get(url)
		if err != nil {
			return err
		}
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
	time.Sleep(10 * time.Millisecond) // until the server is done with the last
	return nil
}
