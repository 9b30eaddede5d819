//go:build !race

package metrics_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/middleware/metrics"
)

// TestAllocs holds a request to no allocation where a chain has the recorder, and a traced
// one to its exemplar and the copy of the trace's identifier.
func TestAllocs(t *testing.T) {
	for _, c := range []struct {
		name  string
		trace func(*http.Request) string
		most  float64
	}{
		{"no traces", nil, 0},
		{"not traced", func(*http.Request) string { return "" }, 0},
		{"traced", func(*http.Request) string { return "0af7651916cd43dd8448eb211c80319c" }, 2},
	} {
		m := open(t, metrics.Options{Trace: c.trace})
		h := m.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		w, _ := chain.Record(httptest.NewRecorder())
		r := httptest.NewRequest("GET", "/orders/7", nil)
		r.Pattern = "GET /orders/{id}"
		if n := testing.AllocsPerRun(1000, func() { h.ServeHTTP(w, r) }); n > c.most {
			t.Errorf("%s: %v allocations a request, want %v", c.name, n, c.most)
		}
	}
}
