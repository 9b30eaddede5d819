package verdict

import (
	"fmt"
	"math"

	"github.com/tarehq/tare/lab/verdict/estimate"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/unit"
)

// Deciding is the interval that a verdict rests on. That for equivalence has
// another level than that of the effect: two one-sided tests, each at the look's. So has
// that of a comparison of several, which were decided on together: its step in Holm's
// procedure.
type Deciding struct {
	Level float64 `json:"level"` // such as 0.98
	// Lo and Hi are relative changes on the ratio scale, else in the metric's base
	// unit; absent where the interval is unbounded, and then nothing is decided.
	Lo      *float64 `json:"lo,omitzero"`
	Hi      *float64 `json:"hi,omitzero"`
	Anytime bool     `json:"anytime,omitzero"` // it holds whenever one looks
}

// Deciding returns the interval behind the verdict.
func (c *Comparison) Deciding() Deciding {
	if c.Verdict == stats.Equivalent {
		return c.decidedBy(c.Effect.Equivalence, 2*c.Alpha)
	}
	if c.Told() && c.step > 0 && c.step < c.Alpha {
		return c.decidedBy(stats.Compare(c.Paired, stats.Rule{Alpha: c.step, Anytime: c.Anytime}).Interval, c.step)
	}
	return c.decidedBy(c.Effect.Interval, c.Alpha)
}

// decided is the difference in the metric's unit with an interval of the level that decided.
func (c *Comparison) decided() Estimate {
	if c.step == 0 {
		return c.Difference
	}
	return estimate.Centre(c.plain, c.step, c.Anytime)
}

// Deciding returns the interval behind the direction of a check of an effect: where that there is
// none contradicts it, the interval for equivalence.
func (r *CheckResult) Deciding() Deciding {
	c := r.Comparison
	if r.Direction.Verdict == Contradicted && c.negligible() {
		return c.decidedBy(c.Effect.Equivalence, 2*c.Alpha)
	}
	return c.Deciding()
}

func (c *Comparison) decidedBy(i stats.Interval, alpha float64) Deciding {
	d := Deciding{Level: estimate.Level(alpha), Anytime: c.Anytime}
	if !i.Bounded() {
		return d
	}
	if c.Scale == Ratio {
		i = stats.Interval{Lo: math.Expm1(i.Lo), Hi: math.Expm1(i.Hi)}
	}
	d.Lo, d.Hi = &i.Lo, &i.Hi
	return d
}

// Text says the interval for people, in the units of the comparison it is of, such as
// "98 % interval −0.2 to +0.3 %".
func (d Deciding) Text(c *Comparison) string {
	return Estimate{Level: d.Level, Anytime: d.Anytime}.Called() + " " + d.Range(c)
}

// Range is the interval alone, such as "−0.2 to +0.3 %".
func (d Deciding) Range(c *Comparison) string {
	switch {
	case d.Lo == nil:
		return "unbounded"
	case c.Scale == Ratio:
		return trimPercent(unit.Change(*d.Lo)) + " to " + unit.Change(*d.Hi)
	}
	return SpanSigned(c.Metric, stats.Interval{Lo: *d.Lo, Hi: *d.Hi})
}

// DecidingRange is the interval behind the verdict, with its level where that is not
// the comparison's own.
func (c *Comparison) DecidingRange() string {
	d := c.Deciding()
	if d.Level == c.decidedBy(stats.Interval{}, c.Alpha).Level {
		return c.Range()
	}
	return fmt.Sprintf("%s (%s)", d.Range(c), Confidence(1-d.Level))
}

// negligible reports whether the comparison shows that there is no effect of practical
// size, also where the effect, such as it is, is told from nothing.
func (c *Comparison) negligible() bool {
	return stats.Rule{Threshold: max(c.Threshold, math.SmallestNonzeroFloat64), Floor: c.Floor}.Negligible(c.Effect)
}

// heaps says where the paired differences lie if not in one heap: what is estimated
// then is the middle of a mixture.
func (c *Comparison) heaps() string {
	low, high, two := stats.Heaps(c.Paired)
	if !two {
		return ""
	}
	show := func(v float64) string {
		if c.Scale == Ratio {
			return unit.Change(math.Expm1(v))
		}
		return ShowSigned(c.Metric, v)
	}
	return fmt.Sprintf("the differences lie in two heaps, %s around %s and %s around %s: the estimate describes neither",
		unit.Plural(low.N, "block"), show(low.Median), unit.Plural(high.N, "block"), show(high.Median))
}

// Undecidable reports whether the floor keeps any absence of a difference from counting.
func (s Sizes) Undecidable() bool { return s.Floor > s.Threshold }

// hindrance says what keeps a comparison open beside the number of blocks, or "".
func (c *Comparison) hindrance() string {
	if !c.Undecidable() {
		return ""
	}
	return fmt.Sprintf("; this machine's noise (±%s) exceeds the threshold (±%s)", bandText(c.Metric, c.Scale, c.Floor), c.thresholdText())
}
