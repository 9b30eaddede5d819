package stats_test

import (
	"testing"

	"github.com/tarehq/tare/stats"
)

// One heap is taken for two in some of a hundred cases, two that are far apart nearly
// always.
func TestHeaps(t *testing.T) {
	const runs = 500
	for _, n := range []int{8, 12, 18, 30} {
		rng := seeded(uint64(41 + n))
		var one, two int
		for range runs {
			plain, mixed := make([]float64, n), make([]float64, n)
			for i := range plain {
				plain[i] = rng.NormFloat64()
				mixed[i] = 0.01 * (rng.NormFloat64() - rng.NormFloat64())
				if i < n/4 {
					mixed[i] += 0.15
				}
			}
			if _, _, ok := stats.Heaps(plain); ok {
				one++
			}
			if low, high, ok := stats.Heaps(mixed); ok && low.N == n-n/4 && high.Median > 0.1 {
				two++
			}
		}
		t.Logf("%d values: %d of %d normal samples taken for two heaps, %d mixed ones", n, one, runs, two)
		if one > runs/30 || two < runs*3/4 {
			t.Errorf("%d values: %d of %d normal samples taken for two heaps, and %d of those that are; want few and most", n, one, runs, two)
		}
	}
	for _, d := range [][]float64{nil, {1, 1, 1, 9, 9, 9}, make([]float64, 12), {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5}} {
		if _, _, ok := stats.Heaps(d); ok {
			t.Errorf("Heaps(%v): two, want none", d)
		}
	}
}
