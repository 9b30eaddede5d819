package stats_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/tarehq/tare/stats"
)

func TestSlopeExact(t *testing.T) {
	x := []float64{0, 1, 3, 5}
	rows := make([][]float64, 8)
	for b := range rows {
		for _, layers := range x {
			rows[b] = append(rows[b], float64(100*b)+368*layers) // bytes: no noise
		}
	}
	got := stats.Slope(x, rows, stats.Rule{})
	if !near(got.Slope, 368) || !near(got.Interval.Lo, 368) || !near(got.Interval.Hi, 368) || len(got.Warnings) != 0 {
		t.Errorf("Slope of 368 a layer = %+v, want 368 without a warning", got)
	}
}

func TestSlopeWarnings(t *testing.T) {
	x := []float64{0, 1, 2, 4}
	rng := seeded(41)
	straight, bent := make([][]float64, 20), make([][]float64, 20)
	for b := range straight {
		for _, v := range x {
			straight[b] = append(straight[b], 10*v+rng.NormFloat64())
			bent[b] = append(bent[b], 10*v*v+rng.NormFloat64())
		}
	}
	holes := slices.Clone(straight)
	holes[2] = []float64{math.NaN(), math.NaN(), 3, math.NaN()}
	holes[5] = []float64{math.NaN(), 1, 2, math.Inf(1)}
	tests := []struct {
		name string
		x    []float64
		rows [][]float64
		n    int
		want []string
	}{
		{"straight", x, straight, 20, nil},
		{"bent", x, bent, 20, []string{"the points bend away from a straight line: the slope is an average"}},
		{"holes", x, holes, 19, []string{"leaving out 1 of 20 blocks: too few values for a line"}},
		{"one position", []float64{2, 2, 2, 2}, straight, 0, []string{"leaving out 20 of 20 blocks: too few values for a line"}},
		{"two positions", x[:2], straight, 20, nil},
		{"none", nil, nil, 0, nil},
	}
	for _, tt := range tests {
		got := stats.Slope(tt.x, tt.rows, stats.Rule{Alpha: 0.01})
		var texts []string
		for _, w := range got.Warnings {
			texts = append(texts, w.Error())
		}
		if got.N != tt.n || !slices.Equal(texts, tt.want) {
			t.Errorf("%s: %d blocks, warnings %q, want %d, %q", tt.name, got.N, texts, tt.n, tt.want)
		}
		if (tt.n == 0) != math.IsNaN(got.Slope) {
			t.Errorf("%s: slope %v of %d blocks", tt.name, got.Slope, tt.n)
		}
	}
}

// A slope that is looked at whenever one likes has a wider interval.
func TestSlopeAtAnyTime(t *testing.T) {
	x, rng := []float64{0, 1, 2, 4}, seeded(42)
	rows := make([][]float64, 20)
	for b := range rows {
		for _, v := range x {
			rows[b] = append(rows[b], 10*v+0.2*v*v+rng.NormFloat64())
		}
	}
	planned, anytime := stats.Slope(x, rows, stats.Rule{}), stats.Slope(x, rows, stats.Rule{Anytime: true})
	if p, a := planned.Interval, anytime.Interval; anytime.Slope != planned.Slope || !(a.Lo < p.Lo && a.Hi > p.Hi) {
		t.Errorf("at any time %+v, as planned %+v: want the same slope, less surely", anytime, planned)
	}
}

func ExampleSlope() {
	layers := []float64{0, 1, 3}
	ns := [][]float64{ // a row a block
		{610, 905, 1500}, {598, 900, 1482}, {605, 898, 1507},
		{601, 910, 1493}, {612, 902, 1511}, {600, 899, 1490},
	}
	s := stats.Slope(layers, ns, stats.Rule{})
	fmt.Printf("%.0f ns a layer [%.0f, %.0f]\n", s.Slope, s.Interval.Lo, s.Interval.Hi)
	// Output: 297 ns a layer [294, 301]
}
