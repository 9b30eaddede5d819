package across

import (
	"cmp"
	"slices"

	"github.com/tarehq/tare/lab/verdict"
)

// Uncompared is what one of two runs measured and their comparison excludes: the other did
// not measure it, or the two have no scale in common.
type Uncompared struct {
	Workload string
	Metric   string // "" = every metric
	Arm      string // "" = every arm
}

// FindUncompared names what two runs measured and all, which [Between] returned, excludes.
func FindUncompared(first, second *verdict.Analysis, all []Change) []Uncompared {
	var missed []Uncompared
	for _, l := range slices.Concat(listCompared(first), listCompared(second)) {
		if !slices.Contains(missed, l) && !l.among(all) {
			missed = append(missed, l)
		}
	}
	var lacks []Uncompared
	for _, l := range missed {
		for _, wider := range []Uncompared{{Workload: l.Workload}, {Workload: l.Workload, Arm: l.Arm}, {Workload: l.Workload, Metric: l.Metric}, l} {
			if !wider.among(all) {
				l = wider
				break
			}
		}
		if !slices.Contains(lacks, l) {
			lacks = append(lacks, l)
		}
	}
	slices.SortStableFunc(lacks, func(a, b Uncompared) int { return cmp.Compare(a.Workload, b.Workload) })
	return lacks
}

// among reports whether anything of l is compared.
func (l Uncompared) among(all []Change) bool {
	return slices.ContainsFunc(all, func(x Change) bool {
		return x.Workload == l.Workload && (l.Metric == "" || x.Metric.Name == l.Metric) && (l.Arm == "" || x.Arm == l.Arm)
	})
}

// listCompared is all that a run compares with its control.
func listCompared(a *verdict.Analysis) []Uncompared {
	var all []Uncompared
	for i := range a.Workloads {
		for _, m := range a.Workloads[i].Metrics {
			for _, c := range m.Compared {
				if c.Withheld == "" {
					all = append(all, Uncompared{c.Workload, m.Name, c.Arm})
				}
			}
		}
	}
	return all
}
