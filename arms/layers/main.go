// Command layers answers behind any number of layers on one server or another:
// nested by hand behind http.ServeMux, as services of the standard library do, or
// by serve/chain behind serve/router. Package plan says which layers.
package main

import (
	"flag"
	"fmt"
	"net/http"
	"os"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/layers/plan"
	"github.com/tarehq/tare/arms/serve/engines"
	"github.com/tarehq/tare/serve/router"
)

func main() {
	depth := plan.Flag()
	by := flag.String("by", "nested", "what `puts` the layers around the handler: nested or chain")
	server := engines.Flag(engines.NetHTTP)
	flag.Parse()
	h, err := handler(*by, *depth)
	if err != nil {
		fmt.Fprintf(os.Stderr, "layers: %v\n", err)
		os.Exit(2)
	}
	arm.Main(arm.Options{Handler: h, Serve: server.Run(h), Context: server.LoopContext()})
}

// layering is a way to put layers around a handler.
type layering struct {
	wrap                func(h http.Handler, layer func(i int) middleware) http.Handler
	noop, value, record func(i int) middleware
	find                func(*http.Request) // looks up what the layers keep
}

// muxer is either router.
type muxer interface {
	http.Handler
	Handle(pattern string, h http.Handler)
}

func handler(by string, depth plan.Depth) (http.Handler, error) {
	var l layering
	var mux muxer
	switch users := plan.Users(depth); by {
	case "nested":
		l, mux = newNested(users), http.NewServeMux()
	case "chain":
		l, mux = newChained(users), new(router.Router)
	default:
		return nil, fmt.Errorf("layers by %q: want nested or chain", by)
	}
	answer := plan.NewAnswer()
	plain := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer.Write(w) })
	finding := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.find(r)
		answer.Write(w)
	})
	mux.Handle("GET "+plan.Noop, l.wrap(plain, l.noop))
	mux.Handle("GET "+plan.Value, l.wrap(finding, l.value))
	mux.Handle("GET "+plan.Record, l.wrap(plain, l.record))
	return mux, nil
}
