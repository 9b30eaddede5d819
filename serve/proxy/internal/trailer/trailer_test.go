package trailer_test

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tarehq/tare/serve/proxy/internal/trailer"
)

// TestAnnounced has what is for one hop stay, also what Connection has named, and the fields be
// read once, not once for each trailer: a client may name thousands in both.
func TestAnnounced(t *testing.T) {
	const n = 2000
	r := &http.Request{Header: http.Header{}, Trailer: http.Header{"X-Open": nil, "Te": nil, "X-Forwarded-For": nil, "X_forwarded_for": nil}}
	var named []string
	for i := range n {
		name := "X-" + strconv.Itoa(i)
		named, r.Trailer[name] = append(named, name), nil
	}
	r.Header["Connection"] = []string{strings.Join(named, ", ")}
	var got []string
	allocs := testing.AllocsPerRun(1, func() { got = trailer.Announced(r) })
	if !slices.Equal(got, []string{"X-Open"}) {
		t.Errorf("got %q, want X-Open alone", got)
	}
	if allocs > n {
		t.Errorf("%.0f allocations for %d names", allocs, n)
	}
}
