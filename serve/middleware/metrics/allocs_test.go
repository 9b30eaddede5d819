//go:build !race

package metrics_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/middleware/metrics"
)

// TestAllocs holds a request to no allocation where a chain has the recorder.
func TestAllocs(t *testing.T) {
	m := open(t, metrics.Options{})
	h := m.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	w, _ := chain.Record(httptest.NewRecorder())
	r := httptest.NewRequest("GET", "/orders/7", nil)
	r.Pattern = "GET /orders/{id}"
	if n := testing.AllocsPerRun(1000, func() { h.ServeHTTP(w, r) }); n >= 1 {
		t.Errorf("%v allocations a request", n)
	}
}
