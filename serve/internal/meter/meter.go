// Package meter measures how long one direction of a connection waits on the other side, and
// how many bytes come of it.
package meter

import (
	"math"
	"sync/atomic"
	"time"
)

// Window is how long a connection may wait with little to show for it.
type Window struct {
	Stall time.Duration // of waiting; zero: for ever
	Least int64         // bytes that it asks for, at least one
}

// Meter keeps the waits of one direction and what came of them. Times are nanoseconds of
// the caller's clock, never 0. The zero value is ready. Safe for concurrent use; one
// goroutine at a time calls Begin and End.
type Meter struct {
	from  atomic.Int64 // when the wait began, 0 = not waiting
	spent atomic.Int64 // nanoseconds waited before, in this window
	bytes atomic.Int64 // moved in this window
}

// Begin notes that a wait begins.
func (m *Meter) Begin(now int64) { m.from.Store(now) }

// Waiting reports whether a wait has begun and not ended.
func (m *Meter) Waiting() bool { return m.from.Load() != 0 }

// End notes that n bytes came of a wait. Once a window is full and enough has come, a
// new one begins.
func (m *Meter) End(now int64, n int, w Window) {
	from := m.from.Swap(0)
	if from == 0 {
		return
	}
	spent := m.spent.Add(now - from)
	bytes := m.bytes.Add(int64(n))
	if w.Stall > 0 && time.Duration(spent) >= w.Stall && bytes >= w.Least {
		m.Forget()
	}
}

// Stalled reports whether the wait of now has filled a window with too little.
// If it has filled one in which enough came before, the next begins.
func (m *Meter) Stalled(now int64, w Window) bool {
	from := m.from.Load()
	if from == 0 || w.Stall == 0 || time.Duration(m.spent.Load()+now-from) <= w.Stall {
		return false
	}
	if m.bytes.Load() < max(1, w.Least) {
		return true
	}
	m.Renew(now)
	return false
}

// StallsFrom returns a time before which Stalled is false, whatever begins and ends from now
// on; math.MaxInt64 if it always is.
func (m *Meter) StallsFrom(now int64, w Window) int64 {
	if w.Stall == 0 {
		return math.MaxInt64
	}
	from := m.from.Load()
	if from == 0 {
		from = now
	}
	return from + int64(w.Stall) - m.spent.Load() + 1
}

// Renew begins a window, unless the wait has ended by now.
func (m *Meter) Renew(now int64) {
	from := m.from.Load()
	if from == 0 {
		return
	}
	m.Forget()
	m.from.CompareAndSwap(from, now)
}

// Forget begins anew.
func (m *Meter) Forget() {
	m.spent.Store(0)
	m.bytes.Store(0)
}
