package verdict

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/tarehq/tare/lab/verdict/estimate"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/unit"
)

// interaction judges whether the arm's difference exceeds the sum of others'.
func (an *analyser) interaction(r *CheckResult, w *Workload, m *Metric) {
	k := r.Check
	cells := []cell{{w.Name, r.Against, false}, {w.Name, k.Arm, false}}
	for _, arm := range k.Plus {
		cells = append(cells, cell{w.Name, arm, false})
	}
	for _, c := range cells[1:] {
		if why := an.otherRates(m.Name, c, cells[0]); why != "" {
			r.refuse(notComparable("%s", why))
			return
		}
	}
	rows := an.valid.rows(m.Name, cells...)
	if len(rows) == 0 {
		r.refuse(unmeasured("no block has a valid trial of every arm that takes part"))
		return
	}
	excess, level := make([]float64, len(rows)), make([]float64, len(rows))
	for i, row := range rows {
		level[i] = row[0]
		excess[i] = row[1] - row[0]
		for _, v := range row[2:] {
			excess[i] -= v - row[0]
		}
	}
	sizes := m.Sizes
	if m.Scale == Ratio {
		by := math.Abs(stats.Median(level))
		sizes = Sizes{math.Expm1(m.Threshold) * by, math.Expm1(m.Floor) * by}
	}
	// The floor is that of two trials: the excess has more, the control's several times.
	parts := float64(len(k.Plus))
	sizes.Floor *= math.Sqrt((1 + (parts-1)*(parts-1) + parts) / 2)
	e := w.estimate(excess)
	rule := stats.Rule{Alpha: w.Alpha, Threshold: sizes.Threshold, Floor: sizes.Floor, Anytime: w.Anytime}
	c := Judge(excess, rule)
	shown := e // or what decides that there is none
	if rule.Negligible(c) {
		shown.Interval, shown.Level = c.Equivalence, estimate.Level(2*w.Alpha)
	}
	r.Measured = &shown
	r.Direction = interactionFinding(r, c, cmp.Or(claimedSign(k), 1), rule)
	if published, told := publishedDifference(k); told {
		r.PublishedDifference = published
		r.Difference = sized(published, e, sizes, fmt.Sprintf("published %s (%s %s)", ShowSigned(m.Metric, published), e.Called(), SpanSigned(m.Metric, e.Interval)))
	}
}

func interactionFinding(r *CheckResult, c stats.Comparison, sign float64, rule stats.Rule) Finding {
	sum := strings.Join(r.Check.Plus, " and ")
	said := fmt.Sprintf("%s differs by %s from the sum of %s (%s %s, %s)", r.Check.Arm, ShowSigned(r.Metric, c.Effect), sum,
		r.Measured.Called(), SpanSigned(r.Metric, r.Measured.Interval), unit.Plural(c.N, "block"))
	published, told := publishedDifference(r.Check)
	switch {
	case rule.Negligible(c) && told && math.Abs(published) <= rule.Threshold:
		return Finding{Verdict: Inconclusive, Reason: "the published interaction is inside the study's threshold of ±" + Show(r.Metric, rule.Threshold) + ": " + said}
	case rule.Negligible(c):
		return Finding{Verdict: Contradicted, Reason: "no interaction of practical size (±" + Show(r.Metric, rule.Threshold) + "): " + said}
	case c.Verdict == stats.Inconclusive || c.Verdict == stats.Small:
		return Finding{Verdict: Inconclusive, Reason: said, Needs: c.Needs}
	case c.Effect*sign < 0:
		return Finding{Verdict: Contradicted, Reason: said}
	}
	return Finding{Verdict: Confirmed, Reason: said}
}
