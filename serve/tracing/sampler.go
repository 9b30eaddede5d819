package tracing

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"
)

// Sampler says which requests are traced. [Fixed], [PerSecond] and [Adaptive] are there.
type Sampler interface {
	fmt.Stringer
	prepare() (decider, error)
}

// decider decides of a request by a random number and, if it is timed, by when it came. It is
// safe for concurrent use.
type decider struct {
	decide func(random uint64, now time.Duration) bool
	timed  bool
}

// Fixed traces a share of the requests, each by chance.
type Fixed struct {
	Share float64 // from 0 to 1
}

func (f Fixed) String() string { return fmt.Sprintf("%g %% of the requests", f.Share*100) }

func (f Fixed) prepare() (decider, error) {
	if !(f.Share >= 0 && f.Share <= 1) {
		return decider{}, fmt.Errorf("a share of %v is traced; set one from 0 to 1", f.Share)
	}
	bound := threshold(f.Share)
	return decider{decide: func(random uint64, _ time.Duration) bool { return random>>1 < bound }}, nil
}

// threshold is the number below which 63 random bits are with that probability.
func threshold(share float64) uint64 { return uint64(share * (1 << 63)) }

// PerSecond traces the first requests, so many in a second at most. It is GCRA with a
// burst of a second's. What it traces depends on when a request comes: shares must not be
// computed from its spans.
type PerSecond struct {
	Most int
}

func (p PerSecond) String() string { return fmt.Sprintf("%d requests a second at most", p.Most) }

func (p PerSecond) prepare() (decider, error) {
	if p.Most < 1 || p.Most > 1e6 {
		return decider{}, fmt.Errorf("%d requests a second are traced; set from 1 to a million", p.Most)
	}
	interval := int64(time.Second) / int64(p.Most)
	tolerance := interval * int64(p.Most)
	next := new(atomic.Int64) // the theoretical arrival time
	return decider{timed: true, decide: func(_ uint64, now time.Duration) bool {
		for {
			was := next.Load()
			at := max(was, int64(now)) + interval
			if at-int64(now) > tolerance {
				return false
			}
			if next.CompareAndSwap(was, at) {
				return true
			}
		}
	}}, nil
}

// Adaptive traces a share that makes about Target traces a second, each request by
// chance. Once a second, with n requests in the t seconds since the last time, the rate
// that it expects and the share become
//
//	rate  ← (rate + n/t) / 2
//	share ← min(1, max(Least, Target/rate))
//
// It begins with a share of Least, or of 1 % if Least is 0. So after the load has jumped
// by a factor f, at most f·Target requests are traced in the next second.
type Adaptive struct {
	Target int     // traces a second
	Least  float64 // share, whatever the load
}

func (a Adaptive) String() string {
	return fmt.Sprintf("about %d requests a second, %g %% of them at least", a.Target, a.Least*100)
}

func (a Adaptive) prepare() (decider, error) {
	if a.Target < 1 || !(a.Least >= 0 && a.Least <= 1) {
		return decider{}, fmt.Errorf("a target of %d traces a second, a share of %v at least; set a target from 1 and a share from 0 to 1", a.Target, a.Least)
	}
	ad := &adaptive{Adaptive: a}
	ad.bound.Store(threshold(max(a.Least, 0.01)))
	return decider{ad.decide, true}, nil
}

// adaptive is the state of Adaptive.
type adaptive struct {
	Adaptive
	seen  atomic.Int64  // requests since at
	at    atomic.Int64  // when the share was set last, in ns
	bound atomic.Uint64 // of the share
	rate  float64       // used by the one that moved at
	begun bool
}

func (a *adaptive) decide(random uint64, now time.Duration) bool {
	a.seen.Add(1)
	if at := a.at.Load(); int64(now)-at >= int64(time.Second) && a.at.CompareAndSwap(at, math.MaxInt64) {
		a.adapt(time.Duration(int64(now) - at))
		a.at.Store(int64(now))
	}
	return random>>1 < a.bound.Load()
}

// adapt sets the share. Only one goroutine is here at a time.
func (a *adaptive) adapt(past time.Duration) {
	rate := float64(a.seen.Swap(0)) / past.Seconds()
	if a.begun {
		rate = (a.rate + rate) / 2
	}
	a.rate, a.begun = rate, true
	a.bound.Store(threshold(min(1, max(a.Least, float64(a.Target)/rate))))
}
