//tare:module github.com/danielgtaylor/huma/v2

// Command injected-huma serves what arms/injected does through middlewares of
// danielgtaylor/huma version 2, behind http.ServeMux.
package main

import (
	"context"
	"net/http"
	_ "net/http/pprof"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/injected/work"
)

func main() {
	set := work.FromFlags("injected-huma")
	mux := http.NewServeMux()
	api := humago.New(mux, huma.DefaultConfig("injected", "1"))
	huma.Register(api, huma.Operation{OperationID: "hello", Method: http.MethodGet, Path: "/{$}", Middlewares: all(set)}, hello)
	mux.Handle("GET /truth", set)
	mux.Handle("/debug/pprof/", http.DefaultServeMux)
	arm.Main(arm.Options{Handler: mux})
}

// all returns the middlewares of what there is to do, outermost first.
func all(s *work.Set) []func(huma.Context, func(huma.Context)) {
	return work.Present(s, spin(s.Spin), alloc(s.Alloc), block(s.Block), lock(s.Lock), log(s.Log))
}

func spin(s *work.Spin) func(huma.Context, func(huma.Context)) {
	return func(c huma.Context, next func(huma.Context)) {
		s.Do()
		next(c)
	}
}

func alloc(a *work.Alloc) func(huma.Context, func(huma.Context)) {
	return func(c huma.Context, next func(huma.Context)) {
		a.Do()
		next(c)
	}
}

func block(b *work.Block) func(huma.Context, func(huma.Context)) {
	return func(c huma.Context, next func(huma.Context)) {
		b.Do()
		next(c)
	}
}

func lock(l *work.Lock) func(huma.Context, func(huma.Context)) {
	return func(c huma.Context, next func(huma.Context)) {
		l.Do()
		next(c)
	}
}

func log(l *work.Log) func(huma.Context, func(huma.Context)) {
	return func(c huma.Context, next func(huma.Context)) {
		next(c)
		u := c.URL()
		l.Do(c.Method(), u.Path)
	}
}

type answer struct {
	ContentType string `header:"Content-Type"`
	Body        []byte
}

func hello(context.Context, *struct{}) (*answer, error) {
	return &answer{ContentType: "text/plain", Body: []byte(work.Body)}, nil
}
