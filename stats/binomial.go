package stats

import "math"

// ClopperPearson is the exact confidence interval of level 1 − alpha for a
// probability of which k of n independent tries were hits, 0 ≤ k ≤ n. It is
// [0, 1] for n = 0.
//
// Source: Clopper and Pearson, 1934. The ends are where the binomial tail
// beyond k is alpha/2, found by bisection.
func ClopperPearson(k, n int, alpha float64) Interval {
	i := Interval{0, 1}
	if k > 0 {
		i.Lo = bisect(func(p float64) bool { return 1-binomialTail(k-1, n, p) < alpha/2 })
	}
	if k < n {
		i.Hi = bisect(func(p float64) bool { return binomialTail(k, n, p) > alpha/2 })
	}
	return i
}

// bisect is the p in [0,1] up to which below holds.
func bisect(below func(p float64) bool) float64 {
	lo, hi := 0.0, 1.0
	for range 60 { // beyond the precision of a float64 near 1
		if mid := (lo + hi) / 2; below(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return (lo + hi) / 2
}

// binomialTail is P(at most k hits in n tries of probability p), 0 < p < 1.
func binomialTail(k, n int, p float64) float64 {
	logN, _ := math.Lgamma(float64(n) + 1)
	var tail float64
	for i := 0; i <= k; i++ {
		logI, _ := math.Lgamma(float64(i) + 1)
		logRest, _ := math.Lgamma(float64(n-i) + 1)
		tail += math.Exp(logN - logI - logRest + float64(i)*math.Log(p) + float64(n-i)*math.Log1p(-p))
	}
	return min(tail, 1)
}
