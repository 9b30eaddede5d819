package script

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/load/pace"
)

// Profile changes a profile. What is zero stays as the profile has it.
type Profile struct {
	Arrive   *pace.Schedule
	Duration time.Duration
	FailIf   []load.Threshold
}

// The profiles by name.
const (
	Smoke      = "smoke"      // does it work at all: at most one session a second, for 10 s
	Pressure   = "pressure"   // the file's rate, for 1 min
	Stress     = "stress"     // from the file's rate to 4 times it, within 2 min
	Spike      = "spike"      // the file's rate for 30 s, 10 times it for 10 s, and again for 50 s
	Soak       = "soak"       // the file's rate, for 2 h
	Breakpoint = "breakpoint" // the file's rate, doubled every 20 s until a threshold fails
)

// As returns the file in the form of a profile; f stays as it is. The thresholds of sessions
// are the file's and the profile's. length, if not 0, is that of the measured part in place
// of the profile's, whose phases keep their shares; of breakpoint it is that of each rate.
// The error is that users do not arrive, or that there is no such profile.
func (f *File) As(name string, length time.Duration) (*File, error) {
	rate := f.Rate()
	if rate == 0 {
		return nil, fmt.Errorf("profile %s needs users who arrive, and the file counts them", name)
	}
	var s *pace.Schedule
	var failIf string
	switch name {
	case Smoke:
		s, failIf = steady(min(rate, 1), 10*time.Second), "errors>0%"
	case Pressure:
		s, failIf = steady(rate, time.Minute), "errors>1%"
	case Stress:
		s, failIf = pace.Ramp(rate, 4*rate, 2*time.Minute), "errors>5%"
	case Spike:
		s, failIf = &pace.Schedule{Phases: slices.Concat(steady(rate, 30*time.Second).Phases, steady(10*rate, 10*time.Second).Phases, steady(rate, 50*time.Second).Phases)}, "errors>5%"
	case Soak:
		s, failIf = steady(rate, 2*time.Hour), "errors>0.1%"
	case Breakpoint:
		s, failIf = steady(rate, 20*time.Second), "errors>5%"
	default:
		return nil, fmt.Errorf("no profile is called %q", name)
	}
	limit, err := load.ParseThreshold(failIf)
	if err != nil {
		return nil, err
	}
	mine := f.Profiles[name]
	g := *f
	g.Duration = cmp.Or(length, mine.Duration)
	if mine.Arrive != nil {
		if _, ends := mine.Arrive.Length(); !ends && g.Duration == 0 {
			g.Duration, _ = s.Length()
		}
		s = mine.Arrive
	}
	g.Users.Arrive = s
	g.stretch()
	g.Users.Arrive.Random = s.Random || f.Users.Arrive.Random
	more := []load.Threshold{limit}
	if mine.FailIf != nil {
		more = slices.Clone(mine.FailIf)
	}
	g.FailIf = append(slices.Clone(f.FailIf), slices.DeleteFunc(more, func(t load.Threshold) bool { return slices.Contains(f.FailIf, t) })...)
	return &g, nil
}

// Lasting returns the file with a measured part of this length, to which the phases of the
// schedule are stretched; f stays as it is.
func (f *File) Lasting(length time.Duration) *File {
	g := *f
	g.Duration = length
	if f.Users.Arrive != nil {
		g.stretch()
		g.Users.Arrive.Random = f.Users.Arrive.Random
	}
	return &g
}

// stretch has the phases of the schedule last as long as the measured part.
func (f *File) stretch() {
	s := &pace.Schedule{Phases: slices.Clone(f.Users.Arrive.Phases)}
	if whole, ends := s.Length(); ends && f.Duration > 0 {
		var before, after time.Duration // the end of a phase, and its end once stretched
		for i, p := range s.Phases {
			before += p.For
			end := time.Duration(float64(before) / float64(whole) * float64(f.Duration))
			s.Phases[i].For, after = max(1, end-after), end
		}
		f.Duration, _ = s.Length()
	}
	f.Users.Arrive = s
}

// At returns the file with sessions at a constant rate each second; f stays as it is.
func (f *File) At(rate float64) *File {
	g := *f
	g.Users = Users{Arrive: pace.Constant(rate), Most: f.Users.Most}
	if f.Users.Arrive != nil {
		g.Users.Arrive.Random = f.Users.Arrive.Random
	}
	g.Duration = f.Planned()
	return &g
}

// Rate is the highest rate of arrivals in sessions a second; 0 in the closed loop.
func (f *File) Rate() (rate float64) {
	if f.Users.Arrive == nil {
		return 0
	}
	for _, p := range f.Users.Arrive.Phases {
		rate = max(rate, p.From, p.To)
	}
	return rate
}

// steady is a rate for a time.
func steady(rate float64, length time.Duration) *pace.Schedule { return pace.Steps(length, rate) }
