//go:build !race

package basicauth_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/tarehq/tare/serve/middleware/basicauth"
)

// TestAllocs holds a remembered password to the copy of the request that a value takes
// outside of a chain on serve.
func TestAllocs(t *testing.T) {
	v := open(t, basicauth.Options{Compare: new(hashes).compare})
	h := v.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	w, r := httptest.NewRecorder(), request(encode("ann:one two three"))
	if n := testing.AllocsPerRun(1000, func() { h.ServeHTTP(w, r) }); n > 2 {
		t.Errorf("%v allocations a request", n)
	}
}
