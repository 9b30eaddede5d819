// Package loglinear is the histogram of nanoseconds that programs in the kernel
// keep: 16 buckets an octave, so that a bucket is no wider than a sixteenth of what
// it holds. Which bucket a value falls in is said in loglinear.bpf.h.
package loglinear

// Buckets is how many there are: up to nine minutes. The last one holds what is larger,
// too.
const Buckets = 576

const octave = 16

// Bounds returns the nanoseconds that a bucket holds, from and below.
func Bounds(bucket int) (from, below float64) {
	if bucket < octave {
		return float64(bucket), float64(bucket + 1)
	}
	width := uint64(1) << (bucket/octave - 1)
	low := uint64(octave+bucket%octave) * width
	return float64(low), float64(low + width)
}

// Quantile returns the value below which a part q of what was counted lies, in
// nanoseconds, to within a thirtieth; 0 of nothing. A count has Buckets elements.
func Quantile(count []uint64, q float64) float64 {
	var n uint64
	for _, c := range count {
		n += c
	}
	if n == 0 {
		return 0
	}
	want := q * float64(n)
	var below float64
	for i, c := range count {
		if c == 0 {
			continue
		}
		if next := below + float64(c); next >= want {
			low, high := Bounds(i)
			return low + (high-low)*max(0, want-below)/float64(c)
		}
		below += float64(c)
	}
	_, high := Bounds(len(count) - 1)
	return high
}
