package stats_test

import (
	"math"
	"slices"
	"testing"

	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/bound"
)

func TestHolm(t *testing.T) {
	nan := math.NaN()
	tests := []struct {
		p    []float64
		want []float64
	}{
		{nil, []float64{}},
		{[]float64{0.05}, []float64{0.05}},
		{[]float64{0.051}, []float64{0}},
		{[]float64{0.01, 0.04, 0.03, 0.005}, []float64{0.05 / 3, 0, 0, 0.05 / 4}}, // Holm's 0.05/4, /3, stop
		{[]float64{0.04, 0.04, 0.0125}, []float64{0, 0, 0.05 / 3}},
		{[]float64{0.02, 0.025, 0.001}, []float64{0.05 / 2, 0.05, 0.05 / 3}},
		{[]float64{0.03, 0.001, 0.9}, []float64{0, 0.05 / 3, 0}},
		{[]float64{nan, 0.02}, []float64{0, 0.05 / 2}},
		{[]float64{nan, 0.03}, []float64{0, 0}}, // a missing member still counts
	}
	for _, tt := range tests {
		if got := stats.Holm(tt.p, 0.05); !slices.Equal(got, tt.want) {
			t.Errorf("Holm(%v, 0.05) = %v, want %v", tt.p, got, tt.want)
		}
	}
}

func TestBlocksForFamily(t *testing.T) {
	for _, m := range []int{1, 2, 10, 45, 1000} {
		for _, alpha := range []float64{0.05, 0.01} {
			want := int(math.Ceil(1 + math.Log2(float64(m)/alpha)))
			if got := stats.BlocksForFamily(m, alpha); got != want {
				t.Errorf("BlocksForFamily(%d, %v) = %d, want %d", m, alpha, got, want)
			}
		}
	}
	if got, want := stats.BlocksForFamily(0, 0.05), stats.BlocksForFamily(1, 0.05); got != want {
		t.Errorf("BlocksForFamily(0, 0.05) = %d, want %d", got, want)
	}
}

func TestGates(t *testing.T) {
	budget := math.Log(1.02)
	tests := []struct {
		name string
		gate stats.Gate
		want bound.Outcome
	}{
		{"unchanged", stats.Gate{D: around(0, 0.01, 12), Budget: budget}, bound.Held},
		{"within the budget", stats.Gate{D: around(0.01, 0.005, 12), Budget: budget}, bound.Held},
		{"beyond", stats.Gate{D: around(0.1, 0.01, 12), Budget: budget}, bound.Failed},
		{"worse, but not surely beyond", stats.Gate{D: around(0.03, 0.03, 12), Budget: budget}, bound.Inconclusive},
		{"better", stats.Gate{D: around(-0.1, 0.01, 12), Budget: budget}, bound.Held},
		{"throughput lost", stats.Gate{D: around(-0.1, 0.01, 12), Budget: budget, HigherIsBetter: true}, bound.Failed},
		{"throughput won", stats.Gate{D: around(0.1, 0.01, 12), Budget: budget, HigherIsBetter: true}, bound.Held},
		{"too few blocks", stats.Gate{D: around(0.1, 0.01, 5), Budget: budget}, bound.Inconclusive},
		{"none", stats.Gate{Budget: budget}, bound.Inconclusive},
		// p is 0.047, but the lower end is the budget itself, not beyond it.
		{"at the budget", stats.Gate{D: []float64{-1, 4, 2, 3, 1, 3, 0, 6}}, bound.Inconclusive},
	}
	for _, tt := range tests {
		if got := stats.Gates([]stats.Gate{tt.gate}); got[0] != tt.want {
			t.Errorf("%s: Gates(%+v) = %s, want %s", tt.name, tt.gate, got[0], tt.want)
		}
	}
}

// A one-sided p-value between alpha/4 and alpha/2 does not survive a second
// gate.
func TestGatesSplitAlpha(t *testing.T) {
	six := stats.Gate{D: around(0.1, 0.01, 6)} // p = 2⁻⁶ = 0.0156
	if got := stats.Gates([]stats.Gate{six, {}}); got[0] != bound.Inconclusive {
		t.Errorf("of two: %s, want inconclusive", got[0])
	}
	six.Alpha = 0.0625
	if got := stats.Gates([]stats.Gate{six, {Alpha: 0.0625}}); got[0] != bound.Failed {
		t.Errorf("of two at 0.0625: %s, want failed", got[0])
	}
}

// A gate that is surely better leaves no level over for another one.
func TestGatesBesideABetterOne(t *testing.T) {
	worse := stats.Gate{D: []float64{-3, 1, 2, 4, 5, 6, 7, 8}} // p = 5·2⁻⁸ = 0.0195
	better := stats.Gate{D: around(-0.1, 0.01, 8)}
	if got := stats.Gates([]stats.Gate{worse})[0]; got != bound.Failed {
		t.Errorf("alone: %s, want failed", got)
	}
	if got := stats.Gates([]stats.Gate{better, worse}); got[0] != bound.Held || got[1] != bound.Inconclusive {
		t.Errorf("beside a better one: %s, want passed and inconclusive", got)
	}
}

// Gates reach their looks at levels of their own; each spends no more than its share.
func TestGatesOfDifferentLevels(t *testing.T) {
	six, eight := stats.Gate{D: around(0.1, 0.01, 6)}, stats.Gate{D: around(0.1, 0.01, 8), Alpha: 0.010}
	if got := stats.Gates([]stats.Gate{eight, {Alpha: 0.010}})[0]; got != bound.Inconclusive { // p = 2⁻⁸, its share 0.0025
		t.Errorf("8 blocks at 1 %%, one of two: %s, want inconclusive", got)
	}
	if got := stats.Gates([]stats.Gate{eight})[0]; got != bound.Failed {
		t.Errorf("8 blocks at 1 %%, alone: %s, want failed", got)
	}
	six.Alpha = 0.0625
	if got := stats.Gates([]stats.Gate{six, eight}); got[0] != bound.Failed || got[1] != bound.Failed { // the second has all of its level left
		t.Errorf("6 blocks at 6.25 %% beside 8 at 1 %%: %s, want both failed", got)
	}
}

// Six blocks suffice for one gate and are too few for a family of ten.
func TestGatesAreAFamily(t *testing.T) {
	gates := []stats.Gate{{D: around(0.1, 0.01, 6)}}
	if got := stats.Gates(gates); got[0] != bound.Failed {
		t.Errorf("alone: %s, want failed", got[0])
	}
	for range 9 {
		gates = append(gates, stats.Gate{D: around(0, 0.01, 6)})
	}
	if got := stats.Gates(gates); got[0] != bound.Inconclusive {
		t.Errorf("among ten: %s, want inconclusive", got[0])
	}
}
