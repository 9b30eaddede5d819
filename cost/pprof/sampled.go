package pprof

import (
	"math"

	"github.com/tarehq/tare/cost"
)

// usualRate is how many bytes the runtime lets pass, on average, for each allocation
// that it samples, unless the program says another.
const usualRate = 512 << 10

// Sampled returns the stacks as often as each was seen. An allocation profile counts
// objects instead, scaled up from the few that were sampled: one of 64 bytes stands
// for 8,192. An object of a size is sampled with the probability 1 − e^(−size/rate).
func (p *Profile) Sampled() []cost.Stack {
	if p.Kind != Allocs {
		return p.Stacks
	}
	rate := float64(usualRate)
	if p.raw.Period > 0 {
		rate = float64(p.raw.Period)
	}
	seen := make([]cost.Stack, len(p.Stacks))
	for i, s := range p.Stacks {
		if s.Count > 0 {
			s.Count *= -math.Expm1(-s.Value / s.Count / rate)
		}
		seen[i] = s
	}
	return seen
}
