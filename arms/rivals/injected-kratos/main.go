//tare:module github.com/go-kratos/kratos/v2

// Command injected-kratos serves what arms/injected does through middlewares of
// go-kratos/kratos version 2.
package main

import (
	"context"
	"io"
	"net"
	"net/http"
	_ "net/http/pprof"

	logs "github.com/go-kratos/kratos/v2/log"
	"github.com/go-kratos/kratos/v2/middleware"
	kratos "github.com/go-kratos/kratos/v2/transport/http"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/injected/work"
)

func main() {
	set := work.FromFlags("injected-kratos")
	logs.SetLogger(logs.NewStdLogger(io.Discard))
	server := kratos.NewServer(kratos.Timeout(0), kratos.Middleware(all(set)...)) // a profile takes longer than the second that is the default
	server.Route("/").GET("/", hello)
	server.Handle("/truth", set)
	server.HandlePrefix("/debug/pprof/", http.DefaultServeMux)
	arm.Main(arm.Options{
		Handler: server, // for the loop
		Serve: func(l net.Listener) error {
			kratos.Listener(l)(server)
			return server.Start(context.Background())
		},
	})
}

// all returns the middlewares of what there is to do, outermost first.
func all(s *work.Set) []middleware.Middleware {
	return work.Present(s, spin(s.Spin), alloc(s.Alloc), block(s.Block), lock(s.Lock), log(s.Log))
}

func spin(s *work.Spin) middleware.Middleware {
	return func(next middleware.Handler) middleware.Handler {
		return func(ctx context.Context, r any) (any, error) {
			s.Do()
			return next(ctx, r)
		}
	}
}

func alloc(a *work.Alloc) middleware.Middleware {
	return func(next middleware.Handler) middleware.Handler {
		return func(ctx context.Context, r any) (any, error) {
			a.Do()
			return next(ctx, r)
		}
	}
}

func block(b *work.Block) middleware.Middleware {
	return func(next middleware.Handler) middleware.Handler {
		return func(ctx context.Context, r any) (any, error) {
			b.Do()
			return next(ctx, r)
		}
	}
}

func lock(l *work.Lock) middleware.Middleware {
	return func(next middleware.Handler) middleware.Handler {
		return func(ctx context.Context, r any) (any, error) {
			l.Do()
			return next(ctx, r)
		}
	}
}

func log(l *work.Log) middleware.Middleware {
	return func(next middleware.Handler) middleware.Handler {
		return func(ctx context.Context, r any) (any, error) {
			answer, err := next(ctx, r)
			l.Do(http.MethodGet, "/")
			return answer, err
		}
	}
}

// hello does as generated code does: the middlewares run around what answers.
func hello(c kratos.Context) error {
	h := c.Middleware(func(context.Context, any) (any, error) { return []byte(work.Body), nil })
	answer, err := h(c, nil)
	if err != nil {
		return err
	}
	return c.Blob(http.StatusOK, "text/plain", answer.([]byte))
}
