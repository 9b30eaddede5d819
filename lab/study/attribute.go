package study

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tarehq/tare/internal/shape"
)

// Attribute says how the arms are profiled after the measured blocks, so that
// their cost is told by owner. The zero value: they are not.
type Attribute struct {
	For       time.Duration       `json:"for_ns,omitzero"`    // of one capture; 0 = no captures
	Repeat    int                 `json:"repeat,omitzero"`    // captures of each arm; 0 = 6
	Arms      []string            `json:"arms,omitzero"`      // only these; nil = all
	Workloads map[string][]Source `json:"workloads,omitzero"` // only under these, by these; nil = all, by Pprof
	Truth     Truth               `json:"truth,omitzero"`
}

// Source is what a capture is made by.
type Source string

// The sources.
const (
	Pprof Source = "pprof" // the Go runtime's profiles of CPU and allocations
	EBPF  Source = "ebpf"  // samples by the kernel, of any program
	Trace Source = "trace" // an execution trace: what requests wait for
)

// Truth says where arms tell what parts of them cost, and how far attribution
// may be off. The zero value: they do not.
type Truth struct {
	Path       string            `json:"path,omitzero"`        // of the arms' answer, see docs/arm.md
	CPU        float64           `json:"cpu,omitzero"`         // most of the true CPU time, such as 0.05 …
	Least      time.Duration     `json:"least_ns,omitzero"`    // … or this much, if that is more; of waiting, too
	Bytes      float64           `json:"bytes,omitzero"`       // most of the true bytes …
	LeastBytes int64             `json:"least_bytes,omitzero"` // … or this many, if that is more
	Waiting    float64           `json:"waiting,omitzero"`     // most of the true waiting
	Bare       map[string]string `json:"bare,omitzero"`        // for an arm the one that lacks those parts
}

// Capture is one look at an arm under a workload in a round; every round has
// each of them once, by each source.
type Capture struct {
	Round    int // from 0
	Workload string
	Arm      string
	Source   Source
	For      time.Duration
}

// LongestTrace bounds a capture that is a trace: a busy server fills megabytes in
// a second.
const LongestTrace = time.Second

// RepeatOr is the number of captures of each arm: 6 unless set, the fewest from
// which an exact interval at 95 % exists.
func (a Attribute) RepeatOr() int {
	if a.Repeat > 0 {
		return a.Repeat
	}
	return leastBlocks
}

// sources are those by which arms are looked at under a workload; none if they
// are not.
func (a Attribute) sources(workload string) []Source {
	if a.For > 0 && a.Workloads == nil {
		return []Source{Pprof}
	}
	return a.Workloads[workload]
}

// Captures are the captures to be made, in order: in every round each arm once
// under each workload and for each source, in random order. Sources do not share a
// process: of two samplers at once, that of the runtime charged code that burns CPU
// with a tenth too much, which it does not do alone. The same study and seed give
// the same captures.
func (s *Study) Captures(seed uint64) []Capture {
	a := s.Attribute
	if a.For <= 0 {
		return nil
	}
	var all []Capture
	for round := range a.RepeatOr() {
		rng := rand.New(rand.NewPCG(seed, 1<<32+uint64(round))) // apart from those of the blocks
		for _, w := range s.Workloads {
			first := len(all)
			for _, arm := range s.ArmsOf(w) {
				if a.Arms != nil && !slices.Contains(a.Arms, arm.Name) {
					continue
				}
				for _, source := range a.sources(w.Name) {
					d := a.For
					if source == Trace {
						d = min(d, LongestTrace)
					}
					all = append(all, Capture{round, w.Name, arm.Name, source, d})
				}
			}
			rest := all[first:]
			rng.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
		}
	}
	return all
}

// EstimateCaptures is how long the captures take, if each takes overhead besides
// what the study asks for.
func EstimateCaptures(s *Study, overhead time.Duration) time.Duration {
	var all time.Duration
	for _, c := range s.Captures(1) {
		all += s.EstimateCapture(c, overhead)
	}
	return all
}

// EstimateCapture is how long one of them takes.
func (s *Study) EstimateCapture(c Capture, overhead time.Duration) time.Duration {
	d := s.Trial.WarmUpOr() + c.For + overhead
	for _, w := range s.Workloads {
		if w.Name == c.Workload {
			d += w.idling()
		}
	}
	return d
}

// with is the attribution with what is set in other set so.
func (a Attribute) with(other Attribute) Attribute {
	if other.For > 0 {
		a.For = other.For
	}
	if other.Repeat > 0 {
		a.Repeat = other.Repeat
	}
	if other.Arms != nil {
		a.Arms = other.Arms
	}
	if other.Workloads != nil {
		a.Workloads = other.Workloads
	}
	return a
}

// among is the attribution of what the study has.
func (a Attribute) among(s *Study) Attribute {
	if a.Arms != nil {
		a.Arms = slices.DeleteFunc(slices.Clone(a.Arms), func(name string) bool { return !s.hasArm(name) })
	}
	if a.Workloads != nil {
		a.Workloads = maps.Clone(a.Workloads)
		maps.DeleteFunc(a.Workloads, func(name string, _ []Source) bool { return !s.hasWorkload(name) })
	}
	if a.Arms != nil && len(a.Arms) == 0 || a.Workloads != nil && len(a.Workloads) == 0 {
		return Attribute{}
	}
	return a
}

// attributes reports whether the arms that a check compares are profiled.
func (s *Study) attributes(k Check) bool {
	against := k.Against
	if against == "" && k.Kind != Bound {
		against = s.Control
	}
	for _, name := range append([]string{k.Arm, against}, k.Plus...) {
		if name != "" && !s.Attribute.covers(name, k.Workload) {
			return false
		}
	}
	return s.hasWorkload(k.Workload)
}

// covers reports whether an arm is attributed under a workload.
func (a Attribute) covers(arm, workload string) bool {
	return (a.Arms == nil || slices.Contains(a.Arms, arm)) && len(a.sources(workload)) > 0
}

func attributeShape(more ...shape.Key[Attribute]) shape.Of[Attribute] {
	return shape.Object("attribute", append([]shape.Key[Attribute]{
		shape.Field("for", "How long a capture takes.", shape.Duration(200*time.Millisecond, time.Minute), func(a *Attribute) *time.Duration { return &a.For }),
		shape.Field("repeat", "How many captures there are of each arm, each of a fresh process.", shape.Integer(1, 1000), func(a *Attribute) *int { return &a.Repeat }),
		shape.Field("arms", "The arms that are profiled, if not all.", parts(), func(a *Attribute) *[]string { return &a.Arms }),
		shape.Field("workloads", "The workloads under which they are, and by what; by default all, by pprof.",
			shape.Dict(partName, wantPart, shape.List(shape.OneOf("a source is one of", Pprof, EBPF, Trace), 1)), func(a *Attribute) *map[string][]Source { return &a.Workloads }),
	}, more...))
}

func truthShape() shape.Of[Truth] {
	return shape.Object("truth", []shape.Key[Truth]{
		shape.Field("path", "The path at which an arm answers with what its parts cost.", shape.Matching(pathPattern, "a path that starts with /, such as /truth"), func(t *Truth) *string { return &t.Path }).Must(),
		shape.Field("cpu", "How much of the true CPU time may be missed.", shape.Percent(), func(t *Truth) *float64 { return &t.CPU }).Must(),
		shape.Field("least", "How much CPU time or waiting may be missed in any case.", shape.Duration(time.Nanosecond, time.Second), func(t *Truth) *time.Duration { return &t.Least }),
		shape.Field("bytes", "How much of the true bytes may be missed.", shape.Percent(), func(t *Truth) *float64 { return &t.Bytes }).Must(),
		shape.Field("least_bytes", "How many bytes may be missed in any case.", shape.Integer[int64](1, 1<<40), func(t *Truth) *int64 { return &t.LeastBytes }),
		shape.Field("waiting", "How much of the true waiting may be missed.", shape.Percent(), func(t *Truth) *float64 { return &t.Waiting }).Must(),
		shape.Field("bare", "For an arm the one that lacks those parts.", shape.Dict(partName, wantPart, part()), func(t *Truth) *map[string]string { return &t.Bare }),
	})
}

// attribute checks what is profiled.
func (c *checker) attribute() {
	c.attributed("attribute", c.Attribute)
	c.attributed("quick.attribute", c.Quick.Attribute)
	if c.Kind == Generators && c.has("attribute") {
		c.Wrong("attribute", "the arms of a study of kind %s are not profiled; leave attribute out", Generators)
	}
	if c.has("attribute") && !c.has("attribute.for") {
		c.Wrong("attribute", "attribute lacks the key for: how long a capture takes")
	}
	if c.has("quick.attribute") && !c.has("attribute") {
		c.Wrong("quick.attribute", "the short form profiles arms and the study does not; give the study attribute, too")
	}
	for arm, bare := range c.Attribute.Truth.Bare {
		path := "attribute.truth.bare." + arm
		c.refer(path, arm, "arm", c.arms)
		if c.refer(path, bare, "arm", c.arms) && arm == bare {
			c.Wrong(path, "arm %q lacks nothing that it has itself; name another", arm)
		}
	}
}

func (c *checker) attributed(path string, a Attribute) {
	c.referAll(path+".arms", a.Arms, "arm", c.arms)
	for name, sources := range a.Workloads {
		at := path + ".workloads." + name
		c.refer(at, name, "workload", c.workloads)
		for i, s := range sources {
			if slices.Index(sources, s) < i {
				c.Wrong(fmt.Sprintf("%s[%d]", at, i), "source %s is listed twice; list it once", s)
			}
		}
	}
}
