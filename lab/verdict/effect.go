package verdict

import (
	"fmt"
	"math"

	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/unit"
)

// claimedSign is the sign that a check claims: +1 for more, −1 for less, 0 for
// none.
func claimedSign(k study.Check) float64 {
	switch {
	case k.Direction == "more":
		return 1
	case k.Direction == "less":
		return -1
	case k.PublishedArm == nil || k.PublishedAgainst == nil || *k.PublishedArm == *k.PublishedAgainst:
		return 0
	}
	return math.Copysign(1, *k.PublishedArm-*k.PublishedAgainst)
}

func (an *analyser) effect(r *CheckResult, w *Workload, m *Metric) {
	k := r.Check
	c := an.compare(w, m, cell{w.Name, k.Arm, false}, cell{w.Name, r.Against, false})
	if c.N == 0 {
		r.refuse(unmeasured("no block has a valid trial of both %s and %s", k.Arm, r.Against))
		return
	}
	r.Comparison = &c
	if c.Withheld != "" {
		r.refuse(notComparable("%s", c.Withheld))
		return
	}
	r.Direction = c.direction(k)
	if k.Absolute != "" {
		r.Levels = Finding{Verdict: NotComparable, Reason: k.Absolute}
	}
	if published, told := publishedDifference(k); told {
		r.PublishedDifference = published
		r.Difference = c.difference(published)
	}
	if published := publishedRatio(k); published > 0 {
		r.PublishedRatio = published
		r.Ratio = c.ratio(published, w)
	}
}

// publishedRatio is the claimed figure of the arm over that of the other, given
// as such or as two figures; 0 where the claim gives neither.
func publishedRatio(k study.Check) float64 {
	switch {
	case k.PublishedRatio != nil:
		return *k.PublishedRatio
	case k.PublishedArm != nil && k.PublishedAgainst != nil && *k.PublishedArm > 0 && *k.PublishedAgainst > 0:
		return *k.PublishedArm / *k.PublishedAgainst
	}
	return 0
}

// publishedDifference is the claimed figure of the arm less that of the other, given
// as such or as two figures; told is false where the claim gives neither.
func publishedDifference(k study.Check) (difference float64, told bool) {
	switch {
	case k.PublishedDifference != nil:
		return *k.PublishedDifference, true
	case k.PublishedArm != nil && k.PublishedAgainst != nil:
		return *k.PublishedArm - *k.PublishedAgainst, true
	}
	return 0, false
}

// direction judges the claimed sign by the rules of the package comment.
func (c *Comparison) direction(k study.Check) Finding {
	sign := claimedSign(k)
	if sign == 0 {
		return Finding{Verdict: NotComparable, Reason: "the claim gives no direction"}
	}
	different := c.Effect.Verdict == stats.Faster || c.Effect.Verdict == stats.Slower
	if inside := c.publishedInside(k); inside != "" && !different {
		return Finding{Verdict: Inconclusive, Reason: inside}
	}
	what := fmt.Sprintf("%s of %s against %s", parenthesised(c.Metric), c.Arm, c.Against)
	switch {
	case c.negligible():
		return Finding{Verdict: Contradicted, Reason: fmt.Sprintf(
			"no effect of practical size on %s (within ±%s; %s, %s)", what, c.thresholdText(), c.decidedBy(c.Effect.Equivalence, 2*c.Alpha).Text(c), unit.Plural(c.N, "block"))}
	case c.Effect.Verdict == stats.Small:
		return Finding{Verdict: Inconclusive, Reason: fmt.Sprintf(
			"the effect on %s is not known to be of practical size (±%s; %s)", what, c.thresholdText(), c.size())}
	case different:
		v := Confirmed
		if c.Effect.Effect*sign < 0 {
			v = Contradicted
		}
		return Finding{Verdict: v, Reason: fmt.Sprintf("%s: %s (%s)", what, c.Word(), c.size())}
	}
	return Finding{Verdict: Inconclusive, Needs: c.Needs, Reason: fmt.Sprintf("%s shows no measurable difference (%s)%s", what, c.size(), c.hindrance())}
}

// publishedInside says that the published effect is too small for this study to look
// for it, or "". A ratio is held against the threshold where the metric has one,
// any other figure in the metric's unit.
func (c *Comparison) publishedInside(k study.Check) string {
	var published string
	var inside bool
	ratio := publishedRatio(k)
	difference, told := publishedDifference(k)
	switch {
	case c.Scale == Ratio && ratio > 0:
		published, inside = unit.Change(ratio-1), math.Abs(math.Log(ratio)) <= c.Threshold
	case told:
		published, inside = ShowSigned(c.Metric, difference), math.Abs(difference) <= c.inUnit(c.Threshold)
	}
	if !inside {
		return ""
	}
	return fmt.Sprintf("the published effect of %s is inside the study's threshold of ±%s", published, c.thresholdText())
}

// inUnit is a size on the scale in the metric's base unit.
func (c *Comparison) inUnit(size float64) float64 {
	if c.Scale == Ratio {
		return math.Expm1(size) * math.Abs(c.AgainstMedian)
	}
	return size
}

// ratio judges a published ratio.
func (c *Comparison) ratio(published float64, w *Workload) Finding {
	if c.Scale != Ratio {
		return Finding{Verdict: NotComparable, Reason: "the metric is a share or zero in some trials: it has no ratio"}
	}
	e, _ := c.Relative()
	said := fmt.Sprintf("published %s, measured %s (%s %s)", unit.Change(published-1), unit.Change(e.Value), e.Called(), Changes(e.Interval))
	return sized(math.Log(published), w.estimate(c.Paired), c.Sizes, said)
}

// difference judges a published difference.
func (c *Comparison) difference(published float64) Finding {
	d := c.Difference
	said := fmt.Sprintf("published %s, measured %s (%s %s)", ShowSigned(c.Metric, published),
		ShowSigned(c.Metric, d.Value), d.Called(), SpanSigned(c.Metric, d.Interval))
	return sized(published, d, Sizes{c.inUnit(c.Threshold), c.inUnit(c.Floor)}, said)
}

// sized holds a published size against a measured one, on a scale where 0 is no effect. Near
// is within half of the published, or the threshold. It agrees where the whole interval is near
// and not over no effect, and the effect beyond the floor; where none is published, the floor has
// to be within the threshold. It is contradicted where the whole is neither near nor in the floor.
func sized(published float64, e Estimate, sizes Sizes, said string) Finding {
	off := stats.Interval{Lo: e.Interval.Lo - published, Hi: e.Interval.Hi - published}
	near := max(math.Abs(published)/2, sizes.Threshold)
	apart, told := math.Abs(e.Value), !e.Interval.Contains(0)
	if published == 0 {
		apart, told = sizes.Threshold, true
	}
	switch far := max(near, sizes.Floor); {
	case !off.Bounded():
	case off.Lo > far || off.Hi < -far:
		return Finding{Verdict: Contradicted, Reason: said, off: true}
	case off.Within(near) && told && sizes.Floor <= apart:
		return Finding{Verdict: Confirmed, Reason: said}
	}
	by, edge := math.Abs(e.Value-published), published+math.Copysign(near, e.Value-published)
	blocks := max(e.Needs(edge, 0), e.Needs(published, sizes.Floor)) // the floor shrinks as the interval does
	if by < near {
		none := e.Value - math.Copysign(apart, e.Value)
		blocks = max(e.Needs(edge, 0), e.Needs(2*published-edge, 0), e.Needs(none, max(0, sizes.Floor-e.Interval.Width()/2)))
	}
	return Finding{Verdict: Inconclusive, Reason: said + ", which does not settle it", Needs: blocks, off: by >= near}
}
