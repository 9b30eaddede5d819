package stats_test

import (
	"encoding/json"
	"math"
	"os"
	"strconv"
	"testing"

	"github.com/tarehq/tare/stats"
)

// golden is testdata/golden.json, made with SciPy by testdata/golden.py.
type golden struct {
	Untied, Tied []struct {
		D           []float64
		P, Estimate float64
		Intervals   map[string]bounds
	}
	Quantiles []struct{ X, Q, Want []float64 }
	Trends    []struct {
		X      []float64
		Tau, P float64
		Slopes []float64 // Theil-Sen of X[0:], X[1:], …
	}
	Proportions []struct {
		K, N          int
		Alpha, Lo, Hi float64
	}
	Scalings []struct {
		X         []float64
		Y         [][]float64
		Slope     float64
		Intervals map[string]bounds
	}
}

// bounds are the ends of an interval; null is infinite.
type bounds [2]*float64

func (b bounds) interval() stats.Interval {
	i := stats.Interval{Lo: math.Inf(-1), Hi: math.Inf(1)}
	if b[0] != nil {
		i.Lo = *b[0]
	}
	if b[1] != nil {
		i.Hi = *b[1]
	}
	return i
}

func readGolden(t *testing.T) (g golden) {
	t.Helper()
	data, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

// near compares with SciPy's rounding in mind.
func near(got, want float64) bool {
	return got == want || math.Abs(got-want) <= 1e-9*max(math.Abs(want), 1e-3)
}

func nearInterval(got, want stats.Interval) bool {
	return near(got.Lo, want.Lo) && near(got.Hi, want.Hi)
}

// level reads an alpha that is a key of a JSON object.
func level(t *testing.T, key string) float64 {
	t.Helper()
	alpha, err := strconv.ParseFloat(key, 64)
	if err != nil {
		t.Fatal(err)
	}
	return alpha
}

func TestGoldenSignedRank(t *testing.T) {
	g := readGolden(t)
	if len(g.Untied) < 30 || len(g.Tied) < 10 {
		t.Fatalf("%d and %d cases, want more", len(g.Untied), len(g.Tied))
	}
	for _, tt := range append(g.Untied, g.Tied...) {
		if got := stats.SignedRankP(tt.D); !near(got, tt.P) {
			t.Errorf("SignedRankP(%v) = %v, want %v", tt.D, got, tt.P)
		}
		if got := stats.HodgesLehmann(tt.D); !near(got, tt.Estimate) {
			t.Errorf("HodgesLehmann(%v) = %v, want %v", tt.D, got, tt.Estimate)
		}
		for key, want := range tt.Intervals {
			if got := stats.SignedRankInterval(tt.D, level(t, key)); !nearInterval(got, want.interval()) {
				t.Errorf("SignedRankInterval(%v, %s) = %v, want %v", tt.D, key, got, want.interval())
			}
		}
	}
}

func TestGoldenQuantile(t *testing.T) {
	for _, tt := range readGolden(t).Quantiles {
		for i, q := range tt.Q {
			if got := stats.Quantile(tt.X, q); !near(got, tt.Want[i]) {
				t.Errorf("Quantile(%v, %v) = %v, want %v", tt.X, q, got, tt.Want[i])
			}
		}
	}
}

func TestGoldenTrend(t *testing.T) {
	settled := 0
	for _, tt := range readGolden(t).Trends {
		tau, p := stats.MannKendall(tt.X)
		if !near(tau, tt.Tau) || !near(p, tt.P) {
			t.Errorf("MannKendall(%v) = %v, %v, want %v, %v", tt.X, tau, p, tt.Tau, tt.P)
		}
		if s := stats.Steady(tt.X); s.OK {
			rest := tt.X[s.Cut:]
			want := tt.Slopes[s.Cut] * float64(len(rest)-1) / math.Abs(stats.Median(rest))
			if !near(s.Drift, want) {
				t.Errorf("Steady(%v).Drift = %v, want %v", tt.X, s.Drift, want)
			}
			settled++
		}
	}
	if settled < 5 {
		t.Errorf("%d series settled, want at least 5 to compare drifts on", settled)
	}
}

func TestGoldenClopperPearson(t *testing.T) {
	for _, tt := range readGolden(t).Proportions {
		want := stats.Interval{Lo: tt.Lo, Hi: tt.Hi}
		if got := stats.ClopperPearson(tt.K, tt.N, tt.Alpha); !nearInterval(got, want) {
			t.Errorf("ClopperPearson(%d, %d, %v) = %v, want %v", tt.K, tt.N, tt.Alpha, got, want)
		}
	}
}

func TestGoldenSlope(t *testing.T) {
	for _, tt := range readGolden(t).Scalings {
		for key, want := range tt.Intervals {
			got := stats.Slope(tt.X, tt.Y, stats.Rule{Alpha: level(t, key)})
			if !near(got.Slope, tt.Slope) || !nearInterval(got.Interval, want.interval()) || got.N != len(tt.Y) {
				t.Errorf("Slope(%v, %d blocks, %s) = %+v, want %v in %v", tt.X, len(tt.Y), key, got, tt.Slope, want.interval())
			}
		}
	}
}
