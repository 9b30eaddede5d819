package verdict

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/unit"
)

// caveats are the warnings that follow from the analysis itself.
func (a *Analysis) caveats() []error {
	var ws []error
	add := func(format string, args ...any) { ws = append(ws, fmt.Errorf(format, args...)) }
	p := a.Manifest.Study.Primary
	m := a.Primary()
	switch {
	case m == nil:
		add("no valid trial measured the primary metric %s in workload %s", p.Metric, p.Workload)
	case m.Withheld != "":
		add("the primary metric %s is withheld: %s", p.Metric, m.Withheld)
	case m.FloorBy == "" && a.Manifest.Study.Twin:
		add("%s, and this machine is not calibrated (tare calibrate): nothing is decided", m.floorless())
	case m.FloorBy == "":
		add("no noise floor is known: the study has no twin and this machine is not calibrated (tare calibrate); effects are held against the threshold alone")
	}
	switch n := a.begun; {
	case a.peeking:
		add("the run has not ended, after %s: intervals hold whenever one looks, which makes them wider", unit.Plural(n, "block"))
	case n > 0 && !slices.ContainsFunc(a.looks, func(l stats.Look) bool { return l.Blocks == n }):
		add("no look is planned after %s: judged at the level of the look at %s", unit.Plural(n, "block"), unit.Plural(lookAt(a.looks, n).Blocks, "block"))
	}
	if a.Manifest.Outcome == "refused" {
		add("the run stopped early, since most trials did not count, or not for what it decides on; `tare env` shows what disturbs this machine, and a lower rate leaves the generator more room")
	}
	if a.Trials.Drifted > 0 {
		add("not steady: %d of %s", a.Trials.Drifted, unit.Plural(a.Trials.Valid, "valid trial"))
	}
	for _, w := range a.Workloads {
		if arms := a.incomplete(&w); len(arms) > 0 {
			add("workload %s: fewer than its %s for %s", w.Name, unit.Plural(w.Blocks, "block"), strings.Join(arms, ", "))
		}
	}
	for _, c := range a.elsewhere() {
		add("%s, workload %s: %s of %s against %s (%s): work that an arm puts off, or leaves to others, is not in its CPU per request",
			c.Arm, c.Workload, ShowSigned(c.Metric, c.Difference.Value), c.Metric.Title, c.Against, c.size())
	}
	for _, c := range a.primary {
		if c.N == 0 {
			add("%s, %s, is not compared: %s", c.Arm, c.Metric.Title, c.Withheld)
		}
		if c.Heaps != "" {
			add("%s, %s: %s", c.Arm, c.Metric.Title, c.Heaps)
		}
		for _, w := range c.Effect.Warnings {
			add("%s, %s: %w", c.Arm, c.Metric.Title, w)
		}
	}
	for _, cl := range a.Claims {
		for _, r := range cl.Checks[:cl.Deciding] {
			if c := r.Comparison; c != nil && c.Heaps != "" && !slices.Contains(a.primary, c) {
				add("%s, %s, by which claim %s is judged: %s", c.Arm, c.Metric.Title, cl.ID, c.Heaps)
			}
		}
	}
	return ws
}

// elsewhere are the arms for which the rest of the machine, or they themselves after the load,
// did more, or less, than for the control, beyond the floor of that and where CPU per request
// would count. There are many such comparisons: each has its share of the level.
func (a *Analysis) elsewhere() (all []Comparison) {
	for _, w := range a.Workloads {
		for _, m := range w.Metrics {
			if m.Residual {
				all = append(all, m.Compared...)
			}
		}
	}
	return slices.DeleteFunc(all, func(c Comparison) bool {
		return c.Verdict != stats.Faster && c.Verdict != stats.Slower || c.Effect.P > stats.Share(len(all), c.Alpha, c.N)
	})
}

// incomplete are the arms with fewer pairs than the workload's blocks, by the
// metric that has the most.
func (a *Analysis) incomplete(w *Workload) []string {
	s, most := &a.Manifest.Study, map[string]int{}
	for _, arm := range s.ArmsOf(w.Workload) {
		if arm.Name != s.Control {
			most[arm.Name] = 0
		}
	}
	for _, m := range w.Metrics {
		for _, c := range m.Compared {
			most[c.Arm] = max(most[c.Arm], c.N)
		}
	}
	maps.DeleteFunc(most, func(_ string, pairs int) bool { return pairs >= w.Blocks })
	return slices.Sorted(maps.Keys(most))
}
