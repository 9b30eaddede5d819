// Package pace gives the intended starts of requests as pure functions.
//
// A schedule is a rate over time. Its integral is the mass M(t), the number of
// requests intended before t; arrival i starts where M reaches i, or, with
// random (Poisson) arrivals, where M reaches the sum of i unit exponentials.
// Both invert M in closed form, so a schedule does not drift however long it
// runs, and the same schedule always gives the same starts.
//
// The closed loop has no schedule. A Schedule is not changed by its methods and
// may be shared; a Cursor belongs to one goroutine.
package pace

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// MaxRate is the highest rate taken, in requests a second.
const MaxRate = 1e8

// Phase is a part of a schedule in which the rate moves linearly.
type Phase struct {
	From, To float64       // requests a second, at its start and end
	For      time.Duration // 0 only in the last phase, whose rate must be constant: without end
}

// Schedule is a rate over time.
type Schedule struct {
	Phases []Phase
	Random bool   // arrivals are a Poisson process of that rate
	Seed   uint64 // of the random arrivals
}

// Constant is an even rate without end.
func Constant(rate float64) *Schedule {
	return &Schedule{Phases: []Phase{{From: rate, To: rate}}}
}

// Poisson is a Poisson process without end.
func Poisson(rate float64, seed uint64) *Schedule {
	s := Constant(rate)
	s.Random, s.Seed = true, seed
	return s
}

// Ramp moves the rate evenly, and ends.
func Ramp(from, to float64, over time.Duration) *Schedule {
	return &Schedule{Phases: []Phase{{From: from, To: to, For: over}}}
}

// Steps holds each rate for a time, and ends.
func Steps(each time.Duration, rates ...float64) *Schedule {
	s := &Schedule{}
	for _, r := range rates {
		s.Phases = append(s.Phases, Phase{From: r, To: r, For: each})
	}
	return s
}

// Validate tells what makes the schedule impossible.
func (s *Schedule) Validate() error {
	if len(s.Phases) == 0 {
		return errors.New("schedule has no phase")
	}
	mass := 0.0
	for i, p := range s.Phases {
		last := i == len(s.Phases)-1
		switch {
		case !(p.From >= 0 && p.From <= MaxRate && p.To >= 0 && p.To <= MaxRate):
			return fmt.Errorf("phase %d: rates %v to %v are not within 0 and %.0f requests a second", i+1, p.From, p.To, MaxRate)
		case p.For < 0:
			return fmt.Errorf("phase %d: lasts %v", i+1, p.For)
		case p.For == 0 && !last:
			return fmt.Errorf("phase %d: only the last phase may be without end", i+1)
		case p.For == 0 && p.From != p.To:
			return fmt.Errorf("phase %d: a rate that moves needs an end", i+1)
		case p.For == 0 && p.From == 0:
			return fmt.Errorf("phase %d: a rate of 0 without end", i+1)
		}
		mass += p.mass(p.For)
		if p.For == 0 {
			mass = math.Inf(1)
		}
	}
	if mass < 1 {
		return errors.New("schedule is too short for a single request")
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

// RateAt is the rate at t, in requests a second; 0 outside the schedule.
func (s *Schedule) RateAt(t time.Duration) float64 {
	for _, p := range s.Phases {
		if t < 0 {
			return 0
		}
		if p.For == 0 {
			return p.From
		}
		if t < p.For {
			return p.From + (p.To-p.From)*float64(t)/float64(p.For)
		}
		t -= p.For
	}
	return 0
}

// Count is the number of requests expected to be intended before t, exact when
// arrivals are not random.
func (s *Schedule) Count(t time.Duration) int64 {
	mass := 0.0
	for _, p := range s.Phases {
		d := t
		if p.For > 0 {
			d = min(t, p.For)
		}
		mass += p.mass(d)
		if t -= d; t <= 0 {
			break
		}
	}
	return int64(math.Ceil(mass - 1e-9))
}

// mass is the number of requests intended in the first d of the phase.
func (p Phase) mass(d time.Duration) float64 {
	x := d.Seconds()
	if p.For == 0 || p.From == p.To {
		return p.From * x
	}
	return p.From*x + (p.To-p.From)*x*x/(2*p.For.Seconds())
}

// at inverts mass: the time in seconds at which the phase has intended m.
func (p Phase) at(m float64) float64 {
	if p.From == p.To {
		return m / p.From
	}
	// a x² + b x = m; this form of the root does not cancel when a is small.
	a, b := (p.To-p.From)/(2*p.For.Seconds()), p.From
	return 2 * m / (b + math.Sqrt(max(0, b*b+4*a*m)))
}

// Cursor walks the intended starts of one share of a schedule.
type Cursor struct {
	s      *Schedule
	phase  int
	before float64 // mass of the phases that have ended
	start  float64 // of the phase under way, seconds
	next   float64 // mass of the next arrival
	step   float64
	rng    *rand.Rand
	last   time.Duration
}

// Cursor returns share number share of shares ≥ 1. Even arrivals are dealt out
// in turn; random ones are independent processes that add up to the schedule.
// The schedule must be valid.
func (s *Schedule) Cursor(share, shares int) *Cursor {
	c := &Cursor{s: s, next: float64(share), step: float64(shares)}
	if s.Random {
		c.rng = rand.New(rand.NewPCG(s.Seed, uint64(share)))
		c.next = c.rng.ExpFloat64() * c.step
	}
	return c
}

// Next is the next intended start, counted from the schedule's; ok is false
// when the schedule has ended. Starts never decrease. It allocates nothing.
func (c *Cursor) Next() (at time.Duration, ok bool) {
	for {
		if c.phase >= len(c.s.Phases) {
			return 0, false
		}
		p := c.s.Phases[c.phase]
		if p.For == 0 || c.next-c.before < p.mass(p.For)*(1-1e-12) {
			break
		}
		c.before += p.mass(p.For)
		c.start += p.For.Seconds()
		c.phase++
	}
	p := c.s.Phases[c.phase]
	at = time.Duration((c.start + p.at(c.next-c.before)) * 1e9)
	c.last = max(c.last, at)
	if c.rng != nil {
		c.next += c.rng.ExpFloat64() * c.step
	} else {
		c.next += c.step
	}
	return c.last, true
}
