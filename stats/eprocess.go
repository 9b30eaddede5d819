package stats

import (
	"math"
	"slices"
)

// EProcess is evidence against "no effect" that may be looked at after every
// block, and stopped by whatever it shows: if the signs of the differences are
// fair coins, the probability that it ever reaches 1/alpha is at most alpha
// (Ville's inequality). The zero value is ready to use. It is not safe for
// concurrent use.
//
// Eight gamblers start with one unit each and bet before the sign of a
// difference d_i is known, but knowing its size, the share
// tanh(λ|d_i|/s_i), at most 0.95, of what they have, with
// s_i = median(|d_1|, …, |d_i|)/0.6745; four on +, four on −, λ one of ¼, ½, 1
// and 2. The evidence is their mean wealth. It finds clear effects in about as
// many blocks as the planned [Looks] do; near the limit of what 30 blocks can
// show it finds fewer (74 % instead of 87 % in one simulation). That is the
// price of looking at any time.
type EProcess struct {
	sizes  []float64                // |d| so far, ascending
	wealth [2][len(lambdas)]float64 // logarithms; bets on +, on −
	peak   float64                  // highest mean wealth so far
}

// The gamblers' boldness λ, their largest bet, and the standard deviations of
// a normal law in its median absolute deviation.
var lambdas = [...]float64{0.25, 0.5, 1, 2}

const (
	largestBet   = 0.95
	normalMedian = 0.6745
)

// Add takes in the difference of one more block; it must be finite.
func (e *EProcess) Add(d float64) {
	size := math.Abs(d)
	at, _ := slices.BinarySearch(e.sizes, size)
	e.sizes = slices.Insert(e.sizes, at, size)
	if d == 0 {
		return // no sign, no bet
	}
	scale := sortedQuantile(e.sizes, 0.5) / normalMedian
	for i, lambda := range lambdas {
		bet := min(math.Tanh(lambda*size/scale), largestBet) // scale 0: all but zeros are huge
		win, lose := math.Log1p(bet), math.Log1p(-bet)
		if d < 0 {
			win, lose = lose, win
		}
		e.wealth[0][i] += win
		e.wealth[1][i] += lose
	}
	e.peak = max(e.peak, e.Value())
}

// N is the number of differences taken in.
func (e *EProcess) N() int { return len(e.sizes) }

// Value is the evidence now: 1 at the start, the larger the stronger.
func (e *EProcess) Value() float64 {
	var total float64
	for _, side := range e.wealth {
		for _, w := range side {
			total += math.Exp(w)
		}
	}
	return total / float64(2*len(lambdas))
}

// Rejects reports whether the evidence has ever reached 1/alpha.
func (e *EProcess) Rejects(alpha float64) bool { return e.peak >= 1/alpha }

// AnytimeInterval is the interval of level 1 − alpha for the centre of the finite
// differences d, in the order of their blocks, that holds however often one looks:
// from the lowest to the highest centre at which an [EProcess] of what is left
// has never rejected. It is unbounded with too few blocks to reject anything.
func AnytimeInterval(d []float64, alpha float64) Interval {
	if len(d) == 0 {
		return Interval{math.Inf(-1), math.Inf(1)}
	}
	center, reach := HodgesLehmann(d), 0.0
	for _, v := range d {
		reach = max(reach, math.Abs(v-center))
	}
	end := func(side float64) float64 {
		rejects := func(at float64) bool { return anytimePeak(d, center+side*at) >= 1/alpha }
		out := farthest * reach
		if reach == 0 {
			return center // nothing but one value
		}
		if !rejects(out) {
			return side * math.Inf(1)
		}
		// Down from where everything lies on one side, so that the outermost end counts.
		in := out
		for step := range anytimeSteps {
			in = out * float64(anytimeSteps-1-step) / anytimeSteps
			if !rejects(in) {
				break
			}
			out = in
		}
		for range 24 {
			if mid := (in + out) / 2; rejects(mid) {
				out = mid
			} else {
				in = mid
			}
		}
		return center + side*out
	}
	i := Interval{end(-1), end(1)}
	if reach == 0 && anytimePeak(d, center+1) < 1/alpha {
		return Interval{math.Inf(-1), math.Inf(1)}
	}
	return i
}

// How far out, in the largest distances from the centre, an end of an anytime
// interval is looked for, and by how many steps.
const (
	farthest     = 4
	anytimeSteps = 32
)

// anytimePeak is the most evidence that d has ever given against the centre at.
func anytimePeak(d []float64, at float64) float64 {
	var e EProcess
	e.peak = 1
	for _, v := range d {
		e.Add(v - at)
	}
	return e.peak
}

// anytimeP is the p-value of no effect that holds however often one looks.
func anytimeP(d []float64) float64 { return min(1, 1/anytimePeak(d, 0)) }
