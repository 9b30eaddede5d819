package stats

import (
	"cmp"
	"math"
	"slices"
)

// What Steady asks.
const (
	// LeastSlices is the number of values below which a series is not judged.
	LeastSlices = 10
	// MostSlices is the number of values above which neighbours are averaged
	// first: the test and the slope look at all pairs. An hour in slices of
	// 200 ms took minutes and gigabytes, a day would take 700 GB.
	MostSlices = 1000
	// TrendAlpha is the level of the Mann-Kendall test.
	TrendAlpha = 0.05
	// DriftTolerance is the relative change across a series that passes as
	// steady even where the trend is significant. Slices of a trial are
	// correlated (0.8 is common), so that the test alone would call a third
	// to a half of all quiet trials unsteady.
	DriftTolerance = 0.05
)

// Steadiness is whether a series has settled.
type Steadiness struct {
	Cut   int     // leading values to leave out
	Tau   float64 // Kendall's tau of the rest against time
	P     float64 // two-sided p-value of "no trend" in the rest
	Drift float64 // relative change across the rest, signed
	OK    bool    // settled
}

// Steady judges the slices x of a trial, a rate or a time each, in order: cut
// what [MSER5] says, then look for a trend in the rest by [MannKendall] and for
// its size by Theil and Sen's slope. The series is steady if it has
// [LeastSlices] values or more and the rest has no trend, or one that changes
// it by no more than [DriftTolerance].
//
// Where MSER-5 finds no cut in the first half, the change of the median from
// before its cut to after it counts as drift: beyond the tolerance the series
// never settled; below it there was nothing to cut, such as after one wild
// slice.
//
// More than [MostSlices] values are judged by the means of as many neighbours as
// bring them down to that, without the few that are left over at the end.
func Steady(x []float64) Steadiness {
	if group := (len(x) + MostSlices - 1) / MostSlices; group > 1 {
		s := Steady(batchMeans(x, group))
		s.Cut *= group
		return s
	}
	cut, ok := MSER5(x)
	if !ok && cut > 0 {
		if shift := relativeChange(Median(x[:cut]), Median(x[cut:])); math.Abs(shift) > DriftTolerance {
			s := Steadiness{Cut: cut, Drift: shift}
			s.Tau, s.P = MannKendall(x[cut:])
			return s
		}
		cut = 0
	}
	rest := x[cut:]
	s := Steadiness{Cut: cut}
	s.Tau, s.P = MannKendall(rest)
	if level := Median(rest); len(rest) > 1 {
		s.Drift = relativeChange(level, level+theilSen(rest)*float64(len(rest)-1))
	}
	s.OK = len(x) >= LeastSlices && (s.P >= TrendAlpha || math.Abs(s.Drift) <= DriftTolerance)
	return s
}

// relativeChange is that from one value to another; 0 between equal ones, even
// zeros.
func relativeChange(from, to float64) float64 {
	if from == to {
		return 0
	}
	return (to - from) / math.Abs(from)
}

// MSER5 is the number of leading values to discard from a series that starts
// away from its steady state: the cut that minimises the squared standard
// error of the mean of what is left. The values are batched in fives as long
// as that leaves ten batches; shorter series are taken value by value (plain
// MSER), since slices of a trial are batch means already. The last five
// batches are never cut away. ok is false if the best cut lies beyond the
// first half: then the series never settled, and is too short to say more.
//
// Source: White, An effective truncation heuristic for bias reduction in
// simulation output, 1997; White, Cobb and Spratt, 2000, for the batches.
func MSER5(x []float64) (cut int, ok bool) {
	size := 5
	if len(x) < 10*size {
		size = 1
	}
	batches := batchMeans(x, size)
	best, at := math.Inf(1), 0
	for d := 0; d <= max(0, len(batches)-5); d++ {
		rest := batches[d:]
		m := mean(rest)
		var squares float64
		for _, v := range rest {
			squares += (v - m) * (v - m)
		}
		if mser := squares / float64(len(rest)) / float64(len(rest)); mser < best {
			best, at = mser, d
		}
	}
	return at * size, len(x) > 0 && 2*at <= len(batches)
}

// batchMeans are the means of each size values of x, the last of which are left out
// where they are fewer.
func batchMeans(x []float64, size int) []float64 {
	batches := make([]float64, len(x)/size)
	for i := range batches {
		batches[i] = mean(x[i*size : (i+1)*size])
	}
	return batches
}

// exactKendall is the longest series whose null distribution is counted out.
const exactKendall = 50

// MannKendall tests the series x for a monotone trend: Kendall's tau-b against
// time, in [−1,1], and its two-sided p-value, exact up to 50 values without
// ties, by the normal law corrected for ties otherwise. It is (0, 1) for a
// constant series and for fewer than two values.
//
// Source: Mann 1945; Kendall, Rank correlation methods, 1970.
func MannKendall(x []float64) (tau, p float64) {
	n := len(x)
	var up, down int
	for i, v := range x {
		for _, u := range x[i+1:] {
			switch cmp.Compare(u, v) {
			case 1:
				up++
			case -1:
				down++
			}
		}
	}
	if up+down == 0 {
		return 0, 1
	}
	pairs := n * (n - 1) / 2
	tau = float64(up-down) / math.Sqrt(float64(pairs)*float64(up+down))
	if up+down == pairs && n <= exactKendall {
		return tau, min(1, 2*sum(inversionLaw(n)[:min(up, down)+1]))
	}
	variance := float64(n*(n-1)*(2*n+5)) - tieVariance(x)
	z := float64(up-down) / math.Sqrt(variance/18)
	return tau, math.Erfc(math.Abs(z) / math.Sqrt2)
}

// tieVariance is what ties take from 18 times the variance of Kendall's S.
func tieVariance(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	var total int
	for i := 0; i < len(x); {
		j := i + 1
		for j < len(x) && x[j] == x[i] {
			j++
		}
		t := j - i
		total += t * (t - 1) * (2*t + 5)
		i = j
	}
	return float64(total)
}

// inversionLaw is the distribution of the number of inversions of a random
// permutation of n: the sum of uniform numbers on 0…0, 0…1, …, 0…n−1.
func inversionLaw(n int) []float64 {
	law := make([]float64, n*(n-1)/2+1)
	law[0] = 1
	next := make([]float64, len(law))
	for i := 2; i <= n; i++ {
		for k := 0; k <= i*(i-1)/2; k++ {
			var window float64 // the last i entries of law
			for j := max(0, k-i+1); j <= k; j++ {
				window += law[j]
			}
			next[k] = window / float64(i)
		}
		law, next = next, law
	}
	return law
}

// theilSen is the median slope between any two of the values of x, taken one
// unit of time apart.
func theilSen(x []float64) float64 {
	slopes := make([]float64, 0, len(x)*(len(x)-1)/2)
	for i, v := range x {
		for j := i + 1; j < len(x); j++ {
			slopes = append(slopes, (x[j]-v)/float64(j-i))
		}
	}
	return Median(slopes)
}
