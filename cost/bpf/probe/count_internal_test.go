package probe

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// TestRatioOf estimates a ratio that is known, of a load that comes and goes: the
// intervals hold it as often as they say, and are far narrower than the load varies.
func TestRatioOf(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const truth, tries = 1 / 50e3, 2000 // 50 µs a request
	for _, n := range []int{10, 30} {
		missed, wide := 0, 0.0
		for range tries {
			windows := make([]seen, n)
			for i := range windows {
				cpu := 50e6 * (0.1 + rng.Float64())
				windows[i] = seen{truth * cpu * (1 + 0.05*rng.NormFloat64()), cpu}
			}
			ratio, margin := ratioOf(windows)
			if math.Abs(ratio/truth-1) > margin {
				missed++
			}
			wide += margin / tries
		}
		if missed > tries*6/100 {
			t.Errorf("%d windows: the interval misses the truth %d times in %d", n, missed, tries)
		}
		if most := 3 * 0.05 / math.Sqrt(float64(n)); wide > most {
			t.Errorf("%d windows: a margin of %.3f on average, want at most %.3f", n, wide, most)
		}
	}
}

// TestRatioOfFew has intervals of few windows, as of a process that ends early, hold the
// truth as often as those of many.
func TestRatioOfFew(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	const truth, tries = 1 / 50e3, 4000
	for _, n := range []int{2, 3, 5, 8} {
		missed := 0
		for range tries {
			windows := make([]seen, n)
			for i := range windows {
				cpu := 50e6 * (0.9 + 0.2*rng.Float64())
				windows[i] = seen{truth * cpu * (1 + 0.05*rng.NormFloat64()), cpu}
			}
			if ratio, margin := ratioOf(windows); math.Abs(ratio/truth-1) > margin {
				missed++
			}
		}
		t.Logf("%d windows: missed %d times in %d", n, missed, tries)
		if missed > tries*6/100 {
			t.Errorf("%d windows: the interval misses the truth %d times in %d", n, missed, tries)
		}
	}
}

func TestRatioOfLittle(t *testing.T) {
	for _, tt := range []struct {
		name          string
		windows       []seen
		ratio, margin float64
	}{
		{"no window", nil, 0, 0},
		{"no request", []seen{{0, 1e6}, {0, 2e6}}, 0, 0},
		{"no CPU that is not the probes'", []seen{{10, -5}}, 0, 0},
		{"one window", []seen{{10, 1e6}}, 1e-5, 1},
		{"no variation", []seen{{10, 1e6}, {20, 2e6}}, 1e-5, 0},
	} {
		if ratio, margin := ratioOf(tt.windows); ratio != tt.ratio || margin != tt.margin {
			t.Errorf("%s: got %v, %v, want %v, %v", tt.name, ratio, margin, tt.ratio, tt.margin)
		}
	}
}

// TestSpans has every span's window within it, and a tenth of it.
func TestSpans(t *testing.T) {
	for _, tt := range []struct {
		of    time.Duration
		spans int
		long  time.Duration
	}{
		{time.Second, 0, 100 * time.Millisecond},
		{15 * time.Second, 0, 500 * time.Millisecond},
		{time.Hour, 0, time.Second},
		{100 * time.Millisecond, 5, 100 * time.Millisecond},
		{10 * time.Second, 5, 2 * time.Second},
		{5 * time.Minute, 5, time.Minute},
	} {
		s := spanAt(3*time.Second, tt.of, tt.spans)
		if s.long != tt.long || s.window != tt.long/10 {
			t.Errorf("of %s: got %+v, want %s and a tenth of it", tt.of, s, tt.long)
		}
		for range 100 {
			if at := s.begin(); at < s.from || at+s.window > s.from+s.long {
				t.Fatalf("of %s: a window at %s, want it within %+v", tt.of, at, s)
			}
		}
	}
}
