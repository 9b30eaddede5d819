package verdict

import (
	"fmt"
	"math"

	"github.com/tarehq/tare/stats"
)

// Progress says how far the decision is.
type Progress struct {
	Blocks    int        // done, of the primary workload
	Look      stats.Look // that they reached, or are on the way to
	Decided   int        // primary comparisons
	Undecided int
	Needs     int // about so many more blocks would decide the rest
}

// decide corrects the primary comparisons for being a family.
func (a *Analysis) decide() {
	m := a.Primary()
	if m == nil || m.Withheld != "" {
		return
	}
	var p []float64
	for i := range m.Compared {
		c := &m.Compared[i]
		if only := a.Manifest.Study.Primary.Arm; only != "" && only != c.Arm {
			continue
		}
		a.primary = append(a.primary, c)
		if c.Withheld != "" {
			p = append(p, math.NaN()) // of the family, and never told apart
			continue
		}
		p = append(p, c.Effect.P)
	}
	if len(p) == 0 {
		return
	}
	alpha := a.primary[0].Alpha
	for i, rejected := range stats.Holm(p, alpha) {
		c := a.primary[i]
		c.Family = len(p)
		if c.Told() && !rejected {
			c.Verdict = stats.Inconclusive
			c.Needs = max(1, stats.BlocksForFamily(len(p), alpha)-c.N)
			c.Note = fmt.Sprintf("told apart by itself, not as one of %d comparisons", len(p))
		}
	}
}

// Progress says how far the decision is.
func (a *Analysis) Progress() Progress {
	var p Progress
	if w := a.Workload(a.Manifest.Study.Primary.Workload); w != nil {
		p.Blocks = w.Blocks
	}
	p.Look = lookAt(a.looks, p.Blocks)
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

// Decided says whether every primary comparison has its verdict, so that the
// run may stop at this look. It is false where there is none.
func (a *Analysis) Decided() bool {
	p := a.Progress()
	return p.Undecided == 0 && p.Decided > 0
}

// Decisions are the comparisons that the run is planned for, in the study's
// order.
func (a *Analysis) Decisions() []*Comparison { return a.primary }

// Looks are the numbers of blocks after which the run could stop.
func (a *Analysis) Looks() []stats.Look { return a.looks }
