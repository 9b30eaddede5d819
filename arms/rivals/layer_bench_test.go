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

// BenchmarkLayer reports what a layer that only calls the next takes, and what goes with the
// first of them: in a chain its state of the request, as there are keys in this program. The
// first is what sixty take in terms of ten, by the layer; the second what ten take in terms of
// none, less ten layers. Each is the median over the turns.
func BenchmarkLayer(b *testing.B) {
	for name, make := range layered {
		b.Run("by="+name, func(b *testing.B) {
			const calls = 100
			depths := [3]int{0, 10, 60}
			var sides [len(depths)]http.Handler
			for i, n := range depths {
				sides[i] = make(n)
			}
			r, w := httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder()
			var layers, firsts []float64
			for turn := 0; b.Loop(); turn++ {
				var took [len(depths)]float64 // ns a call
				for k := range depths {
					i := (turn + k) % len(depths)
					start := time.Now()
					for range calls {
						sides[i].ServeHTTP(w, r)
					}
					took[i] = float64(time.Since(start)) / calls
				}
				layer := (took[2] - took[1]) / float64(depths[2]-depths[1])
				layers = append(layers, layer)
				firsts = append(firsts, took[1]-took[0]-layer*float64(depths[1]))
			}
			slices.Sort(layers)
			slices.Sort(firsts)
			b.ReportMetric(layers[len(layers)/2], "ns/layer")
			b.ReportMetric(firsts[len(firsts)/2], "ns/chain")
		})
	}
}
