package rivals_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	echo5 "github.com/labstack/echo/v5"

	"github.com/tarehq/tare/serve/chain"
)

type passes struct{ next http.Handler }

func (h *passes) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.next.ServeHTTP(w, r) }

// layered makes handlers behind n layers that only call the next.
var layered = map[string]func(n int) http.Handler{
	"chain": func(n int) http.Handler {
		return chain.Must(chain.New(slices.Repeat([]func(http.Handler) http.Handler{func(next http.Handler) http.Handler { return &passes{next} }}, n)...).Then(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	},
	"echo5": func(n int) http.Handler {
		e := echo5.New()
		for range n {
			e.Use(func(next echo5.HandlerFunc) echo5.HandlerFunc {
				return func(c *echo5.Context) error { return next(c) }
			})
		}
		e.GET("/", func(*echo5.Context) error { return nil })
		return e
	},
}

// BenchmarkLayer reports what a layer that only calls the next takes: the median, over the
// turns, of what fifty take in terms of none, by the layer.
func BenchmarkLayer(b *testing.B) {
	for name, make := range layered {
		b.Run("by="+name, func(b *testing.B) {
			const layers, calls = 50, 100
			sides := [2]http.Handler{make(layers), make(0)}
			r, w := httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder()
			var each []float64
			b.ReportAllocs()
			for turn := 0; b.Loop(); turn++ {
				var took [2]time.Duration
				for _, i := range [2]int{turn % 2, 1 - turn%2} {
					start := time.Now()
					for range calls {
						sides[i].ServeHTTP(w, r)
					}
					took[i] = time.Since(start)
				}
				each = append(each, float64(took[0]-took[1])/layers/calls)
			}
			slices.Sort(each)
			b.ReportMetric(each[len(each)/2], "ns/layer")
		})
	}
}
