package probe

// The histogram of the programs: 16 buckets an octave, of nanoseconds.
const (
	buckets = 512
	octave  = 16
)

// bounds returns the nanoseconds that a bucket holds, from and below.
func bounds(bucket int) (from, below float64) {
	if bucket < octave {
		return float64(bucket), float64(bucket + 1)
	}
	width := uint64(1) << (bucket/octave - 1)
	low := uint64(octave+bucket%octave) * width
	return float64(low), float64(low + width)
}

// quantile returns the value below which a part q of what was counted lies, in
// nanoseconds, to within a thirtieth; 0 of nothing.
func quantile(hist []uint64, q float64) float64 {
	var n uint64
	for _, h := range hist {
		n += h
	}
	if n == 0 {
		return 0
	}
	want := q * float64(n)
	var below float64
	for i, h := range hist {
		if h == 0 {
			continue
		}
		if next := below + float64(h); next >= want {
			low, high := bounds(i)
			return low + (high-low)*max(0, want-below)/float64(h)
		}
		below += float64(h)
	}
	_, high := bounds(len(hist) - 1)
	return high
}
