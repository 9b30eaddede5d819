package pprof

import "math"

// Scale multiplies the value of every stack, also in what is written; how often
// each was seen stays. It is for a profile that is known to stand for more or less
// than happened.
func (p *Profile) Scale(by float64) {
	for i := range p.Stacks {
		p.Stacks[i].Value *= by
	}
	_, value, err := index(p.raw, p.Kind)
	if err != nil {
		return // cannot be: it was found when the profile was made
	}
	for _, s := range p.raw.Sample {
		s.Value[value] = int64(math.Round(by * float64(s.Value[value])))
	}
}
