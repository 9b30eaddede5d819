package publish

import (
	"slices"

	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats/bound"
)

// Confirm makes what failed inconclusive unless it failed in a second run, too. The gates of
// that run are nil if there was none.
func Confirm(first, second []verdict.Gated) []verdict.Gated {
	gates := slices.Clone(first)
	for i := range gates {
		g := &gates[i]
		if g.Result != bound.Failed {
			continue
		}
		for _, s := range second {
			if s.Metric.Name == g.Metric.Name && s.Workload == g.Workload && s.Arm == g.Arm {
				g.Again = s.Result
			}
		}
		if g.Again != bound.Failed {
			g.Result = bound.Inconclusive
		}
	}
	return gates
}
