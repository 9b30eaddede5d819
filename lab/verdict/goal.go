package verdict

import (
	"fmt"

	"github.com/tarehq/tare/lab/study"
)

// Outcome is what became of a goal or of a check of one.
type Outcome string

// The outcomes.
const (
	Reached   Outcome = "reached"
	Missed    Outcome = "missed"
	Undecided Outcome = "undecided"
	NotJudged Outcome = "not judged" // the run can never say
)

// Goal is what became of a goal of the study's authors: missed if any of its
// checks is, reached only if all are.
type Goal struct {
	Says    string
	Checks  []CheckResult
	Outcome Outcome

	Reached, Missed, Undecided, NotJudged int // checks
}

// Outcome is that of a check as one of a goal.
func (r *CheckResult) Outcome() Outcome {
	switch r.decisive().Verdict {
	case Confirmed:
		return Reached
	case Contradicted:
		return Missed
	case Inconclusive:
		return Undecided
	}
	return NotJudged
}

func (an *analyser) goal(g study.Goal, a *Analysis) Goal {
	out := Goal{Says: g.Says}
	for _, check := range g.Checks() {
		r := an.check(check, a)
		out.Checks = append(out.Checks, r)
		switch r.Outcome() {
		case Reached:
			out.Reached++
		case Missed:
			out.Missed++
		case Undecided:
			out.Undecided++
		default:
			out.NotJudged++
		}
	}
	switch n := len(out.Checks); {
	case out.Missed > 0:
		out.Outcome = Missed
	case out.NotJudged == n:
		out.Outcome = NotJudged
	case out.Reached == n:
		out.Outcome = Reached
	default:
		out.Outcome = Undecided
	}
	return out
}

// Tally counts the goal's checks: "3 of 4 checks reached, 1 undecided".
func (g *Goal) Tally() string {
	text := fmt.Sprintf("%d of %s reached", g.Reached, Count(len(g.Checks), "check"))
	for _, of := range []struct {
		n    int
		word Outcome
	}{{g.Missed, Missed}, {g.Undecided, Undecided}, {g.NotJudged, NotJudged}} {
		if of.n > 0 {
			text += fmt.Sprintf(", %d %s", of.n, of.word)
		}
	}
	return text
}
