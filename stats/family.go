package stats

import (
	"cmp"
	"slices"
)

// Holm says which hypotheses to reject, in the order of their p-values p, so
// that the probability of rejecting any true one is at most alpha, however the
// p-values depend on each other. Each rejected one has the level that its p-value was
// compared with, alpha/len(p) to alpha; the others have 0. A NaN is never rejected but
// counts as a member of the family.
//
// Source: Holm, A simple sequentially rejective multiple test procedure, 1979.
func Holm(p []float64, alpha float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(-p[b], -p[a]) }) // a NaN comes last
	levels := make([]float64, len(p))
	for i, at := range order {
		level := alpha / float64(len(p)-i)
		if !(p[at] <= level) {
			break
		}
		levels[at] = level
	}
	return levels
}

// BlocksForFamily is the number of blocks that a family of m comparisons needs
// at least before any of them can be distinguished at alpha: n ≥ 1 + log₂(m/alpha).
// Fewer blocks have too few sign patterns, whatever the effect.
func BlocksForFamily(m int, alpha float64) int {
	n := 1
	for leastAlpha(n) > alpha/float64(max(m, 1)) {
		n++
	}
	return n
}

// Share is the level of each of m hypotheses of which, if all are true, any is rejected with
// probability alpha at most (Bonferroni); or the lowest at which n blocks can reject, if that is
// higher: so few blocks would else say nothing, however large the effect.
func Share(m int, alpha float64, n int) float64 {
	return max(alpha/float64(max(m, 1)), leastAlpha(n))
}
