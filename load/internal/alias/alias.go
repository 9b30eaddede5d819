// Package alias draws indexes in given proportions.
package alias

import "math/rand/v2"

// Table draws indexes in given proportions in constant time (Walker's
// alias method, as arranged by Vose). Safe for concurrent use.
type Table struct {
	keep  []float64 // chance to stay with the column drawn
	other []int     // the index taken else
}

// New is a table that draws i with a chance of weights[i] in their sum: none is less than
// 0, one at least more.
func New(weights []int) Table {
	n := len(weights)
	t := Table{keep: make([]float64, n), other: make([]int, n)}
	total := 0
	for _, w := range weights {
		total += w
	}
	var small, large []int
	for i, w := range weights {
		t.keep[i], t.other[i] = float64(w)*float64(n)/float64(total), i
		if t.keep[i] < 1 {
			small = append(small, i)
		} else {
			large = append(large, i)
		}
	}
	for len(small) > 0 && len(large) > 0 {
		s, l := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		t.other[s] = l
		if t.keep[l] -= 1 - t.keep[s]; t.keep[l] < 1 {
			large, small = large[:len(large)-1], append(small, l)
		}
	}
	return t
}

// Pick draws an index.
func (t *Table) Pick(rng *rand.Rand) int {
	i := rng.IntN(len(t.keep))
	if rng.Float64() < t.keep[i] {
		return i
	}
	return t.other[i]
}
