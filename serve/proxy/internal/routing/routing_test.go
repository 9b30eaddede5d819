package routing_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/tarehq/tare/serve/proxy/internal/routing"
)

// TestPrependHolds has paths whose dots are escaped not lead out of what is put before them.
func TestPrependHolds(t *testing.T) {
	h := &routing.Rewrite{Prepend: "/public", Next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Path", r.URL.Path)
	})}
	for path, want := range map[string]string{"/a": "/public/a", "/a..b": "/public/a..b", "/%2e%2e/secret": "", "/a/..%2fsecret": "", "/a/%2E%2E": ""} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if got := w.Header().Get("Path"); got != want || (want == "") != (w.Code == http.StatusNotFound) {
			t.Errorf("%s: status %d, path %q, want %q", path, w.Code, got, want)
		}
	}
}
