package router_test

import (
	"net/http"
	"testing"

	"github.com/tarehq/tare/arms/routes"
	"github.com/tarehq/tare/serve/internal/sys"
	"github.com/tarehq/tare/serve/router"
)

// TestGitHubAllocations asks for each of the GitHub table's routes once, by
// handlers that read all their values. With room in the request that allocates
// nothing. Without, requests share the memory of their values: about one in
// eighteen allocates.
func TestGitHubAllocations(t *testing.T) {
	table := routes.GitHub()
	rt := new(router.Router)
	found, values := 0, 0
	for _, route := range table {
		names := route.Params()
		values += len(names)
		rt.HandleFunc(route.Method+" "+route.Pattern, func(_ http.ResponseWriter, r *http.Request) {
			for _, name := range names {
				if r.PathValue(name) == "" {
					return
				}
			}
			found++
		})
	}
	var plain, roomy []*http.Request
	for _, route := range table {
		e := route.Example()
		plain = append(plain, request(e.Method, "", e.Path))
		q := &sys.RoomyRequest{Request: *request(e.Method, "", e.Path)}
		sys.FindPathFields().Reserve(q)
		roomy = append(roomy, &q.Request)
	}
	const rounds = 100
	count := func(rs []*http.Request) float64 {
		renew := make([]func(), len(rs))
		for i, r := range rs {
			renew[i] = fresh(r)
		}
		found = 0
		got := testing.AllocsPerRun(1, func() { // which runs it twice
			for range rounds {
				for i, r := range rs {
					renew[i]()
					rt.ServeHTTP(nil, r)
				}
			}
		})
		if want := 2 * rounds * len(table); found != want {
			t.Fatalf("%d requests found a route and all values, want %d", found, want)
		}
		return got
	}
	if got := count(roomy); got > 0 {
		t.Errorf("with room: got %v allocations for %d rounds of %d requests, want none", got, rounds, len(table))
	}
	got := count(plain)
	t.Logf("without room: %.4f allocations a request", got/float64(rounds*len(table)))
	if most := float64(rounds*values)/31*1.2 + 2; got == 0 || got > most {
		t.Errorf("without room: got %v allocations for %d rounds of %d requests with %d values, want some, at most %v", got, rounds, len(table), values, most)
	}
}
