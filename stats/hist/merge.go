package hist

import "errors"

// ErrNotContained is returned by Sub when the histogram to take out holds what
// the other does not.
var ErrNotContained = errors.New("not contained in the histogram")

// Merge adds all values of o, which stays as it is.
func (h *Hist) Merge(o *Hist) {
	if o.n == 0 {
		return
	}
	for k, from := range o.octaves {
		if from == nil {
			continue
		}
		to := h.octaves[k]
		if to == nil {
			to = h.grow(k << halfBits)
		}
		for i, n := range from {
			to[i] += n
		}
	}
	h.addTotals(o)
}

// addTotals adds what o knows besides its counters.
func (h *Hist) addTotals(o *Hist) {
	if h.n == 0 {
		h.min, h.max = o.min, o.max
	}
	h.min, h.max = min(h.min, o.min), max(h.max, o.max)
	h.n += o.n
	h.sum.plus(o.sum)
	h.clamped += o.clamped
}

// Sub takes out the values of o, such as those of an earlier Clone. The extremes
// are then known to their bucket only, unless they are what they were. When
// some bucket of o holds more than h's the error is ErrNotContained and h stays
// as it is.
func (h *Hist) Sub(o *Hist) error {
	for b := range o.Buckets() {
		if h.countAt(index(b.Lo)) < b.Count {
			return ErrNotContained
		}
	}
	for b := range o.Buckets() {
		i := index(b.Lo)
		h.octaves[i>>halfBits][i&(half-1)] -= b.Count
	}
	left := h.n - o.n
	if left == 0 {
		h.Reset()
		return nil
	}
	h.narrow()
	h.n = left
	h.clamped -= min(h.clamped, o.clamped)
	if !h.sum.minus(o.sum) {
		// Not of the same values after all: one of the two was read from a log.
		h.sum = h.middles()
	}
	return nil
}

// narrow moves the extremes to the outermost buckets that still hold values.
func (h *Hist) narrow() {
	lowest, highest := int64(-1), int64(0)
	for b := range h.Buckets() {
		if lowest < 0 {
			lowest = b.Lo
		}
		highest = b.Hi
	}
	h.min, h.max = max(h.min, lowest), min(h.max, highest)
}

// middles is the sum of all values, each taken as the middle of its bucket.
func (h *Hist) middles() (s sum) {
	for b := range h.Buckets() {
		s.add(uint64(b.Lo+(b.Hi-b.Lo)/2), b.Count)
	}
	return s
}

// Reset empties the histogram and keeps its memory.
func (h *Hist) Reset() {
	for _, o := range h.octaves {
		if o != nil {
			clear(o[:])
		}
	}
	*h = Hist{octaves: h.octaves}
}

// Clone returns a copy that shares nothing with h.
func (h *Hist) Clone() *Hist {
	c := New()
	c.Merge(h)
	return c
}
