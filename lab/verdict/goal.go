package verdict

import (
	"fmt"

	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/stats/bound"
	"github.com/tarehq/tare/stats/unit"
)

// NotJudged is the outcome of a goal, or of a check of one, that the run can never decide.
const NotJudged bound.Outcome = "not judged"

// Goal is what became of a goal of the study's authors: it failed if any of its
// checks did, and held only if all did.
type Goal struct {
	Says    string        `json:"says"`
	Outcome bound.Outcome `json:"outcome"`
	Checks  []CheckResult `json:"-"`

	Held         int `json:"held"` // checks, as the next
	Failed       int `json:"failed"`
	Inconclusive int `json:"inconclusive"`
	NotJudged    int `json:"not_judged"`
}

// Outcome is that of a check as one of a goal.
func (r *CheckResult) Outcome() bound.Outcome {
	switch r.decisive().Verdict {
	case Confirmed:
		return bound.Held
	case Contradicted:
		return bound.Failed
	case Inconclusive:
		return bound.Inconclusive
	}
	return NotJudged
}

func (an *analyser) goal(g study.Goal, a *Analysis) Goal {
	out := Goal{Says: g.Says}
	for _, check := range g.Checks() {
		r := an.check(check, a, 1)
		out.Checks = append(out.Checks, r)
		switch r.Outcome() {
		case bound.Held:
			out.Held++
		case bound.Failed:
			out.Failed++
		case bound.Inconclusive:
			out.Inconclusive++
		default:
			out.NotJudged++
		}
	}
	switch n := len(out.Checks); {
	case out.Failed > 0:
		out.Outcome = bound.Failed
	case out.NotJudged == n:
		out.Outcome = NotJudged
	case out.Held == n:
		out.Outcome = bound.Held
	default:
		out.Outcome = bound.Inconclusive
	}
	return out
}

// Tally counts the goal's checks: "3 of 4 checks held, 1 inconclusive".
func (g *Goal) Tally() string {
	text := fmt.Sprintf("%d of %s held", g.Held, unit.Plural(len(g.Checks), "check"))
	for _, of := range []struct {
		n    int
		word bound.Outcome
	}{{g.Failed, bound.Failed}, {g.Inconclusive, bound.Inconclusive}, {g.NotJudged, NotJudged}} {
		if of.n > 0 {
			text += fmt.Sprintf(", %d %s", of.n, of.word)
		}
	}
	return text
}
