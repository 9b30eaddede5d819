//go:build !race

package proxy_test

import (
	"net/http"
	"testing"
)

// TestAllocates is the budget of BenchmarkHandler: three for the client, the answer's text, the
// room for its values, the fields of who has sent the request, and a look at a connection that is
// no socket. (The race detector has pools forget.)
func TestAllocates(t *testing.T) {
	h, r := cannedProxy()
	if n := testing.AllocsPerRun(1000, func() { h.ServeHTTP(&sink{header: make(http.Header, 4)}, r) }); n > 7 {
		t.Errorf("%v allocations, want 7 at most", n)
	}
}
