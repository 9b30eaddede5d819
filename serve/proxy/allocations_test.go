//go:build !race

package proxy_test

import (
	"net/http"
	"testing"
)

// TestAllocates is the budget of BenchmarkHandler: three for the client, the answer's text, the
// room for its values, and the fields of who has sent the request. (The race detector has pools
// forget.)
func TestAllocates(t *testing.T) {
	h, r := cannedProxy()
	if n := testing.AllocsPerRun(1000, func() { h.ServeHTTP(&sink{header: make(http.Header, 4)}, r) }); n > 6 {
		t.Errorf("%v allocations, want 6 at most", n)
	}
}
