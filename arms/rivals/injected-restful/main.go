//tare:module github.com/emicklei/go-restful/v3

// Command injected-restful serves what arms/injected does through filters of
// emicklei/go-restful version 3.
package main

import (
	"net/http"
	_ "net/http/pprof"

	restful "github.com/emicklei/go-restful/v3"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/injected/work"
)

func main() {
	set := work.FromFlags("injected-restful")
	container := restful.NewContainer()
	service := new(restful.WebService)
	route := service.GET("/").To(hello)
	for _, filter := range all(set) {
		route.Filter(filter)
	}
	service.Route(route)
	container.Add(service)
	mux := http.NewServeMux() // a container takes all paths below those of its services
	mux.Handle("/", container)
	mux.Handle("GET /truth", set)
	mux.Handle("/debug/pprof/", http.DefaultServeMux)
	arm.Main(arm.Options{Handler: mux})
}

// all returns the middlewares of what there is to do, outermost first.
func all(s *work.Set) []restful.FilterFunction {
	return work.Present(s, spin(s.Spin), alloc(s.Alloc), block(s.Block), lock(s.Lock), log(s.Log))
}

func spin(s *work.Spin) restful.FilterFunction {
	return func(r *restful.Request, w *restful.Response, chain *restful.FilterChain) {
		s.Do()
		chain.ProcessFilter(r, w)
	}
}

func alloc(a *work.Alloc) restful.FilterFunction {
	return func(r *restful.Request, w *restful.Response, chain *restful.FilterChain) {
		a.Do()
		chain.ProcessFilter(r, w)
	}
}

func block(b *work.Block) restful.FilterFunction {
	return func(r *restful.Request, w *restful.Response, chain *restful.FilterChain) {
		b.Do()
		chain.ProcessFilter(r, w)
	}
}

func lock(l *work.Lock) restful.FilterFunction {
	return func(r *restful.Request, w *restful.Response, chain *restful.FilterChain) {
		l.Do()
		chain.ProcessFilter(r, w)
	}
}

func log(l *work.Log) restful.FilterFunction {
	return func(r *restful.Request, w *restful.Response, chain *restful.FilterChain) {
		chain.ProcessFilter(r, w)
		l.Do(r.Request.Method, r.Request.URL.Path)
	}
}

func hello(_ *restful.Request, w *restful.Response) {
	w.AddHeader("Content-Type", "text/plain")
	w.Write([]byte(work.Body)) // who asked is gone if it fails
}
