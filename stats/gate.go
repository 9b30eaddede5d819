package stats

// GateResult is what a gate answers.
type GateResult string

// The results of a gate.
const (
	Passed    GateResult = "passed"       // the whole interval of the harm lies within the budget
	Failed    GateResult = "failed"       // the lower bound of the harm exceeds the budget
	Undecided GateResult = "inconclusive" // neither
)

// Gate bounds the harm that a change may do to one metric.
type Gate struct {
	D              []float64 // paired differences new − old, one a block, finite
	Budget         float64   // the largest harm allowed, ≥ 0, on the scale of D: ln(1.02) for 2 %
	HigherIsBetter bool
}

// Gates judges gates that were measured together. A gate fails where the lower
// end of the harm's interval of level 1 − alpha exceeds the budget, and only if
// that survives [Holm]'s procedure over all of them, so that the probability of
// failing any innocent gate is at most alpha/2. A failure should be confirmed
// in fresh processes before anybody is woken up.
func Gates(gates []Gate, alpha float64) []GateResult {
	excess := make([]Interval, len(gates)) // of harm − budget
	p := make([]float64, len(gates))
	for i, g := range gates {
		harm := make([]float64, len(g.D))
		for j, v := range g.D {
			if g.HigherIsBetter {
				v = -v
			}
			harm[j] = v - g.Budget
		}
		excess[i] = SignedRankInterval(harm, alpha)
		p[i] = 1
		if HodgesLehmann(harm) > 0 {
			p[i] = SignedRankP(harm) / 2 // one-sided
		}
	}
	rejected := Holm(p, alpha/2)
	results := make([]GateResult, len(gates))
	for i := range gates {
		switch {
		case excess[i].Lo > 0 && rejected[i]:
			results[i] = Failed
		case excess[i].Hi <= 0:
			results[i] = Passed
		default:
			results[i] = Undecided
		}
	}
	return results
}
