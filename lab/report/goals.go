package report

import "github.com/tarehq/tare/lab/verdict"

// howGoals says what a verdict on a goal rests on.
const howGoals = "What the study's authors, not a publication, ask of its arms. A bound held or failed where the interval lies " +
	"wholly on one side of it, else it is inconclusive. That is not corrected for the number of bounds. A goal held where all its bounds did, and failed where one did."

// goals writes what became of the goals of the study.
func (p *page) goals(a *verdict.Analysis) {
	if len(a.Goals) == 0 {
		return
	}
	p.heading("Goals")
	p.wrapIn(dim, "  ", howGoals)
	for i := range a.Goals {
		g := &a.Goals[i]
		p.line("")
		p.wrapIn(bold, "  ", g.Says)
		p.wrapIn(toneOfOutcome(g.Outcome).style(), "  ", string(g.Outcome)+": "+g.Tally())
		for j := range g.Checks {
			r := &g.Checks[j]
			p.wrapIn(toneOfOutcome(r.Outcome()).style(), "    - ", goalLine(r))
		}
	}
}

// goalLine is what became of one check of a goal.
func goalLine(r *verdict.CheckResult) string {
	text := r.Check.Workload + ", " + string(r.Outcome()) + ": " + r.Holds.Reason
	if more := moreBlocks(r.Holds.Needs); more != "" {
		text += "; " + more
	}
	return text
}
