package stats_test

import (
	"math"
	"testing"

	"github.com/tarehq/tare/stats"
)

// identicalArms are blocks of k values that differ by normal noise of standard
// deviation sd.
func identicalArms(blocks, k int, sd float64, stream uint64) [][]float64 {
	rng := seeded(stream)
	rows := make([][]float64, blocks)
	for b := range rows {
		level := 3 + rng.NormFloat64() // what a block adds to all arms must cancel
		for range k {
			rows[b] = append(rows[b], level+sd*rng.NormFloat64())
		}
	}
	return rows
}

// The Hodges-Lehmann estimate of n normal differences of standard deviation s
// has a standard error near s·√(π/3/n), so the floor is near 1.96 of that.
func TestNoiseFloorOfNormalNoise(t *testing.T) {
	const sd = 0.02
	for _, k := range []int{2, 4} {
		for _, n := range []int{8, 30} {
			got := stats.NoiseFloor(identicalArms(400, k, sd, uint64(k)), n, 4000, seeded(9))
			want := 1.96 * sd * math.Sqrt2 * math.Sqrt(math.Pi/3/float64(n))
			if math.Abs(got-want) > 0.1*want {
				t.Errorf("%d arms, %d blocks: floor %.5f, want %.5f ± 10 %%", k, n, got, want)
			}
		}
	}
}

// A study's own twin: the same blocks, the signs at random.
func TestNoiseFloorOfTwinIsSignFlips(t *testing.T) {
	rows := identicalArms(10, 2, 1, 5)
	d := make([]float64, len(rows))
	for i, r := range rows {
		d[i] = r[0] - r[1]
	}
	var effects []float64
	flips(d, func(f []float64) { effects = append(effects, math.Abs(stats.HodgesLehmann(f))) })
	want := stats.Quantile(effects, 0.95)
	got := stats.NoiseFloor(rows, len(rows), 5000, seeded(6))
	if math.Abs(got-want) > 0.05*want {
		t.Errorf("floor %.4f, want %.4f ± 5 %%", got, want)
	}
}

func TestNoiseFloorMissing(t *testing.T) {
	nan := math.NaN()
	if got := stats.NoiseFloor([][]float64{{1}, {nan, 2}, {}}, 8, 200, seeded(1)); !math.IsNaN(got) {
		t.Errorf("no pair: floor %v, want NaN", got)
	}
	rows := [][]float64{{1, nan, 1}, {2, 2}, {nan, nan, 3}}
	if got := stats.NoiseFloor(rows, 8, 200, seeded(1)); got != 0 {
		t.Errorf("equal pairs: floor %v, want 0", got)
	}
	if rows[0][0] != 1 || rows[1][0] != 2 || !math.IsNaN(rows[2][0]) {
		t.Errorf("rows changed: %v", rows)
	}
}

func TestNoiseFloorOfTooFewSubStudies(t *testing.T) {
	rows := identicalArms(10, 3, 1, 7)
	want := stats.NoiseFloor(rows, 8, stats.LeastSubStudies, seeded(8))
	if got := stats.NoiseFloor(rows, 8, 1, seeded(8)); got != want {
		t.Errorf("floor of 1 sub-study asked for = %v, want that of %d: %v", got, stats.LeastSubStudies, want)
	}
}
