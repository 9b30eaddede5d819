package stats

import (
	"cmp"
	"math"
	"slices"
)

// HodgesLehmann is the median of the Walsh averages (d_i + d_j)/2, i ≤ j, of
// finite differences d: an estimate of their centre of symmetry that a quarter
// of wild blocks cannot carry away. It is NaN for an empty d.
//
// Source: Hodges and Lehmann, Estimates of location based on rank tests, 1963.
func HodgesLehmann(d []float64) float64 {
	return sortedQuantile(walshAverages(d), 0.5)
}

// SignedRankInterval is the two-sided confidence interval of level 1 − alpha
// for the centre of d, by inverting Wilcoxon's signed-rank test: of the M
// Walsh averages in order, the k-th from either end, where k is the largest
// number with P(W⁺ ≤ k−1) ≤ alpha/2. It is unbounded where d is too short for
// alpha, that is where 2^(1−n) > alpha.
//
// It excludes 0 with probability at most alpha if the sign of every difference
// is a fair coin, whatever the sizes: with ties (midranks) and zeros too,
// since a Walsh average of exactly 0 never counts against 0.
func SignedRankInterval(d []float64, alpha float64) Interval {
	return newSignedRank(d).interval(alpha)
}

// SignedRankP is the exact two-sided p-value of Wilcoxon's signed-rank test
// that d is symmetric about 0: the share of all sign patterns that are at
// least as extreme, doubled for the other side. Equal sizes share their
// midrank; zeros take part in the ranking and count half to either side. It is
// 1 for an empty d.
//
// An interval that excludes 0 at alpha implies p ≤ alpha. The reverse holds
// unless a Walsh average is exactly 0.
func SignedRankP(d []float64) float64 {
	rank2 := doubledMidranks(d)
	return signedRankP(d, rank2, lowerLaw(rank2))
}

// signedRankP is SignedRankP with the doubled midranks of d and their law at
// hand.
func signedRankP(d []float64, rank2 []int, law []float64) float64 {
	var plus, total int
	signed := make([]int, 0, len(d))
	for i, v := range d {
		if v == 0 {
			continue
		}
		signed = append(signed, rank2[i])
		total += rank2[i]
		if v > 0 {
			plus += rank2[i]
		}
	}
	if len(signed) < len(d) {
		law = lowerLaw(signed) // zeros have no sign to flip
	}
	return min(1, 2*sum(law[:min(plus, total-plus)+1]))
}

// signedRank is what estimate, intervals and p-value of some differences are
// read from.
type signedRank struct {
	d     []float64
	rank2 []int     // doubled midranks of |d|
	walsh []float64 // Walsh averages, ascending
	law   []float64 // P(2W⁺ = i) with every sign a fair coin, lower half
}

func newSignedRank(d []float64) signedRank {
	rank2 := doubledMidranks(d)
	return signedRank{d: d, rank2: rank2, walsh: walshAverages(d), law: lowerLaw(rank2)}
}

func (s signedRank) estimate() float64 { return sortedQuantile(s.walsh, 0.5) }

func (s signedRank) p() float64 { return signedRankP(s.d, s.rank2, s.law) }

func (s signedRank) interval(alpha float64) Interval {
	k := 0
	var tail float64
	for i, p := range s.law {
		if tail += p; tail > alpha/2 {
			break
		}
		if i%2 == 0 { // W⁺ = i/2 whole: the k-th average may be that one
			k = i/2 + 1
		}
	}
	if k == 0 || len(s.walsh) == 0 {
		return Interval{math.Inf(-1), math.Inf(1)}
	}
	k = min(k, (len(s.walsh)+1)/2)
	return Interval{s.walsh[k-1], s.walsh[len(s.walsh)-k]}
}

// walshAverages are all (d_i + d_j)/2, i ≤ j, in ascending order.
func walshAverages(d []float64) []float64 {
	w := make([]float64, 0, len(d)*(len(d)+1)/2)
	for i, v := range d {
		for _, u := range d[i:] {
			w = append(w, v/2+u/2)
		}
	}
	slices.Sort(w)
	return w
}

// doubledMidranks are the ranks of |d_i| from 1, equal ones sharing their mean,
// times two so that they are whole.
func doubledMidranks(d []float64) []int {
	order := make([]int, len(d))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(math.Abs(d[a]), math.Abs(d[b])) })
	rank2 := make([]int, len(d))
	for i := 0; i < len(order); {
		j := i + 1
		for j < len(order) && math.Abs(d[order[j]]) == math.Abs(d[order[i]]) {
			j++
		}
		for _, at := range order[i:j] {
			rank2[at] = i + 1 + j // first rank i+1, last rank j
		}
		i = j
	}
	return rank2
}

// lowerLaw is the lower half of the distribution of the sum of those weights
// whose fair coin shows heads: P(sum = i) for i up to half the total. The
// upper half is its mirror image. It takes time in the cube of the number of
// weights when they are ranks, and is exact up to 53 of them.
func lowerLaw(weights []int) []float64 {
	total, step := 0, 2
	for _, w := range weights {
		total += w
		if w%2 == 1 {
			step = 1
		}
	}
	law := make([]float64, total/2+1)
	law[0] = 1
	last := total / 2 / step * step // doubled ranks without ties leave every odd sum empty
	top := 0                        // highest sum possible so far
	for _, w := range weights {
		top = min(top+w, last)
		for i := top; i >= w; i -= step {
			law[i] = (law[i] + law[i-w]) / 2
		}
		for i := min(top, w-step); i >= 0; i -= step {
			law[i] /= 2
		}
	}
	return law
}
