package stats

import (
	"fmt"
	"math"
)

// Verdict is what a comparison says of an arm against its control.
type Verdict string

// The verdicts.
const (
	Faster       Verdict = "faster"       // the interval excludes 0, the effect is beyond threshold and floor, and for the better
	Slower       Verdict = "slower"       // the same, for the worse
	Equivalent   Verdict = "equivalent"   // the interval for equivalence lies inside the threshold, and so does the floor
	Small        Verdict = "small"        // the interval excludes 0, but effect and floor are inside the threshold
	Inconclusive Verdict = "inconclusive" // none of these yet
)

// mostBlocks bounds the blocks that a comparison asks for; it stands for "no
// number of blocks would do".
const mostBlocks = 1_000_000

// Rule says how differences become a verdict.
type Rule struct {
	// Alpha is the level of the interval: that of the look reached. 0 means
	// StudyAlpha, right for a study with a single look only.
	Alpha float64
	// Threshold ≥ 0 is the practical size, on the scale of the differences: the
	// smallest effect that matters. 0 never finds equivalence.
	Threshold float64
	// Floor ≥ 0 is the effect that the machine shows of an arm against itself
	// ([NoiseFloor]), on the same scale; 0 = not known. No difference counts that
	// is not beyond it, and no absence of one where it exceeds the threshold.
	Floor float64
	// Anytime asks for intervals that hold whenever one looks, by [EProcess],
	// where the number of blocks was not planned.
	Anytime bool
	// HigherIsBetter is set for throughput and the like.
	HigherIsBetter bool
	// Cap is the most blocks the study will run; needing more is a warning.
	// 0: no cap.
	Cap int
}

// Comparison is an arm against its control on one metric.
type Comparison struct {
	N           int      // blocks compared
	Effect      float64  // θ by Hodges-Lehmann; the logarithm of the ratio when the differences were of logarithms
	Interval    Interval // of θ, level 1 − Rule.Alpha
	Equivalence Interval // of θ, level 1 − 2·Rule.Alpha: two one-sided tests, each at Alpha
	P           float64  // exact two-sided, of "no effect"
	Verdict     Verdict
	Needs       int     // when inconclusive: about so many more blocks would decide, at most 1,000,000
	Warnings    []error // caveats, to be shown with the result
}

// Ratio is the effect as a ratio arm/control: e^θ. It has meaning only for
// differences of logarithms.
func (c Comparison) Ratio() float64 { return math.Exp(c.Effect) }

// RatioInterval is Interval as ratios; its ends may be 0 and +Inf.
func (c Comparison) RatioInterval() Interval {
	return Interval{math.Exp(c.Interval.Lo), math.Exp(c.Interval.Hi)}
}

// Compare judges the paired differences d, one a block, by the rule. Values
// that are not finite are left out with a warning.
//
// An effect whose interval excludes 0 is Faster or Slower beyond threshold and
// floor, and Small inside the threshold; one whose interval holds 0 is Equivalent
// if the interval for equivalence lies inside the threshold. Where the floor
// exceeds the threshold, nothing inside the floor is either. No verdict rests on
// an unbounded interval. The levels of both intervals follow the look's, so over
// all looks of a study an arm at the very edge of the threshold is called
// equivalent at most 5 % of the time.
func Compare(d []float64, r Rule) Comparison {
	if r.Alpha == 0 {
		r.Alpha = StudyAlpha
	}
	kept := finite(d)
	c := Comparison{N: len(kept)}
	if s := newSignedRank(kept); r.Anytime {
		c.Effect, c.Interval, c.Equivalence, c.P = s.estimate(), AnytimeInterval(kept, r.Alpha), AnytimeInterval(kept, 2*r.Alpha), anytimeP(kept)
	} else {
		c.Effect, c.Interval, c.Equivalence, c.P = s.estimate(), s.interval(r.Alpha), s.interval(2*r.Alpha), s.p()
	}
	if lost := len(d) - len(kept); lost > 0 {
		c.Warnings = append(c.Warnings, fmt.Errorf("leaving out %d of %d blocks: not a finite difference", lost, len(d)))
	}
	c.Verdict = r.judge(c)
	if c.Verdict != Inconclusive {
		return c
	}
	c.Needs = r.needs(c, kept)
	if r.Cap > 0 && c.N+c.Needs > r.Cap {
		c.Warnings = append(c.Warnings, fmt.Errorf("deciding would take about %d blocks: the cap is %d", c.N+c.Needs, r.Cap))
	}
	return c
}

func (r Rule) judge(c Comparison) Verdict {
	size, told := math.Abs(c.Effect), c.Interval.Bounded() && !c.Interval.Contains(0)
	switch {
	case told && size > max(r.Threshold, r.Floor) && (c.Effect > 0) == r.HigherIsBetter:
		return Faster
	case told && size > max(r.Threshold, r.Floor):
		return Slower
	case r.Floor > r.Threshold:
		return Inconclusive
	case told && size <= r.Threshold:
		return Small
	case r.Negligible(c):
		return Equivalent
	}
	return Inconclusive
}

// Negligible reports whether c shows that there is no effect of practical size: the
// interval for equivalence is inside the threshold, and so is the floor.
func (r Rule) Negligible(c Comparison) bool {
	return r.Threshold > 0 && r.Floor <= r.Threshold && c.Equivalence.Bounded() && c.Equivalence.Within(r.Threshold)
}

// needs is the number of further blocks N = ⌈n·(h/h*)²⌉ − n, where h is how far an
// interval reaches from the effect, and h* how far it may if the effect stays as it
// is: |θ| towards 0 to exclude it, threshold − |θ| away from 0 to lie inside it. The
// floor is taken to shrink as the intervals do. The cheaper of the two counts.
func (r Rule) needs(c Comparison, d []float64) int {
	n, half, narrow := c.N, c.Effect-c.Interval.Lo, c.Equivalence.Hi-c.Effect
	if c.Effect < 0 {
		half, narrow = c.Interval.Hi-c.Effect, c.Effect-c.Equivalence.Lo
	}
	if least := BlocksForFamily(1, r.Alpha); !c.Interval.Bounded() { // an anytime one takes more blocks than least
		if n < 2 {
			return max(1, least-n)
		}
		n = max(n, least)
		half, narrow = HalfWidthAfter(n, d, r.Alpha), HalfWidthAfter(n, d, 2*r.Alpha)
	}
	size := math.Abs(c.Effect)
	exclude := max(blocksToNarrow(n, half, size), blocksToNarrow(c.N, r.Floor, max(size, r.Threshold)))
	inside := max(blocksToNarrow(n, narrow, r.Threshold-size), blocksToNarrow(c.N, r.Floor, r.Threshold))
	return max(1, n-c.N, min(mostBlocks, min(exclude, inside)-c.N))
}

// blocksToNarrow is the number of blocks that would bring an interval of
// half-width h after n blocks down to the half-width goal.
func blocksToNarrow(n int, h, goal float64) int {
	if !(goal > 0) {
		return mostBlocks + n
	}
	return int(math.Min(math.Ceil(float64(n)*(h/goal)*(h/goal)), float64(mostBlocks+n)))
}
