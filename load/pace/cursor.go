package pace

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Cursor walks the intended starts of one share of a schedule.
type Cursor struct {
	phases []Phase       // under way and to come
	start  time.Duration // of the phase under way
	before float64       // mass when it started

	mass float64    // of the next arrival
	step float64    // mass between two arrivals of this share, on average
	rng  *rand.Rand // nil: arrivals are even
	last time.Duration
}

// Cursor returns one of shares shares, 0 ≤ share < shares: of even arrivals the
// ones numbered share, share + shares and so on, of random ones an independent
// process at that part of the rate. Of a schedule with parts, the shares are those of
// its part, which other parts may divide otherwise. The schedule must be valid. A share
// that does not exist panics.
func (s *Schedule) Cursor(share, shares int) *Cursor {
	if share < 0 || share >= shares {
		panic(fmt.Sprintf("pace: share %d of %d", share, shares))
	}
	if s.Parts > 0 {
		share, shares = s.Part+s.Parts*share, s.Parts*shares
	}
	c := &Cursor{phases: s.Phases, mass: float64(share), step: float64(shares)}
	if s.Random {
		c.rng = stream(s.Seed, uint64(share), uint64(shares))
		c.mass = 0
		c.advance()
	}
	return c
}

// stream is a source of randomness of its own for each share of each split.
func stream(seed, share, shares uint64) *rand.Rand {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[0:], seed)
	binary.LittleEndian.PutUint64(key[8:], share)
	binary.LittleEndian.PutUint64(key[16:], shares)
	return rand.New(rand.NewChaCha8(key))
}

func (c *Cursor) advance() {
	if c.rng != nil {
		c.mass += c.rng.ExpFloat64() * c.step
		return
	}
	c.mass += c.step
}

// Next is the next intended start, counted from that of the schedule and
// rounded down to a nanosecond. ok is false when there is none left, which in a
// schedule without end is after 292 years. Starts never decrease. Next allocates
// nothing.
func (c *Cursor) Next() (at time.Duration, ok bool) {
	for len(c.phases) > 0 {
		p, m := c.phases[0], max(0, c.mass-c.before)
		end := p.For
		if end == 0 {
			end = math.MaxInt64 - c.start
		}
		// Either of the two may be rounded up to the end.
		if p.For == 0 || m < p.mass(p.For) {
			if ns := p.at(m); ns < float64(end) {
				// Within a ramp, rounding may also swap neighbours.
				c.last = max(c.last, c.start+time.Duration(ns))
				c.advance()
				return c.last, true
			}
		}
		c.before += p.mass(p.For)
		c.start += p.For
		c.phases = c.phases[1:]
	}
	return 0, false
}
