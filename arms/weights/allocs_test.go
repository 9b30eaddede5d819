//go:build !race

package main

import (
	"io"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
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

// TestStackOfConnections holds a connection behind the guards to a stack of 4 KiB. The collector
// halves one of 8 KiB, and the next request would have to double it again.
func TestStackOfConnections(t *testing.T) {
	const conns = 256
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // which would halve them here, too
	asked := "GET /orders/7 HTTP/1.1\r\nHost: x\r\nAuthorization: " + request(t).Header.Get("Authorization") + "\r\n\r\n"
	h, err := handler(stack)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go engines.Serve.Run(h)(l)
	defer l.Close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range conns {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, asked); err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, 4<<10)
		if n, err := c.Read(answer); err != nil || !strings.HasPrefix(string(answer[:n]), "HTTP/1.1 200") {
			t.Fatalf("got %q, %v", answer[:n], err)
		}
	}
	runtime.ReadMemStats(&after)
	if each := (after.StackInuse - before.StackInuse) / conns; each > 6<<10 {
		t.Errorf("a connection's stack has %d bytes, want 4,096", each)
	}
}
