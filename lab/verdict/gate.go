package verdict

import (
	"maps"
	"math"
	"slices"

	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/bound"
)

// Budget is the largest relative harm that a metric may take, such as 0.05: so
// much more where less is better, so much less where more is.
type Budget struct {
	Metric string
	Harm   float64
}

// Gated is what a gate says of one comparison.
type Gated struct {
	// A comparison that is withheld is not held against the budget: it names metric,
	// workload and arm alone, and the result is [bound.Inconclusive].
	*Comparison
	Budget float64 // relative
	Result bound.Outcome
	Again  bound.Outcome // the second run's, of what failed in the first; "" = there was none
}

// Gate holds every comparison of the budgets' metrics, of all arms in all
// workloads, against its budget, by the interval that the comparison has at the
// look that the run reached. All gates of a run are one family: the chance
// of failing any that is within its budget is at most half of [stats.StudyAlpha]
// over all looks together, whichever ends the run. A failure says
// that this run shows the harm; before anybody is woken up it wants
// confirmation in fresh processes. Of a metric that is compared by difference
// the budget is that share of the size of the control's median. An arm that cannot be held
// against a budget, since its trials failed or do not tell the metric, is
// undecided and says why: what was not seen has not passed.
func (a *Analysis) Gate(budgets []Budget) []Gated {
	var gated []Gated
	for _, b := range budgets {
		gated = append(gated, a.held(b)...)
	}
	var gates []stats.Gate
	for _, g := range gated {
		if g.Withheld == "" {
			gates = append(gates, stats.Gate{D: g.Paired, Budget: g.limit(), HigherIsBetter: g.Metric.Higher, Alpha: g.Alpha, Anytime: g.Anytime})
		}
	}
	results := stats.Gates(gates)
	for i := range gated {
		if g := &gated[i]; g.Withheld == "" {
			g.Result, results = results[0], results[1:]
		}
	}
	return gated
}

// Undecided reports whether more blocks may decide the gate.
func (g Gated) Undecided() bool { return g.Withheld == "" && g.Result == bound.Inconclusive }

// limit is the budget on the comparison's scale.
func (g *Gated) limit() float64 {
	switch {
	case g.Scale == Difference:
		return g.Budget * math.Abs(g.AgainstMedian)
	case g.Metric.Higher:
		return -math.Log1p(-g.Budget)
	}
	return math.Log1p(g.Budget)
}

// held lists what a budget is held against: all arms of the workloads that tell
// its metric, or should, and of those in which no trial counts, and the arms that
// were left out of the run.
func (a *Analysis) held(b Budget) []Gated {
	sm, _ := study.MetricNamed(b.Metric)
	var list []Gated
	undecided := func(workload, arm, why string) {
		c := &Comparison{Metric: sm, Workload: workload, Arm: arm, Against: a.Manifest.Study.Control, Withheld: why}
		list = append(list, Gated{Comparison: c, Budget: b.Harm, Result: bound.Inconclusive})
	}
	s := &a.Manifest.Study
	for _, sw := range s.Workloads {
		if sw.Unfit(b.Metric) != "" {
			continue // such as response times in a closed loop
		}
		w := a.Workload(sw.Name)
		for _, arm := range s.ArmsOf(sw) {
			if arm.Name == s.Control {
				continue
			}
			switch c, why := w.gateable(b.Metric, arm.Name); {
			case why != "":
				undecided(sw.Name, arm.Name, why)
			case c != nil:
				list = append(list, Gated{Comparison: c, Budget: b.Harm})
			}
		}
	}
	for _, arm := range slices.Sorted(maps.Keys(a.Manifest.LeftOut)) {
		undecided("", arm, "it took no part: "+a.Manifest.LeftOut[arm])
	}
	if len(list) == 0 {
		undecided("", "", "no workload of the run measures it")
	}
	return list
}

// gateable returns an arm's comparison with the control, or why there is none. It
// is nil without a reason where the workload, nil if no trial of it counts, does
// not tell the metric of any arm; times every workload should tell.
func (w *Workload) gateable(metric, arm string) (c *Comparison, why string) {
	if w == nil {
		return nil, "no trial of the workload counts"
	}
	m := w.Metric(metric)
	switch {
	case m == nil && paced(metric):
		return nil, "no valid trial of the workload measured it"
	case m == nil:
		return nil, ""
	}
	c = m.Against(arm)
	switch {
	case m.Instrument:
		return nil, "it describes the load generator or the host, not an arm"
	case m.Withheld != "":
		return nil, m.Withheld
	case c == nil && m.Level(arm) == nil:
		return nil, "no valid trial of this arm measured it"
	case c == nil:
		return nil, "no block has both this arm and the control"
	case c.Withheld != "":
		return nil, c.Withheld
	}
	return c, ""
}

// Floors are the run's own noise floors by metric, from the control and its
// twin: the largest over the workloads, as |ln ratio|, and the number of blocks
// that they hold for. Metrics compared by difference, or in fewer blocks than an
// interval takes, have none. There are none at all where a workload lacks so many: the
// noisiest may be the one that is missing.
func (a *Analysis) Floors() (floors map[string]float64, blocks int) {
	floors = map[string]float64{}
	least := stats.BlocksForFamily(1, stats.StudyAlpha)
	if len(a.Workloads) < len(a.Manifest.Study.Workloads) {
		return nil, 0
	}
	for i := range a.Workloads {
		w := &a.Workloads[i]
		if !slices.ContainsFunc(w.Metrics, func(m Metric) bool { return m.Scale == Ratio && m.twinned >= least }) {
			return nil, 0
		}
		for k := range w.Metrics {
			if m := &w.Metrics[k]; m.Scale == Ratio && m.twinned >= least {
				floors[m.Name] = max(floors[m.Name], m.twinFloor)
				blocks = max(blocks, m.twinned)
			}
		}
	}
	return floors, blocks
}
