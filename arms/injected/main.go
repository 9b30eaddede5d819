// Command injected serves GET / through middlewares whose costs are known: one
// spins, one allocates, one blocks, one works under a shared lock, one logs to a
// slow reader. Instruments that attribute costs are held against it. It does so
// behind http.ServeMux, by serve/chain behind serve/router, or by a chain that is made
// here, as people make their own.
//
// GET /truth answers what each middleware measured of itself, and /debug/pprof/
// has the process's profiles.
package main

import (
	"flag"
	"fmt"
	"net/http"
	_ "net/http/pprof"
	"os"
	"slices"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/injected/layers"
	"github.com/tarehq/tare/arms/injected/work"
	"github.com/tarehq/tare/arms/serve/engines"
	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/router"
)

func main() {
	amounts := work.Flags()
	by := flag.String("by", "nested", "what `puts` the layers around the handler: nested, chain or own")
	server := engines.Flag(engines.NetHTTP)
	flag.Parse()
	h, err := handler(*by, *amounts)
	if err != nil {
		fmt.Fprintf(os.Stderr, "injected: %v\n", err)
		os.Exit(2)
	}
	arm.Main(arm.Options{Handler: h, Serve: server.Run(h)})
}

// muxer is either router.
type muxer interface {
	http.Handler
	Handle(pattern string, h http.Handler)
}

func handler(by string, amounts work.Amounts) (http.Handler, error) {
	set, err := work.New(amounts)
	if err != nil {
		return nil, err
	}
	all := layers.All(set)
	var h http.Handler = http.HandlerFunc(layers.Hello)
	var mux muxer
	switch by {
	case "nested":
		mux = http.NewServeMux()
		for _, layer := range slices.Backward(all) {
			h = layer(h)
		}
	case "chain":
		mux = new(router.Router)
		if h, err = chain.New(all...).Then(h); err != nil {
			return nil, err
		}
	case "own":
		mux, h = http.NewServeMux(), newApp(set)
	default:
		return nil, fmt.Errorf("layers by %q: want nested, chain or own", by)
	}
	mux.Handle("GET /{$}", h)
	mux.Handle("GET /truth", set)
	mux.Handle("/debug/pprof/", http.DefaultServeMux)
	return mux, nil
}
