package verdict

import (
	"fmt"
	"math"
	"slices"

	"github.com/tarehq/tare/stats"
)

// Progress says how far the decision is.
type Progress struct {
	Blocks    int        `json:"blocks"`  // done, of the primary workload
	Begun     int        `json:"-"`       // as planned, whatever became of them
	Look      stats.Look `json:"-"`       // that they reached, or are on the way to
	Decided   int        `json:"decided"` // primary comparisons
	Undecided int        `json:"undecided"`
	Needs     int        `json:"needs"` // about so many more blocks would decide the rest
}

// decide corrects the primary comparisons for being a family.
func (a *Analysis) decide() {
	a.primary = a.planned()
	if len(a.primary) == 0 {
		return
	}
	var p []float64
	for _, c := range a.primary {
		if c.Withheld != "" {
			p = append(p, math.NaN()) // of the family, and never distinguished
			continue
		}
		p = append(p, c.Effect.P)
	}
	alpha := a.primary[0].Alpha
	for i, level := range stats.Holm(p, alpha) {
		c := a.primary[i]
		c.Family, c.step = len(p), level
		if c.Told() && level == 0 {
			c.Verdict = stats.Inconclusive
			c.Needs = max(1, stats.BlocksForFamily(len(p), alpha)-c.N)
			c.Note = fmt.Sprintf("decided by itself, not as one of %d comparisons", len(p))
		}
	}
}

// planned are the primary comparisons that the study asks for. One without a pair of
// trials is withheld: an arm of which nothing is known is not decided on. There are
// none at all where no arm has a pair.
func (a *Analysis) planned() []*Comparison {
	m := a.Primary()
	if m == nil || m.Withheld != "" {
		return nil
	}
	s, w := &a.Manifest.Study, a.Workload(a.Manifest.Study.Primary.Workload)
	all, paired := []*Comparison(nil), false
	for _, arm := range s.ArmsOf(w.Workload) {
		if arm.Name == s.Control || s.Primary.Arm != "" && s.Primary.Arm != arm.Name {
			continue
		}
		c := m.Against(arm.Name)
		if c == nil {
			c = &Comparison{Metric: m.Metric, Workload: w.Name, Arm: arm.Name, Against: s.Control, Scale: m.Scale, Alpha: w.Alpha, Sizes: m.Sizes,
				Withheld: fmt.Sprintf("no block has a valid trial of both with %s", parenthesised(m.Metric))}
		}
		paired = paired || c.N > 0
		all = append(all, c)
	}
	if !paired {
		return nil
	}
	return all
}

// Progress says how far the decision is.
func (a *Analysis) Progress() Progress {
	p := Progress{Begun: a.begun, Look: lookAt(a.looks, a.begun)}
	if w := a.Workload(a.Manifest.Study.Primary.Workload); w != nil {
		p.Blocks = w.Blocks
	}
	for _, c := range a.primary {
		if c.Verdict == stats.Inconclusive || c.Withheld != "" {
			p.Undecided++
			p.Needs = max(p.Needs, c.Needs)
			continue
		}
		p.Decided++
	}
	return p
}

// Decided reports whether every primary comparison has its verdict, so that the
// run may stop at this look. It is false where there is none.
func (a *Analysis) Decided() bool {
	p := a.Progress()
	return p.Undecided == 0 && p.Decided > 0
}

// Settled reports whether the claims have their verdicts, too, but for those that captures
// decide on, which come after the blocks.
func (a *Analysis) Settled() bool {
	open := func(c Claim) bool { return c.Verdict == Inconclusive && !c.Checks[c.Part].Metric.Attributed }
	return a.Decided() && !slices.ContainsFunc(a.Claims, open)
}

// Decisions are the comparisons that the run is planned for, in the study's
// order.
func (a *Analysis) Decisions() []*Comparison { return a.primary }

// Looks are the numbers of blocks after which the run could stop.
func (a *Analysis) Looks() []stats.Look { return a.looks }
