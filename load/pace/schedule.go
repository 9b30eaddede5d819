// Package pace gives the intended starts of requests as pure functions.
//
// A schedule is a rate over time, in phases in which the rate stays or moves
// evenly. Its integral is the mass M(t), the number of requests intended before
// t. Even arrivals start where M reaches 0, 1, 2, …; random ones (a Poisson
// process) where it reaches the sums of unit exponentials. Both come from
// inverting M in closed form: a schedule does not drift however long it runs,
// and gives the same starts every time.
//
// Several workers share a schedule through cursors. Even arrivals are dealt out
// in turn, random ones are independent processes that add up to the schedule,
// so the union is the schedule however many share it.
//
// The closed loop, in which answers trigger requests, has no schedule. A
// Schedule is not changed by its methods and may be shared; a Cursor belongs to
// one goroutine. Nothing here waits: sleeping until a start is the caller's.
package pace

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// MaxRate is the highest rate taken, in requests a second.
const MaxRate = 1e8

// Phase is a part of a schedule in which the rate moves evenly.
type Phase struct {
	From, To float64       // requests a second at its start and its end, 0 to MaxRate
	For      time.Duration // 0 only in the last phase, whose rate must stay: without end
}

// Schedule is a rate over time.
type Schedule struct {
	Phases []Phase
	Random bool   // arrivals are a Poisson process of that rate
	Seed   uint64 // of the random arrivals

	// Part and Parts deal the schedule out to generators that know nothing of each other:
	// the cursors share out part Part, from 0, of Parts. 0 parts are the whole. Length,
	// RateAt and Count are the whole's.
	Part, Parts int
}

// Constant is an even rate in requests a second, without end.
func Constant(rate float64) *Schedule {
	return &Schedule{Phases: []Phase{{From: rate, To: rate}}}
}

// Poisson is a Poisson process of a rate in requests a second, without end.
func Poisson(rate float64, seed uint64) *Schedule {
	s := Constant(rate)
	s.Random, s.Seed = true, seed
	return s
}

// Ramp moves from one rate in requests a second to another, and ends.
func Ramp(from, to float64, over time.Duration) *Schedule {
	return &Schedule{Phases: []Phase{{From: from, To: to, For: over}}}
}

// Steps holds each rate in requests a second for a time, and ends.
func Steps(each time.Duration, rates ...float64) *Schedule {
	s := &Schedule{}
	for _, r := range rates {
		s.Phases = append(s.Phases, Phase{From: r, To: r, For: each})
	}
	return s
}

// Validate reports what makes the schedule impossible.
func (s *Schedule) Validate() error {
	if s.Parts < 0 || s.Part < 0 || s.Part >= max(1, s.Parts) {
		return fmt.Errorf("part %d of %d, counted from 0, does not exist", s.Part, s.Parts)
	}
	mass, length := 0.0, time.Duration(0)
	for i, p := range s.Phases {
		if err := p.validate(i == len(s.Phases)-1); err != nil {
			return fmt.Errorf("phase %d: %w", i+1, err)
		}
		if p.For > math.MaxInt64-length {
			return fmt.Errorf("phase %d: the schedule would last more than %v", i+1, time.Duration(math.MaxInt64))
		}
		length += p.For
		mass += p.From + p.To
	}
	if mass == 0 {
		return errors.New("schedule has no request")
	}
	return nil
}

func (p Phase) validate(last bool) error {
	for _, r := range []float64{p.From, p.To} {
		if !(r >= 0 && r <= MaxRate) {
			return fmt.Errorf("rate %v is not within 0 and %.0f requests a second", r, MaxRate)
		}
	}
	switch {
	case p.For < 0:
		return fmt.Errorf("lasts %v", p.For)
	case p.For > 0:
		return nil
	case !last:
		return errors.New("only the last phase may be without end")
	case p.From != p.To:
		return errors.New("a rate that moves needs an end")
	case p.From == 0:
		return errors.New("a rate of 0 needs an end")
	}
	return nil
}

// Length is the time until the schedule ends; ok is false when it does not.
func (s *Schedule) Length() (d time.Duration, ok bool) {
	for _, p := range s.Phases {
		if p.For == 0 {
			return 0, false
		}
		d += p.For
	}
	return d, true
}

// RateAt is the rate at t in requests a second, that of the later phase between
// two; 0 outside the schedule.
func (s *Schedule) RateAt(t time.Duration) float64 {
	if t < 0 {
		return 0
	}
	for _, p := range s.Phases {
		switch {
		case p.For == 0:
			return p.From
		case t < p.For:
			return p.From + (p.To-p.From)*float64(t)/float64(p.For)
		}
		t -= p.For
	}
	return 0
}

// Count is the number of requests intended before t: exactly those that the
// cursors give, or their expected number, rounded, when arrivals are random.
// The schedule must be valid.
func (s *Schedule) Count(t time.Duration) int64 {
	if t <= 0 {
		return 0
	}
	mass, left := 0.0, t
	for _, p := range s.Phases {
		d := left
		if p.For > 0 {
			d = min(d, p.For)
		}
		mass += p.mass(d)
		left -= d
	}
	if s.Random {
		return int64(math.Round(mass))
	}
	// Where a request starts at t itself, rounding decides: ask the request.
	n := int64(math.Ceil(mass))
	switch {
	case n > 0 && !s.startsBefore(n-1, t):
		return n - 1
	case s.startsBefore(n, t):
		return n + 1
	}
	return n
}

// startsBefore reports whether even arrival i, from 0, starts before t.
func (s *Schedule) startsBefore(i int64, t time.Duration) bool {
	c := Cursor{phases: s.Phases, mass: float64(i)}
	at, ok := c.Next()
	return ok && at < t
}

// mass is the number of requests intended in the first d of the phase.
func (p Phase) mass(d time.Duration) float64 {
	x := float64(d) / 1e9
	if p.From == p.To {
		return p.From * x
	}
	return p.From*x + p.bend()*x*x
}

// at inverts mass: the nanosecond of the phase at which m ≥ 0 is reached.
func (p Phase) at(m float64) float64 {
	switch {
	case m == 0:
		return 0
	case p.From == p.To:
		return m * 1e9 / p.From
	}
	// a·x² + b·x = m. This form of the root does not cancel when a is small.
	a, b := p.bend(), p.From
	return 2e9 * m / (b + math.Sqrt(max(0, b*b+4*a*m)))
}

// bend is half of what the rate gains a second.
func (p Phase) bend() float64 { return (p.To - p.From) * 0.5e9 / float64(p.For) }
