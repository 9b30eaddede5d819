package verdict

import (
	"math"

	"github.com/tarehq/tare/stats"
)

// Budget is the largest relative harm that a metric may take, such as 0.05: so
// much more where less is better, so much less where more is.
type Budget struct {
	Metric string
	Harm   float64
}

// Gated is what a gate says of one comparison.
type Gated struct {
	*Comparison
	Budget float64 // relative
	Result stats.GateResult
}

// Gate holds every comparison of the budgets' metrics, of all arms in all
// workloads, against its budget. All gates of a run are one family: the chance
// of failing any that is within its budget is at most alpha/2. A failure says
// that this run shows the harm; before anybody is woken up it wants
// confirmation in fresh processes. Metrics that are compared by difference, or
// not at all, have no gate.
func (a *Analysis) Gate(budgets []Budget, alpha float64) []Gated {
	var gated []Gated
	var gates []stats.Gate
	for _, b := range budgets {
		for i := range a.Workloads {
			m := a.Workloads[i].Metric(b.Metric)
			if m == nil || m.Scale != Ratio {
				continue
			}
			limit := math.Log1p(b.Harm)
			if m.Higher {
				limit = -math.Log1p(-b.Harm)
			}
			for k := range m.Compared {
				if c := &m.Compared[k]; c.Withheld == "" {
					gated = append(gated, Gated{Comparison: c, Budget: b.Harm})
					gates = append(gates, stats.Gate{D: c.Paired, Budget: limit, HigherIsBetter: m.Higher})
				}
			}
		}
	}
	for i, result := range stats.Gates(gates, alpha) {
		gated[i].Result = result
	}
	return gated
}

// Floors are the run's own noise floors by metric, from the control and its
// twin: the largest over the workloads, as |ln ratio|, and the number of blocks
// that they hold for. Metrics compared by difference have none.
func (a *Analysis) Floors() (floors map[string]float64, blocks int) {
	floors = map[string]float64{}
	for i := range a.Workloads {
		w := &a.Workloads[i]
		blocks = max(blocks, w.Blocks)
		for k := range w.Metrics {
			if m := &w.Metrics[k]; m.FloorBy == byTwin && m.Scale == Ratio {
				floors[m.Name] = max(floors[m.Name], m.Floor)
			}
		}
	}
	return floors, blocks
}
