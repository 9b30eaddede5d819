package stats_test

import (
	"math"
	"runtime"
	"testing"

	"github.com/tarehq/tare/stats"
)

// series is n values of level 100 with normal noise of standard deviation sd,
// the first of them lifted by lift, which decays over about tau values.
func series(n int, sd, lift, tau float64, stream uint64) []float64 {
	rng := seeded(stream)
	x := make([]float64, n)
	for i := range x {
		x[i] = 100 + sd*rng.NormFloat64() + lift*math.Exp(-float64(i)/tau)
	}
	return x
}

func TestMSER5(t *testing.T) {
	still := make([]float64, 20)
	step := append([]float64{9, 9, 9}, make([]float64, 17)...)
	long := append([]float64{9, 9, 9, 9, 9, 9, 9}, make([]float64, 93)...)
	late := append(make([]float64, 14), 9, 9, 9, 9, 9, 9)
	tests := []struct {
		name string
		x    []float64
		cut  int
		ok   bool
	}{
		{"empty", nil, 0, false},
		{"one", []float64{1}, 0, true},
		{"constant", still, 0, true},
		{"three lifted of 20", step, 3, true},
		{"seven lifted of 100, in batches", long, 10, true},
		{"another level at the end", late, 14, false},
	}
	for _, tt := range tests {
		if cut, ok := stats.MSER5(tt.x); cut != tt.cut || ok != tt.ok {
			t.Errorf("%s: MSER5(%v) = %d, %v, want %d, %v", tt.name, tt.x, cut, ok, tt.cut, tt.ok)
		}
	}
}

func TestMannKendallExtremes(t *testing.T) {
	tests := []struct {
		x      []float64
		tau, p float64
	}{
		{nil, 0, 1},
		{[]float64{1}, 0, 1},
		{[]float64{2, 2, 2}, 0, 1},
		{[]float64{1, 2, 3}, 1, 1.0 / 3},
		{[]float64{4, 3, 2, 1}, -1, 1.0 / 12},
		{[]float64{1, 3, 2}, 1.0 / 3, 1},
	}
	for _, tt := range tests {
		if tau, p := stats.MannKendall(tt.x); !near(tau, tt.tau) || !near(p, tt.p) {
			t.Errorf("MannKendall(%v) = %v, %v, want %v, %v", tt.x, tau, p, tt.tau, tt.p)
		}
	}
}

func TestSteady(t *testing.T) {
	ramp := make([]float64, 20)
	for i := range ramp {
		ramp[i] = 100 + 2*float64(i)
	}
	gentle := make([]float64, 20)
	for i := range gentle {
		gentle[i] = 100 + 0.1*float64(i)
	}
	tests := []struct {
		name string
		x    []float64
		want bool
	}{
		{"noise", series(10, 1, 0, 1, 1), true},
		{"warm-up that ends", series(40, 1, 60, 3, 2), true},
		{"ramp to the end", ramp, false},
		{"a trend too small to matter", gentle, true},
		{"a jump near the end", append(series(14, 1, 0, 1, 4), 120, 121, 119, 120, 121, 120), false},
		{"one wild slice", append(series(14, 1, 0, 1, 4), 300, 100, 101, 99, 100, 101), true},
		{"idle throughout", make([]float64, 10), true},
		{"too short to say", series(9, 0.1, 0, 1, 3), false},
		{"none", nil, false},
	}
	for _, tt := range tests {
		if got := stats.Steady(tt.x); got.OK != tt.want {
			t.Errorf("%s: Steady(%v) = %+v, want %v", tt.name, tt.x, got, tt.want)
		}
	}
	if got := stats.Steady([]float64{5}); got != (stats.Steadiness{P: 1}) {
		t.Errorf("Steady of one value = %+v, want no trend, not settled", got)
	}
	jump, wild := stats.Steady(tests[4].x), stats.Steady(tests[5].x)
	if jump.Cut != 14 || math.Abs(jump.Drift-0.20) > 0.01 || jump.P < 0.5 {
		t.Errorf("a jump near the end: got %+v, want it cut at 14 as a drift of 20 %%, without a trend behind it", jump)
	}
	if wild.Cut != 0 || math.Abs(wild.Drift) > 0.02 {
		t.Errorf("one wild slice: got %+v, want nothing cut and hardly a drift", wild)
	}
	if s := stats.Steady(series(40, 1, 60, 3, 2)); s.Cut < 3 || s.Cut > 20 {
		t.Errorf("warm-up over about 3 values: cut %d, want 3 to 20", s.Cut)
	}
}

// A trend that is told from noise counts from 5 % on.
func TestSteadyTolerance(t *testing.T) {
	for rise, want := range map[float64]bool{0: true, 4.5: true, 6: false} {
		x := series(100, 4, 0, 1, 9)
		for i := range x {
			x[i] += rise * float64(i) / float64(len(x))
		}
		got := stats.Steady(x)
		if got.OK != want || (got.P < 0.01) != (rise > 0) {
			t.Errorf("a rise of %v %%: got %+v, want steady %t and a trend if it rises", rise, got, want)
		}
	}
}

// A trial may last a day. Its slices are judged as those of a short one, in memory
// that does not grow with their pairs.
func TestSteadyLong(t *testing.T) {
	const n = 5999
	ramp := series(n, 1, 0, 1, 5)
	for i := range ramp {
		ramp[i] += 20 * float64(i) / n
	}
	jump := series(n, 1, 0, 1, 6)
	for i := range jump[n*2/3:] {
		jump[n*2/3+i] += 20
	}
	for _, tt := range []struct {
		name     string
		x        []float64
		want     bool
		from, to int // the cut
	}{
		{"noise", series(n, 1, 0, 1, 7), true, 0, n / 2},
		{"warm-up that ends", series(n, 1, 60, 300, 8), true, 600, n / 2},
		{"ramp to the end", ramp, false, 0, n},
		{"a jump near the end", jump, false, 0, n},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := stats.Steady(tt.x)
		runtime.ReadMemStats(&after)
		if got.OK != tt.want || got.Cut < tt.from || got.Cut > tt.to {
			t.Errorf("%s: got %+v, want %v and a cut from %d to %d", tt.name, got, tt.want, tt.from, tt.to)
		}
		if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 32 {
			t.Errorf("%s: judging %d slices took %d MiB, want 32 or less", tt.name, n, took)
		}
	}
}

// A quiet trial must rarely be called unsteady, correlated slices or not.
func TestSteadyFalseAlarms(t *testing.T) {
	const trials = 2000
	for _, tt := range []struct {
		name    string
		phi, sd float64
		slices  int
		atMost  float64
	}{
		{"independent, 1 %", 0, 0.01, 10, 0.001},
		{"independent, 5 %", 0, 0.05, 10, 0.05},
		{"correlated, 1 %", 0.82, 0.01, 10, 0.001},
		{"correlated, 2 %", 0.82, 0.02, 20, 0.30},
	} {
		rng := seeded(31)
		alarms := 0
		for range trials {
			x := make([]float64, tt.slices)
			y := rng.NormFloat64()
			for i := range x {
				x[i] = 100 * (1 + tt.sd*y)
				y = tt.phi*y + math.Sqrt(1-tt.phi*tt.phi)*rng.NormFloat64()
			}
			if !stats.Steady(x).OK {
				alarms++
			}
		}
		t.Logf("%s: %.1f %% false alarms", tt.name, 100*float64(alarms)/trials)
		if share := float64(alarms) / trials; share > tt.atMost {
			t.Errorf("%s: %.4f false alarms, want at most %v", tt.name, share, tt.atMost)
		}
	}
}
