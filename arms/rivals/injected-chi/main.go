//tare:module github.com/go-chi/chi/v5

// Command injected-chi serves what arms/injected does through the same
// middlewares by go-chi/chi.
package main

import (
	"net/http"
	_ "net/http/pprof"

	"github.com/go-chi/chi/v5"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/injected/layers"
	"github.com/tarehq/tare/arms/injected/work"
)

func main() {
	set := work.FromFlags("injected-chi")
	router := chi.NewRouter()
	router.With(layers.All(set)...).Get("/", layers.Hello)
	router.Method(http.MethodGet, "/truth", set)
	router.Mount("/debug/pprof", http.DefaultServeMux)
	arm.Main(arm.Options{Handler: router})
}
