package pprof

import (
	"time"

	"github.com/google/pprof/profile"

	"github.com/tarehq/tare/cost"
)

// New makes a profile of stacks that come from elsewhere, to be written or
// labelled like one that was read. Nothing is known of it but the stacks: it has
// neither addresses nor mappings. What is not graphic in names is written as Go
// writes it in a literal, as in profiles that are read. Fractions of a count or
// value are lost in what is written.
func New(kind Kind, d time.Duration, stacks []cost.Stack) *Profile {
	stacks = visibleStacks(stacks)
	count, value := kind.columns()
	b := newBuilder(&profile.Profile{SampleType: []*profile.ValueType{&count, &value}, DurationNanos: int64(d)})
	if kind == CPU {
		b.raw.PeriodType, b.raw.Period = &profile.ValueType{Type: value.Type, Unit: value.Unit}, 1
	}
	for i := range stacks {
		b.add(&stacks[i])
	}
	return &Profile{Kind: kind, Duration: d, Stacks: stacks, raw: b.raw}
}

// builder gives functions and places their numbers.
type builder struct {
	raw       *profile.Profile
	functions map[function]*profile.Function
	locations map[cost.Frame]*profile.Location
}

// newBuilder adds to a profile whose functions and places are numbered from 1.
func newBuilder(raw *profile.Profile) *builder {
	return &builder{raw, map[function]*profile.Function{}, map[cost.Frame]*profile.Location{}}
}

type function struct {
	name, file string
	decl       int
}

func (b *builder) add(s *cost.Stack) {
	b.raw.Sample = append(b.raw.Sample, &profile.Sample{
		Value: []int64{int64(s.Count + 0.5), int64(s.Value + 0.5)}, Location: b.stack(s.Frames),
	})
}

func (b *builder) stack(frames []cost.Frame) (all []*profile.Location) {
	for _, f := range frames {
		all = append(all, b.location(f))
	}
	return all
}

func (b *builder) location(f cost.Frame) *profile.Location {
	if at, ok := b.locations[f]; ok {
		return at
	}
	at := &profile.Location{ID: uint64(len(b.raw.Location) + 1), Line: []profile.Line{{Function: b.function(f), Line: int64(f.Line)}}}
	b.locations[f] = at
	b.raw.Location = append(b.raw.Location, at)
	return at
}

func (b *builder) function(f cost.Frame) *profile.Function {
	id := function{f.Func, f.File, f.Decl}
	if fn, ok := b.functions[id]; ok {
		return fn
	}
	fn := &profile.Function{ID: uint64(len(b.raw.Function) + 1), Name: f.Func, SystemName: f.Func, Filename: f.File, StartLine: int64(f.Decl)}
	b.functions[id] = fn
	b.raw.Function = append(b.raw.Function, fn)
	return fn
}
