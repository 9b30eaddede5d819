package hist

import (
	"iter"
	"math"
)

// Count is the number of values.
func (h *Hist) Count() uint64 { return h.n }

// Clamped is the number of values that were above Highest.
func (h *Hist) Clamped() uint64 { return h.clamped }

// Min is the smallest value in nanoseconds, 0 when empty.
func (h *Hist) Min() int64 {
	if h.n == 0 {
		return 0
	}
	return h.min
}

// Max is the largest value in nanoseconds, 0 when empty.
func (h *Hist) Max() int64 {
	if h.n == 0 {
		return 0
	}
	return h.max
}

// Mean is the arithmetic mean in nanoseconds, of the values themselves and not
// of their buckets; 0 when empty.
func (h *Hist) Mean() float64 {
	if h.n == 0 {
		return 0
	}
	return h.sum.float() / float64(h.n)
}

// Quantile is the value of rank ⌈q·n⌉ in nanoseconds (nearest rank), given as
// the highest value of its bucket as HdrHistogram does, but never beyond Max:
// at most 0.1 % above the true one. A q outside [0,1] counts as the nearer
// end, the first rank and the last; 0 when empty.
func (h *Hist) Quantile(q float64) int64 {
	if h.n == 0 {
		return 0
	}
	rank := rank(q, h.n)
	var seen uint64
	for b := range h.Buckets() {
		if seen += b.Count; seen >= rank {
			return min(b.Hi, h.max)
		}
	}
	return h.max
}

// Needed is the number of values without which the quantile q is not shown: ten
// must be expected beyond it on its rarer side, so p99.9 needs 10,000. It is 1 for
// the extremes, q ≤ 0 and q ≥ 1, which are single values however many there are.
func Needed(q float64) uint64 {
	tail := min(q, 1-q)
	if !(tail > 0) {
		return 1
	}
	return uint64(math.Ceil(10 / tail * (1 - 1e-9))) // 1−q is not exact: 0.9 must give 100, not 101
}

// rank is ⌈q·n⌉ within [1,n]. The product is taken down by its own rounding
// error first: 0.07·100 is 7.000000000000001 in floating point, and rank 7.
func rank(q float64, n uint64) uint64 {
	r := math.Ceil(q * float64(n) * (1 - 0x1p-51))
	switch {
	case !(r >= 1): // NaN too
		return 1
	case r >= float64(n):
		return n
	}
	return uint64(r)
}

// CountAbove is the number of values in buckets that lie wholly above ns: those
// greater than ns but for the ones that share its bucket.
func (h *Hist) CountAbove(ns int64) uint64 {
	if h.n == 0 || ns >= h.max {
		return 0
	}
	n := h.n
	for b := range h.Buckets() {
		if b.Lo > ns {
			break
		}
		n -= b.Count
	}
	return n
}

// Bucket is a range of values that are not distinguished, and how many fell in it.
type Bucket struct {
	Lo, Hi int64 // lowest and highest value, ns
	Count  uint64
}

// Buckets yields the buckets that hold values, ascending.
func (h *Hist) Buckets() iter.Seq[Bucket] {
	return func(yield func(Bucket) bool) {
		if h.n == 0 {
			return
		}
		last := index(h.max)
		for i := index(h.min); i <= last; i++ {
			o := h.octaves[i>>halfBits]
			if o == nil {
				i |= half - 1 // on to the next octave
				continue
			}
			n := o[i&(half-1)]
			if n == 0 {
				continue
			}
			lo, hi := bounds(i)
			if !yield(Bucket{Lo: lo, Hi: hi, Count: n}) {
				return
			}
		}
	}
}

// Equal reports whether both hold the same number of values in every bucket.
func (h *Hist) Equal(o *Hist) bool {
	if h.n != o.n {
		return false
	}
	// Equal totals: a bucket that only o holds leaves one of h's short.
	for b := range h.Buckets() {
		if o.countAt(index(b.Lo)) != b.Count {
			return false
		}
	}
	return true
}
