package verdict

import (
	"fmt"
	"math"

	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/bound"
)

// bound judges whether an arm's metric, or what it is beside another's, keeps to a bound.
func (an *analyser) bound(r *CheckResult, w *Workload, m *Metric) {
	switch k := r.Check; {
	case k.Paired():
		an.boundPair(r, w, m)
	case k.Bound != nil:
		an.boundLevel(r, w, m)
	default:
		r.refuse(notComparable("the claim gives no bound"))
	}
}

// boundLevel holds the metric itself against the bound. The generator's lag only adds to a
// response time: those that are below a bound with it are below it without.
func (an *analyser) boundLevel(r *CheckResult, w *Workload, m *Metric) {
	k, of := r.Check, r.Check.Arm
	points := an.valid.points(cell{w.Name, k.Arm, false}, m.Name)
	all := an.valid.lagging(cell{w.Name, k.Arm, false}, m.Name)
	if len(all) > len(points) && bound.Op(k.Op) == bound.AtMost && judgeBound(k.Op, w.estimate(values(all)), *k.Bound).Verdict == Confirmed {
		points, of = all, k.Arm+", the generator's lag included,"
	}
	if len(points) == 0 {
		r.refuse(unmeasured("no valid trial of %s has %s", k.Arm, m.Name))
		return
	}
	e := w.estimate(values(points))
	r.hold(e, fmt.Sprintf("%s of %s is %s (%s %s)", parenthesised(m.Metric), of, Show(m.Metric, e.Value), e.Called(), Span(m.Metric, e.Interval)))
}

// boundPair holds the ratio of two arms, or their difference, against the bound, by the interval
// of the pairs as it is: threshold and floor are no part of a bound.
func (an *analyser) boundPair(r *CheckResult, w *Workload, m *Metric) {
	k := r.Check
	c := an.compare(w, m, cell{w.Name, k.Arm, false}, cell{w.Name, r.Against, false})
	switch {
	case c.N == 0:
		r.refuse(unmeasured("no block has a valid trial of both %s and %s", k.Arm, r.Against))
	case c.Withheld != "":
		r.refuse(notComparable("%s", c.Withheld))
	case k.Bound != nil:
		r.hold(c.Difference, fmt.Sprintf("%s of %s less that of %s is %s (%s %s)", parenthesised(m.Metric), k.Arm, r.Against,
			ShowSigned(m.Metric, c.Difference.Value), c.Difference.Called(), SpanSigned(m.Metric, c.Difference.Interval)))
	case c.Scale != Ratio:
		r.refuse(notComparable("%s is a share or zero in some trials: it has no ratio", parenthesised(m.Metric)))
	default:
		e, _ := c.Relative()
		e.Value, e.Interval = 1+e.Value, stats.Interval{Lo: 1 + e.Interval.Lo, Hi: 1 + e.Interval.Hi}
		r.hold(e, fmt.Sprintf("%s of %s is %s that of %s (%s %s)", parenthesised(m.Metric), k.Arm, Times(e.Value), r.Against, e.Called(), SpanTimes(e.Interval)))
		if r.Holds.Verdict == Inconclusive {
			r.Holds.Needs = w.estimate(c.Paired).Needs(math.Log(*k.BoundRatio), 0)
		}
	}
}

// hold judges what was measured against the check's bound.
func (r *CheckResult) hold(e Estimate, measured string) {
	limit, shown := r.Check.BoundRatio, Times
	if limit == nil {
		limit, shown = r.Check.Bound, func(v float64) string { return Show(r.Metric, v) }
	}
	r.Measured, r.Holds = &e, judgeBound(r.Check.Op, e, *limit)
	r.Holds.Reason = fmt.Sprintf("%s, bound %s %s", measured, r.Check.Op, shown(*limit))
	if r.Holds.Verdict == Inconclusive {
		r.Holds.Needs = e.Needs(*limit, 0)
	}
}

// judgeBound judges an estimate by its interval: a bound that held confirms the claim,
// one that failed contradicts it.
func judgeBound(op string, e Estimate, limit float64) Finding {
	b := bound.Bound{Op: bound.Op(op), Value: limit}
	switch b.Judge(e.Interval.Lo, e.Interval.Hi) {
	case bound.Held:
		return Finding{Verdict: Confirmed}
	case bound.Failed:
		return Finding{Verdict: Contradicted}
	}
	return Finding{Verdict: Inconclusive}
}
