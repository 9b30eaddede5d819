package study

import (
	"fmt"
	"slices"

	"github.com/tarehq/tare/stats/unit"
)

// Goal is what the authors of a study, not a publication, want its arms to
// hold. It stands for one check of kind bound of every metric, workload, arm
// and arm compared with; it is reached where all of them hold.
type Goal struct {
	Says      string   `json:"says,omitzero"` // one line
	Metrics   []string `json:"metrics,omitzero"`
	Workloads []string `json:"workloads,omitzero"`
	Arms      []string `json:"arms,omitzero"`
	Against   []string `json:"against,omitzero"` // nil = of BoundRatio the control, of Bound none

	// As in Check: of Bound and BoundRatio one is there.
	Op         string   `json:"op,omitzero"`
	Bound      *float64 `json:"bound,omitzero"`
	BoundRatio *float64 `json:"bound_ratio,omitzero"`
}

// Checks are those that the goal stands for.
func (g Goal) Checks() []Check {
	against := g.Against
	if len(against) == 0 {
		against = []string{""}
	}
	var all []Check
	for _, w := range g.Workloads {
		for _, m := range g.Metrics {
			for _, arm := range g.Arms {
				for _, other := range against {
					all = append(all, Check{
						Kind: Bound, Says: g.Says, Metric: m, Workload: w, Arm: arm, Against: other,
						Op: g.Op, Bound: g.Bound, BoundRatio: g.BoundRatio,
					})
				}
			}
		}
	}
	return all
}

// goalsWithin are the goals as far as the study has their arms and workloads.
func (s *Study) goalsWithin(goals []Goal) []Goal {
	only := func(names []string, has func(string) bool) []string {
		return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !has(name) })
	}
	var kept []Goal
	for _, g := range goals {
		compares := len(g.Against) > 0
		g.Workloads, g.Arms, g.Against = only(g.Workloads, s.hasWorkload), only(g.Arms, s.hasArm), only(g.Against, s.hasArm)
		if len(g.Workloads) > 0 && len(g.Arms) > 0 && compares == (len(g.Against) > 0) {
			kept = append(kept, g)
		}
	}
	return kept
}

// goal checks that every check that a goal stands for can be made.
func (c *checker) goal(i int) {
	g, path := c.Goals[i], fmt.Sprintf("goals[%d]", i)
	c.boundOrRatio(path)
	c.referAll(path+".workloads", g.Workloads, "workload", c.workloads)
	c.referAll(path+".arms", g.Arms, "arm", c.arms)
	c.referAll(path+".against", g.Against, "arm", c.arms)
	for j, name := range g.Metrics {
		m, _ := MetricNamed(name)
		if m.Attributed {
			c.Wrong(fmt.Sprintf("%s.metrics[%d]", path, j), "%s is measured by profiles, with which goals are not compared: name another", name)
		}
		c.unit(path+".bound", name)
	}
	for _, k := range g.Checks() {
		if !c.known(k) {
			continue
		}
		before := len(c.Mistakes)
		c.takesPart(path+".arms", k.Arm, k.Workload)
		c.takesPart(path+".against", k.Against, k.Workload)
		if k.Paired() {
			c.compared(path+".metrics", k.Metric, k.Workload)
			c.apart(path, k)
		}
		if len(c.Mistakes) > before {
			return // the next check would say much the same
		}
	}
}

// known reports whether all names of a check are among those of the study.
func (c *checker) known(k Check) bool {
	has := func(names []string, name string) bool { return name == "" || slices.Contains(names, name) }
	return has(c.workloads, k.Workload) && has(c.arms, k.Arm) && has(c.arms, k.Against)
}

// boundOrRatio checks that what is bounded is either the metric or its ratio.
func (c *checker) boundOrRatio(path string) {
	switch bound, ratio := c.has(path+".bound"), c.has(path+".ratio"); {
	case bound && ratio:
		c.Wrong(path+".ratio", "the metric has a bound already; give either bound or ratio")
	case !bound && !ratio:
		c.Wrong(path, "nothing is bounded; give bound for the metric itself, or ratio for that of two arms")
	}
	if q, read := c.Quantities[path+".ratio"]; read && q.Unit != unit.Count {
		c.Wrong(path+".ratio", `a ratio has no unit; write it such as "<= 0.6"`)
	}
}
