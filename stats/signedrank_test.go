package stats_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tarehq/tare/stats"
)

// seeded is the tests' source of chance; every test that draws passes its own
// stream so that none depends on another.
func seeded(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(20261121, stream)) }

// coarse draws n differences with many ties and zeros.
func coarse(rng *rand.Rand, n int) []float64 {
	d := make([]float64, n)
	for i := range d {
		d[i] = float64(rng.IntN(9)-4) / 8
	}
	return d
}

// flips calls f with every sign pattern of d.
func flips(d []float64, f func([]float64)) {
	flipped := make([]float64, len(d))
	for pattern := range 1 << len(d) {
		for i, v := range d {
			if pattern>>i&1 == 1 {
				v = -v
			}
			flipped[i] = v
		}
		f(flipped)
	}
}

// walshCount is W⁺ counted pair by pair: Walsh averages above 0, those at 0 by
// half.
func walshCount(d []float64) float64 {
	var w float64
	for i, v := range d {
		for _, u := range d[i:] {
			switch s := v + u; {
			case s > 0:
				w++
			case s == 0:
				w += 0.5
			}
		}
	}
	return w
}

func TestSignedRankPByEnumeration(t *testing.T) {
	rng := seeded(1)
	for n := range 13 {
		for range 4 {
			d := coarse(rng, n)
			center := float64(n*(n+1)) / 4
			observed := math.Abs(walshCount(d) - center)
			extreme := 0
			flips(d, func(f []float64) {
				if math.Abs(walshCount(f)-center) >= observed {
					extreme++
				}
			})
			want := math.Ldexp(float64(extreme), -n)
			if got := stats.SignedRankP(d); math.Abs(got-want) > 1e-12 {
				t.Errorf("SignedRankP(%v) = %v, want %v", d, got, want)
			}
		}
	}
}

// Of all sign patterns of any sizes, at most a share alpha may yield an
// interval without 0, ties and zeros or not; and the interval never says more
// than the p-value.
func TestSignedRankIntervalIsExactUnderSignSymmetry(t *testing.T) {
	rng := seeded(2)
	for _, n := range []int{1, 2, 5, 6, 8, 11} {
		for _, alpha := range []float64{0.01, 0.05, 0.1, 0.5} {
			d := coarse(rng, n)
			excluded := 0
			flips(d, func(f []float64) {
				if stats.SignedRankInterval(f, alpha).Contains(0) {
					return
				}
				excluded++
				if p := stats.SignedRankP(f); p > alpha {
					t.Errorf("interval of %v at %v excludes 0, yet p = %v", f, alpha, p)
				}
			})
			if share := math.Ldexp(float64(excluded), -n); share > alpha {
				t.Errorf("sizes %v at alpha %v: %v of the sign patterns exclude 0", d, alpha, share)
			}
		}
	}
}

func TestSignedRankIntervalTooShort(t *testing.T) {
	for n := range 12 {
		d := make([]float64, n)
		for i := range d {
			d[i] = float64(1 + i)
		}
		got := stats.SignedRankInterval(d, 0.01)
		bounded := !math.IsInf(got.Lo, -1) && !math.IsInf(got.Hi, 1)
		if want := n >= 8; bounded != want {
			t.Errorf("%d differences at alpha 0.01: interval %v, want bounded = %v", n, got, want)
		}
	}
}

func TestHodgesLehmann(t *testing.T) {
	tests := []struct {
		d    []float64
		want float64
	}{
		{[]float64{3}, 3},
		{[]float64{1, 2}, 1.5},
		{[]float64{1, 2, 3, 4, 1e9}, 3},
		{[]float64{-1, 1, 0}, 0},
		{[]float64{math.MaxFloat64, math.MaxFloat64}, math.MaxFloat64},
	}
	for _, tt := range tests {
		if got := stats.HodgesLehmann(tt.d); got != tt.want {
			t.Errorf("HodgesLehmann(%v) = %v, want %v", tt.d, got, tt.want)
		}
	}
	if got := stats.HodgesLehmann(nil); !math.IsNaN(got) {
		t.Errorf("HodgesLehmann(nil) = %v, want NaN", got)
	}
}
