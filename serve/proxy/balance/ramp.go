package balance

import (
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// least is the part of its share that a target begins with.
const least = 0.1

// Ramp gives a target that is new, or healthy again, less than its share at first. The zero
// value gives all of it. It is safe for concurrent use.
type Ramp struct {
	since atomic.Int64 // when it began, in nanoseconds since 1970; 0: it has ended
	fell  atomic.Bool
}

// Begin says that the target is new.
func (r *Ramp) Begin(now time.Time) { r.since.Store(now.UnixNano()) }

// Fell says that the target is unhealthy: it begins anew once Spares is asked again.
func (r *Ramp) Fell() {
	if !r.fell.Load() {
		r.fell.Store(true)
	}
}

// Spares reports whether a healthy target is to be skipped this time: at first nine times of
// ten, and less and less until slow has passed.
func (r *Ramp) Spares(slow time.Duration, now time.Time) bool {
	if r.fell.Load() && r.fell.CompareAndSwap(true, false) {
		r.Begin(now)
	}
	since := r.since.Load()
	if since == 0 {
		return false
	}
	part := float64(now.UnixNano()-since) / float64(slow)
	if part >= 1 {
		r.since.CompareAndSwap(since, 0)
		return false
	}
	return rand.Float64() >= max(part, least)
}
