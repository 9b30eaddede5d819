package stats

import (
	"math"
	"math/rand/v2"
	"slices"
)

// LeastSubStudies is the number of sub-studies below which [NoiseFloor] does
// not go.
const LeastSubStudies = 200

// NoiseFloor is the effect that an arm shows against itself in a study of n
// blocks: the 95 % quantile of |θ| over subs re-randomised A/A sub-studies (at
// least [LeastSubStudies] of them).
//
// blocks holds, a row a block, the values of k ≥ 2 identical arms on the scale
// on which arms are compared: ln(metric) for ratios, the metric itself for
// differences. The floor is on that scale too. Rows may differ in length; NaN
// marks a missing value, and a row with fewer than two values is skipped.
//
// A sub-study draws n blocks, without replacement as long as there are enough,
// and in each of them two of the arms at random, the first as the arm and the
// second as the control. Where a study ran its control twice in every block
// (k = 2) and n is the number of its blocks, the draw comes down to flipping
// signs, and the floor is that study's own.
//
// It is NaN if no block has two values, or n < 1.
func NoiseFloor(blocks [][]float64, n, subs int, rng *rand.Rand) float64 {
	rows := make([][]float64, 0, len(blocks))
	for _, b := range blocks {
		if row := finite(b); len(row) >= 2 {
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 || n < 1 {
		return math.NaN()
	}
	effects := make([]float64, max(subs, LeastSubStudies))
	d := make([]float64, n)
	for i := range effects {
		drawSubStudy(d, rows, rng)
		effects[i] = math.Abs(HodgesLehmann(d))
	}
	return Quantile(effects, 0.95)
}

// drawSubStudy fills d with the differences of a random A/A study on rows,
// which it reorders.
func drawSubStudy(d []float64, rows [][]float64, rng *rand.Rand) {
	for i := range d {
		// Fisher and Yates's shuffle, as far as it is needed and once more
		// from the start when the rows are used up.
		at := i % len(rows)
		j := at + rng.IntN(len(rows)-at)
		rows[at], rows[j] = rows[j], rows[at]
		row := rows[at]
		a := rng.IntN(len(row))
		b := rng.IntN(len(row) - 1)
		if b >= a {
			b++
		}
		d[i] = row[a] - row[b]
	}
}

// finite is x without NaN and infinities; x itself if there are none.
func finite(x []float64) []float64 {
	bad := func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }
	if !slices.ContainsFunc(x, bad) {
		return x
	}
	return slices.DeleteFunc(slices.Clone(x), bad)
}
