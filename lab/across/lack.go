package across

import (
	"cmp"
	"slices"

	"github.com/tarehq/tare/lab/verdict"
)

// Lack is what a comparison of two runs leaves out though one of them tells it: the
// other does not, or the two have no scale in common.
type Lack struct {
	Workload string
	Metric   string // "" = every metric
	Arm      string // "" = every arm
}

// Lacking names what all, which [Between] returned, leaves out of two runs.
func Lacking(first, second *verdict.Analysis, all []Change) []Lack {
	var missed []Lack
	for _, l := range slices.Concat(told(first), told(second)) {
		if !slices.Contains(missed, l) && !l.among(all) {
			missed = append(missed, l)
		}
	}
	var lacks []Lack
	for _, l := range missed {
		for _, wider := range []Lack{{Workload: l.Workload}, {Workload: l.Workload, Arm: l.Arm}, {Workload: l.Workload, Metric: l.Metric}, l} {
			if !wider.among(all) {
				l = wider
				break
			}
		}
		if !slices.Contains(lacks, l) {
			lacks = append(lacks, l)
		}
	}
	slices.SortStableFunc(lacks, func(a, b Lack) int { return cmp.Compare(a.Workload, b.Workload) })
	return lacks
}

// among says whether anything of l is compared.
func (l Lack) among(all []Change) bool {
	return slices.ContainsFunc(all, func(x Change) bool {
		return x.Workload == l.Workload && (l.Metric == "" || x.Metric.Name == l.Metric) && (l.Arm == "" || x.Arm == l.Arm)
	})
}

// told is all that a run compares with its control.
func told(a *verdict.Analysis) []Lack {
	var all []Lack
	for i := range a.Workloads {
		for _, m := range a.Workloads[i].Metrics {
			for _, c := range m.Compared {
				if c.Withheld == "" {
					all = append(all, Lack{c.Workload, m.Name, c.Arm})
				}
			}
		}
	}
	return all
}
