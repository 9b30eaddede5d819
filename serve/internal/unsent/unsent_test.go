package unsent_test

import (
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/tarehq/tare/serve/internal/unsent"
)

func TestForget(t *testing.T) {
	h := http.Header{}
	for _, field := range []string{"Cache-Control", "CDN-Cache-Control", "Example-Cache-Control", "Surrogate-Control", "Content-Encoding",
		"Content-Length", "Content-Type", "Content-Digest", "Repr-Digest", "ETag", "Expires", "Last-Modified", "Accept-Ranges",
		"X-Request-Id", "Vary", "Access-Control-Allow-Origin", "Strict-Transport-Security"} {
		h.Set(field, "x")
	}
	unsent.Forget(h)
	want := []string{"Access-Control-Allow-Origin", "Strict-Transport-Security", "Vary", "X-Request-Id"}
	if got := slices.Sorted(maps.Keys(h)); !slices.Equal(got, want) {
		t.Errorf("left are %q, want %q", got, want)
	}
}
