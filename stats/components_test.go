package stats_test

import (
	"math"
	"testing"

	"github.com/tarehq/tare/stats"
)

// nestedDesign draws blocks of trials of slices with those standard
// deviations; the numbers of trials and slices vary.
func nestedDesign(blocks int, block, process, within float64, stream uint64) [][][]float64 {
	rng := seeded(stream)
	x := make([][][]float64, blocks)
	for b := range x {
		atBlock := 5 + block*rng.NormFloat64()
		x[b] = make([][]float64, 2+rng.IntN(4))
		for p := range x[b] {
			atProcess := atBlock + process*rng.NormFloat64()
			for range 3 + rng.IntN(10) {
				x[b][p] = append(x[b][p], atProcess+within*rng.NormFloat64())
			}
		}
	}
	return x
}

func TestVarianceComponentsFindWhatWasPutIn(t *testing.T) {
	for i, want := range []stats.Components{
		{Block: 0.04, Process: 0.01, Within: 0.09},
		{Block: 0, Process: 0.25, Within: 0.01},
		{Block: 1, Process: 0, Within: 0.04},
	} {
		x := nestedDesign(4000, math.Sqrt(want.Block), math.Sqrt(want.Process), math.Sqrt(want.Within), uint64(50+i))
		got := stats.VarianceComponents(x)
		total := want.Block + want.Process + want.Within
		for _, pair := range [][2]float64{{got.Block, want.Block}, {got.Process, want.Process}, {got.Within, want.Within}} {
			if math.Abs(pair[0]-pair[1]) > 0.05*total {
				t.Errorf("VarianceComponents = %+v, want %+v ± 5 %% of the total", got, want)
				break
			}
		}
	}
}

// A balanced design by hand: block means 2 and 6, trial means 1, 3, 5, 7,
// slices ±1 around them.
func TestVarianceComponentsByHand(t *testing.T) {
	x := [][][]float64{{{0, 2}, {2, 4}}, {{4, 6}, {6, 8}}}
	// MS within = 8/4 = 2, MS process = 8/2 = 4, MS block = 32.
	want := stats.Components{Within: 2, Process: (4 - 2) / 2.0, Block: (32 - 4) / 4.0}
	if got := stats.VarianceComponents(x); got != want {
		t.Errorf("VarianceComponents(%v) = %+v, want %+v", x, got, want)
	}
}

func TestVarianceComponentsThatCannotBeTold(t *testing.T) {
	nan := math.IsNaN
	if got := stats.VarianceComponents(nil); !nan(got.Block) || !nan(got.Within) {
		t.Errorf("of nothing: %+v, want NaN", got)
	}
	if got := stats.VarianceComponents([][][]float64{{{1, 2}, {3, 4}, {}}}); !nan(got.Block) || nan(got.Process) || nan(got.Within) {
		t.Errorf("of one block: %+v, want only Block NaN", got)
	}
	got := stats.VarianceComponents([][][]float64{{{1, 2}}, {{5, 6}}, {}})
	if nan(got.Block) || got.Process != 0 || got.Within != 0.5 {
		t.Errorf("of one trial a block: %+v, want Process 0, Within 0.5", got)
	}
	if got := stats.VarianceComponents([][][]float64{{{1}, {2}}, {{5}, {6}}}); !nan(got.Within) {
		t.Errorf("of one slice a trial: %+v, want Within NaN", got)
	}
}
