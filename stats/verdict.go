package stats

import (
	"fmt"
	"math"
)

// Verdict is what a comparison says of an arm against its control.
type Verdict string

// The verdicts.
const (
	Faster       Verdict = "faster"       // the interval excludes 0, the effect is beyond the band and for the better
	Slower       Verdict = "slower"       // the same, for the worse
	Equivalent   Verdict = "equivalent"   // the 90 % interval lies inside the band
	Small        Verdict = "small"        // the interval excludes 0, but the effect is inside the band
	Inconclusive Verdict = "inconclusive" // none of these yet
)

// equivalenceAlpha makes the interval for equivalence a 90 % one: two
// one-sided tests at 5 %.
const equivalenceAlpha = 0.10

// mostBlocks bounds the blocks that a comparison asks for; it stands for "no
// number of blocks would do".
const mostBlocks = 1_000_000

// Rule says how differences become a verdict.
type Rule struct {
	// Alpha is the level of the interval: that of the look reached. 0 means
	// StudyAlpha, right for a study with a single look only.
	Alpha float64
	// Band is the practical band δ ≥ 0 on the scale of the differences: the
	// larger of the smallest effect that matters and the noise floor. 0 calls
	// any effect that can be told from 0 and never finds equivalence.
	Band float64
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
	Equivalence Interval // of θ, 90 %
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
// An effect that can be told from 0 is Faster or Slower beyond the band and
// Small inside it; one that cannot is Equivalent if its 90 % interval lies
// inside the band. The 90 % holds at one look: over all looks of a study an
// arm at the very edge of the band may be called equivalent more often than
// 5 % of the time, and at most 5 % a look.
func Compare(d []float64, r Rule) Comparison {
	if r.Alpha == 0 {
		r.Alpha = StudyAlpha
	}
	kept := finite(d)
	s := newSignedRank(kept)
	c := Comparison{
		N:           len(kept),
		Effect:      s.estimate(),
		Interval:    s.interval(r.Alpha),
		Equivalence: s.interval(equivalenceAlpha),
		P:           s.p(),
	}
	if lost := len(d) - len(kept); lost > 0 {
		c.Warnings = append(c.Warnings, fmt.Errorf("leaving out %d of %d blocks: not a finite difference", lost, len(d)))
	}
	c.Verdict = r.judge(c)
	if c.Verdict != Inconclusive {
		return c
	}
	c.Needs = r.needs(c)
	if r.Cap > 0 && c.N+c.Needs > r.Cap {
		c.Warnings = append(c.Warnings, fmt.Errorf("deciding would take about %d blocks: the cap is %d", c.N+c.Needs, r.Cap))
	}
	return c
}

func (r Rule) judge(c Comparison) Verdict {
	switch told := c.N > 0 && !c.Interval.Contains(0); {
	case told && math.Abs(c.Effect) <= r.Band:
		return Small
	case told && (c.Effect > 0) == r.HigherIsBetter:
		return Faster
	case told:
		return Slower
	case r.Band > 0 && c.Equivalence.Within(r.Band):
		return Equivalent
	}
	return Inconclusive
}

// needs is the number of further blocks N = ⌈n·(h/h*)²⌉ − n, where h is the
// half-width of an interval and h* the one that would decide if the effect
// stayed as it is: |θ| to exclude 0, δ − |θ| to lie inside the band. The
// cheaper of the two counts.
func (r Rule) needs(c Comparison) int {
	least := leastBlocks(r.Alpha) - c.N
	if least > 0 {
		return min(least, mostBlocks)
	}
	size := math.Abs(c.Effect)
	exclude := blocksToNarrow(c.N, c.Interval.Width()/2, size)
	inside := blocksToNarrow(c.N, c.Equivalence.Width()/2, r.Band-size)
	return max(1, min(exclude, inside)-c.N)
}

// blocksToNarrow is the number of blocks that would bring an interval of
// half-width h after n blocks down to the half-width goal.
func blocksToNarrow(n int, h, goal float64) int {
	if !(goal > 0) {
		return mostBlocks + n
	}
	return int(math.Min(math.Ceil(float64(n)*(h/goal)*(h/goal)), float64(mostBlocks+n)))
}
