//go:build unix

package rivals_test

import (
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"github.com/tarehq/tare/arms/weights/plan"
	"github.com/tarehq/tare/serve/compress"
)

// BenchmarkCompress compares serve/compress with gzhttp, without a chain, by turns: the answer
// of study weights to a request that asks for no encoding, and to those that ask for one. Both
// compress by the same package, at the same levels. ratio is the median over the turns of what
// compress takes in terms of what gzhttp takes, each less what the handler takes alone; low and
// high are between what it is with 95 % confidence.
func BenchmarkCompress(b *testing.B) {
	for _, encoding := range []string{"", "gzip", "zstd"} {
		name, requests := encoding, 20
		if encoding == "" {
			name, requests = "nothing", 2000
		}
		b.Run("asks="+name, func(b *testing.B) {
			answer := plan.NewAnswer()
			alone := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer.Write(w) })
			mw, err := compress.New(compress.Options{})
			if err != nil {
				b.Fatal(err)
			}
			sides := [3]http.Handler{alone, mw(alone), gzhttp.GzipHandler(alone)}
			r, w := httptest.NewRequest(http.MethodGet, "/orders/7", nil), &discards{http.Header{}}
			for _, f := range []string{"User-Agent", "Accept", "Origin", "Authorization", "X-Api-Key", "X-Forwarded-For"} { // as many as the study's
				r.Header.Set(f, "x")
			}
			if encoding != "" {
				r.Header.Set("Accept-Encoding", encoding)
			}
			var took [3][]float64
			var ratios []float64
			for turn := 0; b.Loop(); turn++ {
				var now [3]float64
				for i := range sides {
					i = (i + turn) % len(sides)
					start := time.Now()
					for range requests {
						clear(w.header)
						sides[i].ServeHTTP(w, r)
					}
					now[i] = float64(time.Since(start)) / float64(requests)
				}
				for i := range took {
					took[i] = append(took[i], now[i]-now[0])
				}
				ratios = append(ratios, (now[1]-now[0])/(now[2]-now[0]))
			}
			slices.Sort(ratios)
			n := float64(len(ratios))
			spread := 1.96 * math.Sqrt(n) / 2 // of the median's rank
			b.ReportMetric(median(ratios), "ratio")
			b.ReportMetric(ratios[max(int(n/2-spread), 0)], "low")
			b.ReportMetric(ratios[min(int(n/2+spread), len(ratios)-1)], "high")
			b.ReportMetric(median(took[1]), "tare-ns")
			b.ReportMetric(median(took[2]), "gzhttp-ns")
			b.ReportMetric(n, "turns")
		})
	}
}
