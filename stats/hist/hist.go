// Package hist counts latencies in a histogram that merges without loss.
//
// Values are whole nanoseconds. The buckets are those of HdrHistogram for 1 ns
// to one hour at three significant digits: single nanoseconds up to 2,047 ns,
// and no wider than 0.1 % of the value above. All histograms share them, so
// merging and subtracting lose nothing, and a histogram goes through an HDR
// log (WriteLog, ReadLog) count by count. The number of values, their extremes
// and their sum are exact besides.
//
// Memory is taken by the octave, 8 KiB the first time that a value falls in
// one: a histogram of the usual latencies has about ten, one of everything
// from 0 to an hour 33. Nothing else is allocated by recording.
//
// A Hist is not safe for concurrent use: give each recorder its own and merge.
// It is no place for values that are not durations, or for fewer of them than
// one would sort.
package hist

import "math/bits"

// The layout that HdrHistogram computes for three significant digits from 1:
// 2,048 sub-buckets, the least power of two to tell 2,000 units apart, of which
// all but the first octaves use the upper half.
const (
	halfBits = 10
	half     = 1 << halfBits
	octaves  = 33 // the last holds Highest
)

// Highest is the largest value kept in nanoseconds: one hour. Larger ones are
// recorded as Highest and counted by Clamped.
const Highest int64 = 3600e9

// octave counts the values of half neighbouring buckets, which lie within a
// factor of two of each other (the first one: below 1,024).
type octave [half]uint64

// Hist is a histogram. The zero value is empty and ready for use. It must hold
// fewer than 2⁶³ values.
type Hist struct {
	octaves  [octaves]*octave // nil where no value fell
	n        uint64
	min, max int64 // meaningless while n is 0
	sum      sum
	clamped  uint64
}

// New returns an empty histogram.
func New() *Hist { return new(Hist) }

// index is the bucket that holds v, which is not negative. Buckets are 1<<shift
// wide; bucket i is counter i%half of octave i/half.
func index(v int64) int {
	shift := bits.Len64(uint64(v) >> (halfBits + 1))
	return shift<<halfBits + int(v>>shift)
}

// bounds are the lowest and the highest value that share bucket i.
func bounds(i int) (lo, hi int64) {
	shift := max(0, i>>halfBits-1)
	lo = int64(i-shift<<halfBits) << shift
	return lo, lo + 1<<shift - 1
}

// Record adds a value in nanoseconds. A negative one counts as 0.
func (h *Hist) Record(ns int64) { h.RecordN(ns, 1) }

// RecordN adds a value in nanoseconds n times. A negative one counts as 0.
func (h *Hist) RecordN(ns int64, n uint64) {
	if n == 0 {
		return
	}
	if uint64(ns) > uint64(Highest) {
		ns = h.clamp(ns, n)
	}
	i := index(ns)
	o := h.octaves[i>>halfBits]
	if o == nil {
		o = h.grow(i)
	}
	o[i&(half-1)] += n
	if h.n == 0 {
		h.min, h.max = ns, ns
	}
	h.min, h.max = min(h.min, ns), max(h.max, ns)
	h.n += n
	h.sum.add(uint64(ns), n)
}

// clamp returns the value to record instead of one out of range.
func (h *Hist) clamp(ns int64, n uint64) int64 {
	if ns < 0 {
		return 0
	}
	h.clamped += n
	return Highest
}

// grow makes the octave of bucket i.
func (h *Hist) grow(i int) *octave {
	o := new(octave)
	h.octaves[i>>halfBits] = o
	return o
}

// countAt is the number of values in bucket i.
func (h *Hist) countAt(i int) uint64 {
	if o := h.octaves[i>>halfBits]; o != nil {
		return o[i&(half-1)]
	}
	return 0
}

// sum is a sum of products in 128 bits, enough for 2⁶³ values of an hour.
type sum struct{ hi, lo uint64 }

func (s *sum) add(v, n uint64) {
	hi, lo := bits.Mul64(v, n)
	s.plus(sum{hi, lo})
}

func (s *sum) plus(t sum) {
	var carry uint64
	s.lo, carry = bits.Add64(s.lo, t.lo, 0)
	s.hi += t.hi + carry
}

// minus takes t off and reports whether it was no more than s.
func (s *sum) minus(t sum) bool {
	var borrow uint64
	s.lo, borrow = bits.Sub64(s.lo, t.lo, 0)
	s.hi, borrow = bits.Sub64(s.hi, t.hi, borrow)
	return borrow == 0
}

func (s sum) float() float64 { return float64(s.hi)*(1<<64) + float64(s.lo) }
