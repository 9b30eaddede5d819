package loglinear

import (
	"math"
	"testing"
)

// bucketOf is what the programs do, said again in another way.
func bucketOf(ns uint64) int {
	if ns < octave {
		return int(ns)
	}
	e := int(math.Log2(float64(ns)))
	return min(Buckets-1, (e-3)*octave+int(ns>>(e-4)&(octave-1)))
}

func TestBounds(t *testing.T) {
	var last float64
	for b := range Buckets {
		from, below := Bounds(b)
		if from != last || below <= from {
			t.Fatalf("bucket %d holds %g to %g, want it to begin at %g", b, from, below, last)
		}
		last = below
	}
	for _, ns := range []uint64{0, 1, 15, 16, 17, 31, 32, 33, 1000, 4095, 4096, 1e6, 1e9} {
		from, below := Bounds(bucketOf(ns))
		if v := float64(ns); v < from || v >= below {
			t.Errorf("%d ns is in a bucket of %g to %g", ns, from, below)
		}
	}
}

func TestQuantile(t *testing.T) {
	uniform := make([]uint64, Buckets)
	for ns := range uint64(100_000) {
		uniform[bucketOf(ns)]++
	}
	one := make([]uint64, Buckets)
	one[bucketOf(20_000)] = 5
	tests := []struct {
		name    string
		hist    []uint64
		q, want float64
	}{
		{"nothing", make([]uint64, Buckets), 0.5, 0},
		{"median of one bucket", one, 0.5, 20_000},
		{"p99 of one bucket", one, 0.99, 20_000},
		{"median of uniform", uniform, 0.5, 50_000},
		{"p99 of uniform", uniform, 0.99, 99_000},
		{"least of uniform", uniform, 0.001, 100},
	}
	for _, tt := range tests {
		if got := Quantile(tt.hist, tt.q); math.Abs(got-tt.want) > tt.want/20 {
			t.Errorf("%s: got %g, want %g within a twentieth", tt.name, got, tt.want)
		}
	}
}
