// Package pprof reads and writes profiles in pprof's form, from files and from
// the end points of net/http/pprof.
package pprof

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"time"

	"github.com/google/pprof/profile"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/internal/pclntab"
)

// Kind is what a profile counts.
type Kind int

// Kinds of profiles.
const (
	CPU        Kind = iota // Count: stacks seen; Value: nanoseconds
	Allocs                 // Count: objects; Value: bytes, allocated since the program began or, of a delta profile, within it
	Live                   // Count: objects; Value: bytes, in use after the last collection
	Goroutines             // Count and Value: goroutines
	Contention             // Count: times that a lock was waited for; Value: nanoseconds; of who held it
	Leaks                  // Count and Value: goroutines that wait for what nothing can do any more
)

func (k Kind) String() string {
	return [...]string{"CPU", "allocation", "live heap", "goroutine", "contention", "goroutine leak"}[k]
}

// columns names what a kind's profiles count, and the value beside it.
func (k Kind) columns() (count, value profile.ValueType) {
	return [...]profile.ValueType{
			{Type: "samples", Unit: "count"}, {Type: "alloc_objects", Unit: "count"}, {Type: "inuse_objects", Unit: "count"},
			{Type: "goroutine", Unit: "count"}, {Type: "contentions", Unit: "count"}, {Type: "goroutineleak", Unit: "count"},
		}[k], [...]profile.ValueType{
			{Type: "cpu", Unit: "nanoseconds"}, {Type: "alloc_space", Unit: "bytes"}, {Type: "inuse_space", Unit: "bytes"},
			{Type: "goroutine", Unit: "count"}, {Type: "delay", Unit: "nanoseconds"}, {Type: "goroutineleak", Unit: "count"},
		}[k]
}

// Profile is one profile, read.
type Profile struct {
	Kind     Kind
	Duration time.Duration // 0 if the profile does not say
	Stacks   []cost.Stack
	Warnings []error // caveats, such as of stacks that are not whole

	raw *profile.Profile
}

// Read reads a profile, compressed or not. It refuses kinds that say nothing of
// who spends what: heaps in use without allocations, blocks, mutexes. Errors are
// ErrKind, ErrTooLarge and ErrImplausible, among others.
func Read(r io.Reader) (*Profile, error) {
	raw, err := parse(r)
	if err != nil {
		return nil, err
	}
	for _, kind := range []Kind{CPU, Allocs} {
		if _, _, err := index(raw, kind); err == nil {
			return convert(raw, kind)
		}
	}
	return nil, fmt.Errorf("profile of %s: %w", kinds(raw), ErrKind)
}

// readKind reads a profile as one of a kind.
func readKind(r io.Reader, kind Kind) (*Profile, error) {
	raw, err := parse(r)
	if err != nil {
		return nil, err
	}
	return convert(raw, kind)
}

func convert(raw *profile.Profile, kind Kind) (*Profile, error) {
	count, value, err := index(raw, kind)
	if err != nil {
		return nil, err
	}
	if expand(raw) > mostFrames {
		return nil, fmt.Errorf("%w: more than %d frames", ErrTooLarge, mostFrames)
	}
	if err := plausible(raw, count, value); err != nil {
		return nil, fmt.Errorf("%s profile: %w", kind, err)
	}
	p := &Profile{Kind: kind, raw: raw, Duration: time.Duration(raw.DurationNanos)}
	for _, s := range raw.Sample {
		if s.Value[value] == 0 && s.Value[count] == 0 {
			continue
		}
		p.Stacks = append(p.Stacks, cost.Stack{Frames: frames(s), Count: float64(s.Value[count]), Value: float64(s.Value[value])})
	}
	if kind == CPU {
		if err := cutStacks(raw, count); err != nil {
			p.Warnings = append(p.Warnings, err)
		}
	}
	return p, nil
}

// ErrKind says that a profile is of a kind that owners cannot be told from.
var ErrKind = errors.New("neither a CPU nor an allocation profile")

// index finds a kind's columns.
func index(p *profile.Profile, kind Kind) (count, value int, err error) {
	find := func(want profile.ValueType) int {
		return slices.IndexFunc(p.SampleType, func(t *profile.ValueType) bool { return t.Type == want.Type && t.Unit == want.Unit })
	}
	c, v := kind.columns()
	count, value = find(c), find(v)
	if count < 0 || value < 0 {
		return 0, 0, fmt.Errorf("profile of %s is no %s profile", kinds(p), kind)
	}
	return count, value, nil
}

func kinds(p *profile.Profile) string {
	names := make([]string, len(p.SampleType))
	for i, t := range p.SampleType {
		names[i] = t.Type[:min(len(t.Type), 40)]
	}
	return fmt.Sprintf("%q", names)
}

// Program returns the name of the program's file, without directories; "" if the profile
// does not tell. The first of what was mapped is the program itself.
func (p *Profile) Program() string {
	if len(p.raw.Mapping) == 0 || p.raw.Mapping[0].File == "" {
		return ""
	}
	return path.Base(p.raw.Mapping[0].File)
}

// frames returns a stack's functions, innermost first, inlined ones among them.
func frames(s *profile.Sample) []cost.Frame {
	var all []cost.Frame
	for _, at := range s.Location {
		if len(at.Line) == 0 {
			all = append(all, cost.Frame{Func: unknown(at)})
		}
		for _, l := range at.Line {
			f := cost.Frame{Line: int(l.Line)}
			if l.Function != nil {
				f.Func, f.File, f.Decl = pclntab.Printed(l.Function.Name), l.Function.Filename, int(l.Function.StartLine)
			}
			all = append(all, f)
		}
	}
	return all
}

// unknown names an address without a function by what it lies in.
func unknown(at *profile.Location) string {
	if at.Mapping != nil && at.Mapping.File != "" {
		return "[" + at.Mapping.File + "]"
	}
	return "[unknown]"
}

// Label adds to every stack of a profile its owner and cause as labels "owner"
// and "cause", by which any viewer of pprof's can group and filter, and writes
// it.
func (p *Profile) Label(w io.Writer) error {
	z := gzip.NewWriter(w)
	return errors.Join(p.LabelBy(cost.Learn(p.Stacks), z), z.Close())
}

// LabelBy is Label by rules that were learned before. What it writes is not compressed.
func (p *Profile) LabelBy(rules *cost.Rules, w io.Writer) error {
	before := make([]map[string][]string, len(p.raw.Sample)) // a copy of the profile would take as long as writing it
	for k, s := range p.raw.Sample {
		owner, cause := rules.Charge(frames(s))
		before[k], s.Label = s.Label, maps.Clone(s.Label)
		if s.Label == nil {
			s.Label = map[string][]string{}
		}
		s.Label["owner"], s.Label["cause"] = []string{owner.Name}, []string{cause.String()}
	}
	err := p.raw.WriteUncompressed(w)
	for k, s := range p.raw.Sample {
		s.Label = before[k]
	}
	return err
}
