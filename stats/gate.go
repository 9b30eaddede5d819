package stats

import "github.com/tarehq/tare/stats/bound"

// Gate bounds the harm that a change may do to one metric.
type Gate struct {
	D              []float64 // paired differences new − old, one a block, finite
	Budget         float64   // the largest harm allowed, ≥ 0, on the scale of D: ln(1.02) for 2 %
	HigherIsBetter bool
	Alpha          float64 // level of the interval: that of the look reached; 0: StudyAlpha, for a single look
	Anytime        bool    // the interval holds whenever one looks: the study has not ended
}

// Gates judges gates that were measured together. A gate holds where the whole interval
// of the harm lies within the budget. It fails where the lower
// end of the harm's interval of level 1 − Alpha exceeds the budget, and only if
// that survives [Holm]'s procedure over all of them, each p-value counted in
// shares of its own Alpha. So the probability of failing any innocent gate is at
// most half of [StudyAlpha] over all looks together that share it out, whichever
// of them ends the study. A failure should be confirmed in fresh processes before
// anybody is woken up.
func Gates(gates []Gate) []bound.Outcome {
	excess := make([]Interval, len(gates)) // of harm − budget
	p := make([]float64, len(gates))       // in shares of alpha
	for i, g := range gates {
		if g.Alpha == 0 {
			g.Alpha = StudyAlpha
		}
		harm := make([]float64, len(g.D))
		for j, v := range g.D {
			if g.HigherIsBetter {
				v = -v
			}
			harm[j] = v - g.Budget
		}
		c := Compare(harm, Rule{Alpha: g.Alpha, Anytime: g.Anytime})
		excess[i], p[i] = c.Interval, 1/g.Alpha
		if c.Effect > 0 {
			p[i] = c.P / 2 / g.Alpha // one-sided
		}
	}
	levels := Holm(p, 1.0/2)
	results := make([]bound.Outcome, len(gates))
	for i := range gates {
		switch {
		case excess[i].Lo > 0 && levels[i] > 0:
			results[i] = bound.Failed
		case excess[i].Hi <= 0:
			results[i] = bound.Held
		default:
			results[i] = bound.Inconclusive
		}
	}
	return results
}
