//go:build !race

package main

import (
	"net/http"
	"testing"

	"github.com/tarehq/tare/arms/serve/engines"
)

// TestAllocs holds each layer to its allocations a request, in a chain on package serve: what
// it takes more than the handler alone.
func TestAllocs(t *testing.T) {
	budgets := map[string]float64{
		"chain": 0, "recovery": 0, "requestid": 1, "clientaddr": 0, "accesslog": 0, "accesslog-combined": 0, "metrics": 0, "secure": 0, "cors": 0,
		"ipfilter": 0, "limit": 0, "ratelimit": 0, "ratelimit-window": 0, "timeout": 0, "breaker": 0, "apikey": 0, "basicauth": 0,
		"jwt": 0, "jwt-uncached": 12, "guards": 2,
	}
	asked := request(t)
	allocs := func(layers string) float64 {
		h, err := handler(layers)
		if err != nil {
			t.Fatal(err)
		}
		ctx, renew := engines.Serve.LoopContext()()
		r := asked.Clone(ctx)
		w := &writer{http.Header{}, ctx.(slotter)}
		return testing.AllocsPerRun(1000, func() {
			renew()
			clear(w.header)
			h.ServeHTTP(w, r)
		})
	}
	alone := allocs("none")
	for layer, most := range budgets {
		if n := allocs(layer) - alone; n > most {
			t.Errorf("%s: %v allocations a request, want %v at most", layer, n, most)
		}
	}
}
