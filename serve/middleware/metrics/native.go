package metrics

import (
	"math"
	"time"
)

// A native histogram of Prometheus has buckets whose bounds are powers of one number, here of
// 2^(1/8): schema 3. What lies at or below 2^lowest seconds is counted apart, and what lies
// above 2^highest in the last bucket.
const (
	nativeSchema = 3
	octave       = 1 << nativeSchema // buckets in a factor of two
	lowest       = -20               // 0.95 µs
	highest      = 17                // 36 hours
	nativeCells  = 1 + (highest-lowest)*octave
)

// fractions are the bounds of an octave, as math.Frexp has fractions.
var fractions = func() (all [octave]float64) {
	for i := range all {
		all[i] = math.Exp2(float64(i)/octave) / 2
	}
	return all
}()

// nativeCell returns where a duration is counted: 0 for what lies below all buckets, i for
// that with the upper bound 2^(lowest+i/8) seconds.
func nativeCell(d time.Duration) int {
	if d <= 0 {
		return 0
	}
	fraction, exponent := math.Frexp(d.Seconds())
	i := (exponent - 1 - lowest) * octave
	for _, f := range fractions {
		if fraction <= f {
			break
		}
		i++
	}
	return min(max(i, 0), nativeCells-1)
}
