// Package toggle measures in benchmarks what something costs a process that can be
// switched on and off while the process goes on.
package toggle

import (
	"math/rand/v2"
	"testing"

	"github.com/tarehq/tare/stats"
)

// Compare measures in pairs, with it and without, in random order, a pair an
// iteration. It reports how much more was measured with it, in percent: the
// Hodges-Lehmann estimate and the ends of the 95 % signed-rank interval.
func Compare(b *testing.B, measure func(on bool) float64) {
	b.Helper()
	var more []float64
	for b.Loop() {
		var got [2]float64
		first := rand.IntN(2)
		for _, on := range []int{first, 1 - first} {
			got[on] = measure(on == 1)
		}
		more = append(more, 100*(got[1]/got[0]-1))
	}
	in := stats.SignedRankInterval(more, 0.05)
	b.ReportMetric(stats.HodgesLehmann(more), "%more")
	b.ReportMetric(in.Lo, "%low")
	b.ReportMetric(in.Hi, "%high")
	b.ReportMetric(0, "ns/op")
}
