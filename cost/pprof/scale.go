package pprof

import (
	"math"

	"github.com/google/pprof/profile"

	"github.com/tarehq/tare/cost"
)

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

// Add adds a stack that the profiler could not see, also to what is written.
func (p *Profile) Add(s cost.Stack) {
	p.Stacks = append(p.Stacks, s)
	count, value, err := index(p.raw, p.Kind)
	if err != nil {
		return // cannot be: it was found when the profile was made
	}
	p.raw = p.raw.Compact() // which numbers its functions and places anew
	sample := &profile.Sample{Value: make([]int64, len(p.raw.SampleType)), Location: newBuilder(p.raw).stack(s.Frames)}
	sample.Value[count], sample.Value[value] = int64(math.Round(s.Count)), int64(math.Round(s.Value))
	p.raw.Sample = append(p.raw.Sample, sample)
}
