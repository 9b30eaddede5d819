// Package budget bounds how many attempts there are beyond the first ones, so that an
// upstream in trouble gets no storm.
package budget

import (
	"sync/atomic"
	"time"
)

// attempt is one of them: a budget counts in thousandths.
const attempt = 1000

// Budget is attempts that have been saved up. Set Most and Each before its first use, and
// call Fill. It is safe for concurrent use.
type Budget struct {
	// Most is how many attempts it holds at most.
	Most int64
	// Each is how long it takes to gain one by waiting. 0: none is.
	Each time.Duration

	left atomic.Int64
	at   atomic.Int64 // when time was last counted, in nanoseconds since 1970; 0: never
}

// Fill fills it.
func (b *Budget) Fill() { b.left.Store(b.Most * attempt) }

// Earn adds what a request is worth: a share of an attempt, if it is above 0.
func (b *Budget) Earn(share float64) {
	if share > 0 {
		b.gain(int64(share * attempt))
	}
}

func (b *Budget) gain(n int64) {
	for {
		left := b.left.Load()
		now := min(left+n, b.Most*attempt)
		if now == left || b.left.CompareAndSwap(left, now) {
			return
		}
	}
}

// Spend takes an attempt, and reports whether there was one. There is none where requests
// earn nothing.
func (b *Budget) Spend(share float64) bool {
	if !(share > 0) {
		return false
	}
	if b.Each > 0 {
		b.wait(time.Now().UnixNano())
	}
	for {
		left := b.left.Load()
		if left < attempt {
			return false
		}
		if b.left.CompareAndSwap(left, left-attempt) {
			return true
		}
	}
}

// wait adds what was gained by time until now.
func (b *Budget) wait(now int64) {
	at := b.at.Load()
	if at == 0 || now < at { // the first call, or the clock was set back
		b.at.CompareAndSwap(at, now)
		return
	}
	piece := max(int64(b.Each)/attempt, 1)
	n := min((now-at)/piece, b.Most*attempt)
	if n > 0 && b.at.CompareAndSwap(at, now-(now-at)%piece) {
		b.gain(n)
	}
}
