package router_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/tarehq/tare/serve/internal/sys"
	"github.com/tarehq/tare/serve/router"
)

// routeKinds are routes and requests for them, with the route's number.
var routeKinds = []struct{ name, pattern, target string }{
	{"static", "GET /static/%d/end", "/static/%d/end"},
	{"param", "GET /param/%d/{x}", "/param/%d/value"},
	{"regexp", "GET /regexp/%d/{x:[a-z]+}", "/regexp/%d/value"},
	{"typed", "GET /typed/%d/{x:int}", "/typed/%d/17"},
	{"wildcard", "GET /wild/%d/{r...}", "/wild/%d/a/b/c"},
	{"miss", "GET /miss/%d/{x}", "/miss/%d/value/more"},
}

// sweep returns a function that asks a table of n routes for 64 paths all over
// it, in requests that have room for values, as serve.Server makes them.
func sweep(pattern, target string, n int) func() {
	rt := &router.Router{NotFound: http.HandlerFunc(nothing)}
	for i := range n {
		rt.HandleFunc(fmt.Sprintf(pattern, i), nothing)
	}
	var renews [64]func()
	var rs [64]*http.Request
	for i := range rs {
		q := &sys.RoomyRequest{Request: *request("GET", "", fmt.Sprintf(target, i*n/len(rs)))}
		sys.FindPathFields().Reserve(q)
		rs[i], renews[i] = &q.Request, fresh(&q.Request)
	}
	return func() {
		for i, r := range rs {
			renews[i]()
			rt.ServeHTTP(nil, r)
		}
	}
}

// BenchmarkKind takes 64 requests an iteration.
func BenchmarkKind(b *testing.B) {
	for _, kind := range routeKinds {
		b.Run("kind="+kind.name, func(b *testing.B) {
			ask := sweep(kind.pattern, kind.target, 100)
			b.ReportAllocs()
			for b.Loop() {
				ask()
			}
		})
	}
}

// BenchmarkScaling asks a small and a large table by turns and reports the median,
// over the turns, of what the large one takes in terms of the small. Caches have
// their share in it: the large table's requests touch more of the tree.
func BenchmarkScaling(b *testing.B) {
	for _, kind := range routeKinds {
		for _, n := range []int{100, 1000, 5000} {
			b.Run(fmt.Sprintf("kind=%s/routes=%d", kind.name, n), func(b *testing.B) {
				sides := [2]func(){sweep(kind.pattern, kind.target, n), sweep(kind.pattern, kind.target, 10)}
				var ratios []float64
				for turn := 0; b.Loop(); turn++ {
					var took [2]time.Duration
					for _, i := range [2]int{turn % 2, 1 - turn%2} {
						start := time.Now()
						sides[i]()
						took[i] = time.Since(start)
					}
					ratios = append(ratios, float64(took[0])/float64(took[1]))
				}
				slices.Sort(ratios)
				b.ReportMetric(ratios[len(ratios)/2], "large/small")
			})
		}
	}
}
