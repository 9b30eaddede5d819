// Package stats compares paired measurements.
//
// The model: an arm and a control are each measured once in every block, close
// together in time and in random order. For a block b the paired difference is
// d_b = ln(metric of the arm) − ln(metric of the control), and everything here
// works on the slice of these differences, one a block. Nothing is assumed of
// their distribution: the order within a block was drawn at random, so under
// the null hypothesis every d_b may as well have had the other sign, and the
// tests count sign patterns. A metric that may be zero is compared by plain
// differences instead, with the same functions.
//
// The words: an effect is the Hodges-Lehmann estimate θ of the differences, an
// [Interval] is what the data leave possible for it, a [Look] is a number of
// blocks after which a study may stop, the noise floor is the effect that an
// arm shows against itself, a [Verdict] is what all of them say together. A
// block without a value is NaN where a function says so, and must be left out
// elsewhere.
//
// Beside the comparison stand the checks that a trial must pass before its
// number counts ([Steady], [Little]).
//
// Promised: intervals and p-values are exact for any number of blocks, with
// ties and zeros, and reject a true null hypothesis no more often than alpha.
// Not promised: anything about differences that were not randomised; a study
// that ran all of one arm before all of the other fools every function here.
// Do not feed it requests, or slices of a trial: they are correlated, and only
// a fresh process in a fresh block is a replication.
//
// All functions are safe for concurrent use and leave their arguments as they
// were; all types but [EProcess] are plain values. Caveats of a result are
// values on it, called Warnings.
package stats

import (
	"math"
	"slices"
)

// Interval is a closed interval. Its ends may be infinite: then there were too
// few blocks to bound that side.
type Interval struct {
	Lo float64 `json:"lo"`
	Hi float64 `json:"hi"`
}

// Contains reports whether x lies in the interval, ends included.
func (i Interval) Contains(x float64) bool { return i.Lo <= x && x <= i.Hi }

// Within reports whether the whole interval lies between −band and +band.
func (i Interval) Within(band float64) bool { return -band <= i.Lo && i.Hi <= band }

// Bounded reports whether both ends are finite.
func (i Interval) Bounded() bool { return !math.IsInf(i.Width(), 0) && !math.IsNaN(i.Width()) }

// Width is the distance between the ends; +Inf for an unbounded interval.
func (i Interval) Width() float64 { return i.Hi - i.Lo }

// Median is the middle value of x, or the mean of the two middle ones; NaN for
// an empty x.
func Median(x []float64) float64 { return Quantile(x, 0.5) }

// Quantile is the q-quantile of x, q in [0,1], interpolated linearly between
// the two nearest order statistics (definition 7 of Hyndman and Fan, 1996). It
// is NaN for an empty x.
func Quantile(x []float64, q float64) float64 {
	return sortedQuantile(slices.Sorted(slices.Values(x)), q)
}

// sortedQuantile is Quantile of values in ascending order.
func sortedQuantile(x []float64, q float64) float64 {
	if len(x) == 0 || math.IsNaN(q) {
		return math.NaN()
	}
	pos := min(max(q, 0), 1) * float64(len(x)-1)
	i := int(pos)
	if i+1 >= len(x) {
		return x[len(x)-1]
	}
	if x[i] == x[i+1] {
		return x[i] // also where both are infinite
	}
	f := pos - float64(i)
	return x[i]*(1-f) + x[i+1]*f
}

func sum(x []float64) float64 {
	var s float64
	for _, v := range x {
		s += v
	}
	return s
}

func mean(x []float64) float64 { return sum(x) / float64(len(x)) }
