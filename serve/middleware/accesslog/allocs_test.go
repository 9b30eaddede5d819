//go:build !race

package accesslog_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/middleware/accesslog"
)

// TestAllocs holds a line to no allocation where a chain has the recorder.
func TestAllocs(t *testing.T) {
	log := open(t, accesslog.Options{To: io.Discard})
	defer log.Close(t.Context())
	h := log.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	w, _ := chain.Record(httptest.NewRecorder())
	r := httptest.NewRequest("GET", "/orders/7?x=1", nil)
	r.Header.Set("User-Agent", "curl/8")
	if n := testing.AllocsPerRun(1000, func() { h.ServeHTTP(w, r) }); n >= 1 {
		t.Errorf("%v allocations a request", n)
	}
}
