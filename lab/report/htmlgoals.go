package report

import "github.com/tarehq/tare/lab/verdict"

// htmlGoals are the goals of a study with how they are judged.
type htmlGoals struct {
	Note  string
	Goals []htmlGoal
}

// htmlGoal is a goal of the study's authors, and its checks in a table.
type htmlGoal struct {
	Says, Tally string
	Outcome     mark
	Rows        []htmlGoalRow
}

type htmlGoalRow struct {
	Workload, Metric, Arm  string
	Asked, Measured, Other string // Other is why it is not judged
	Outcome                mark
	More                   string
}

// newHTMLGoals is nil for a study without goals.
func newHTMLGoals(a *verdict.Analysis) *htmlGoals {
	if len(a.Goals) == 0 {
		return nil
	}
	out := &htmlGoals{Note: howGoals}
	for i := range a.Goals {
		out.Goals = append(out.Goals, newHTMLGoal(&a.Goals[i]))
	}
	return out
}

func newHTMLGoal(g *verdict.Goal) htmlGoal {
	out := htmlGoal{Says: g.Says, Tally: g.Tally(), Outcome: toneOfOutcome(g.Outcome).mark(string(g.Outcome))}
	for i := range g.Checks {
		r := &g.Checks[i]
		row := htmlGoalRow{
			Workload: r.Check.Workload, Metric: r.Metric.Title, Arm: r.Check.Arm,
			Asked: published(r), Measured: measured(r), Outcome: toneOfOutcome(r.Outcome()).mark(string(r.Outcome())), More: moreBlocks(r.Holds.Needs),
		}
		if row.Measured == "" {
			row.Other = r.Holds.Reason
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}
