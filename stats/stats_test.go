package stats_test

import (
	"math"
	"testing"

	"github.com/tarehq/tare/stats"
)

func TestInterval(t *testing.T) {
	i := stats.Interval{Lo: -0.01, Hi: 0.03}
	for x, want := range map[float64]bool{-0.02: false, -0.01: true, 0: true, 0.03: true, 0.031: false} {
		if got := i.Contains(x); got != want {
			t.Errorf("%v.Contains(%v) = %v, want %v", i, x, got, want)
		}
	}
	if i.Contains(math.NaN()) {
		t.Errorf("%v contains NaN", i)
	}
	for band, want := range map[float64]bool{0.02: false, 0.03: true, math.Inf(1): true} {
		if got := i.Within(band); got != want {
			t.Errorf("%v.Within(%v) = %v, want %v", i, band, got, want)
		}
	}
	if got := i.Width(); !near(got, 0.04) {
		t.Errorf("%v.Width() = %v, want 0.04", i, got)
	}
}

func TestQuantileEdges(t *testing.T) {
	inf := math.Inf(1)
	tests := []struct {
		x       []float64
		q, want float64
	}{
		{nil, 0.5, math.NaN()},
		{[]float64{7}, 0.99, 7},
		{[]float64{3, 1, 2}, 0, 1},
		{[]float64{3, 1, 2}, -1, 1},
		{[]float64{3, 1, 2}, 2, 3},
		{[]float64{inf, 1, inf, inf}, 0.9, inf},
		{[]float64{1, 2}, math.NaN(), math.NaN()},
	}
	for _, tt := range tests {
		if got := stats.Quantile(tt.x, tt.q); got != tt.want && !(math.IsNaN(got) && math.IsNaN(tt.want)) {
			t.Errorf("Quantile(%v, %v) = %v, want %v", tt.x, tt.q, got, tt.want)
		}
	}
	x := []float64{3, 1, 2}
	if stats.Median(x); x[0] != 3 || x[1] != 1 || x[2] != 2 {
		t.Errorf("Median changed its argument to %v", x)
	}
}

func TestClopperPearsonEdges(t *testing.T) {
	if got := stats.ClopperPearson(0, 0, 0.05); got != (stats.Interval{Lo: 0, Hi: 1}) {
		t.Errorf("ClopperPearson(0, 0) = %v, want [0, 1]", got)
	}
	// No hit in n tries: the upper end is 1 − (α/2)^(1/n).
	if got, want := stats.ClopperPearson(0, 20, 0.05).Hi, 1-math.Pow(0.025, 1.0/20); !near(got, want) {
		t.Errorf("ClopperPearson(0, 20).Hi = %v, want %v", got, want)
	}
}
