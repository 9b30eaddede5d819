package alias_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tarehq/tare/load/internal/alias"
)

// Each index is drawn as often as its weight says, within five standard deviations.
func TestTable(t *testing.T) {
	const n = 100_000
	for _, weights := range [][]int{{1}, {1, 1}, {3, 0, 1}, {1, 2, 3, 4}, {1, 1_000}} {
		total := 0
		for _, w := range weights {
			total += w
		}
		drawn := make([]int, len(weights))
		table, rng := alias.New(weights), rand.New(rand.NewPCG(1, 2))
		for range n {
			drawn[table.Pick(rng)]++
		}
		for i, w := range weights {
			p := float64(w) / float64(total)
			if off := math.Abs(float64(drawn[i]) - n*p); off > 5*math.Sqrt(n*p*(1-p)) {
				t.Errorf("weights %v: index %d was drawn %d times of %d, want %.0f", weights, i, drawn[i], n, n*p)
			}
		}
	}
}
