package stats_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tarehq/tare/stats"
)

// around is n differences spread evenly over center ± spread.
func around(center, spread float64, n int) []float64 {
	d := make([]float64, n)
	for i := range d {
		d[i] = center + spread*(2*float64(i)/float64(n-1)-1)
	}
	return d
}

func TestCompareVerdicts(t *testing.T) {
	tests := []struct {
		name string
		d    []float64
		rule stats.Rule
		want stats.Verdict
	}{
		{"less time", around(-0.05, 0.01, 12), stats.Rule{Alpha: 0.01, Threshold: 0.01}, stats.Faster},
		{"more time", around(0.05, 0.01, 12), stats.Rule{Alpha: 0.01, Threshold: 0.01}, stats.Slower},
		{"more throughput", around(0.05, 0.01, 12), stats.Rule{Alpha: 0.01, Threshold: 0.01, HigherIsBetter: true}, stats.Faster},
		{"less throughput", around(-0.05, 0.01, 12), stats.Rule{Alpha: 0.01, Threshold: 0.01, HigherIsBetter: true}, stats.Slower},
		{"none", around(0, 0.005, 12), stats.Rule{Alpha: 0.01, Threshold: 0.01}, stats.Equivalent},
		{"none at all", make([]float64, 12), stats.Rule{Alpha: 0.01, Threshold: 0.01}, stats.Equivalent},
		{"none by the interval at twice the level", around(0, 0.013, 12), stats.Rule{Alpha: 0.05, Threshold: 0.0075}, stats.Equivalent},
		{"none, but for the floor", around(0, 0.005, 12), stats.Rule{Alpha: 0.01, Threshold: 0.01, Floor: 0.02}, stats.Inconclusive},
		{"within the floor, the floor beyond the threshold", around(0.015, 0.005, 12), stats.Rule{Alpha: 0.01, Threshold: 0.01, Floor: 0.02}, stats.Inconclusive},
		{"beyond floor and threshold", around(0.03, 0.005, 12), stats.Rule{Alpha: 0.01, Threshold: 0.01, Floor: 0.02}, stats.Slower},
		{"unbounded beside a large threshold", around(0, 0.001, 5), stats.Rule{Alpha: 0.01, Threshold: 10}, stats.Inconclusive},
		{"real but tiny", around(0.004, 0.003, 12), stats.Rule{Alpha: 0.01, Threshold: 0.01}, stats.Small},
		{"no band", around(0.004, 0.003, 12), stats.Rule{Alpha: 0.01}, stats.Slower},
		{"no band, no effect", make([]float64, 12), stats.Rule{Alpha: 0.01}, stats.Inconclusive},
		{"wide", around(0.02, 0.3, 12), stats.Rule{Alpha: 0.01, Threshold: 0.01}, stats.Inconclusive},
		{"too few", around(0.05, 0.001, 5), stats.Rule{Threshold: 0.01}, stats.Inconclusive},
		{"one", []float64{0.05}, stats.Rule{Threshold: 0.01}, stats.Inconclusive},
		{"nothing", nil, stats.Rule{Threshold: 0.01}, stats.Inconclusive},
	}
	for _, tt := range tests {
		got := stats.Compare(tt.d, tt.rule)
		if got.Verdict != tt.want {
			t.Errorf("%s: Compare(%v, %+v) = %+v, want %s", tt.name, tt.d, tt.rule, got, tt.want)
		}
		if got.N != len(tt.d) {
			t.Errorf("%s: N = %d, want %d", tt.name, got.N, len(tt.d))
		}
		if (got.Needs > 0) != (tt.want == stats.Inconclusive) {
			t.Errorf("%s: needs %d more blocks at verdict %s", tt.name, got.Needs, got.Verdict)
		}
	}
}

// TestCompareLevels holds the intervals of a comparison at the levels they are told
// to have, and no level against that of a whole study.
func TestCompareLevels(t *testing.T) {
	d := around(0.02, 0.05, 12)
	c := stats.Compare(d, stats.Rule{})
	if want := stats.SignedRankInterval(d, 0.05); c.Interval != want {
		t.Errorf("interval of no level %v, want %v", c.Interval, want)
	}
	if want := stats.SignedRankInterval(d, 0.02); stats.Compare(d, stats.Rule{Alpha: 0.01}).Equivalence != want {
		t.Errorf("interval for equivalence at a look of 0.01 %v, want %v", c.Equivalence, want)
	}
	if want := stats.SignedRankInterval(d, 0.10); c.Equivalence != want {
		t.Errorf("interval for equivalence %v, want %v", c.Equivalence, want)
	}
}

func TestCompareNeeds(t *testing.T) {
	// Half as wide again as would do: n·(h/h*)² − n with h/h* = 3/2 within a
	// rank's granularity.
	c := stats.Compare(around(0.02, 0.05, 18), stats.Rule{Alpha: 0.012})
	h := c.Interval.Width() / 2
	want := int(math.Ceil(18*(h/c.Effect)*(h/c.Effect))) - 18
	if c.Needs != want || want < 1 {
		t.Errorf("needs %d more blocks, want %d (interval %v)", c.Needs, want, c.Interval)
	}
	// No effect to be seen: what is missing is an interval inside the band.
	c = stats.Compare(around(0.002, 0.05, 18), stats.Rule{Alpha: 0.012, Threshold: 0.01})
	h = c.Equivalence.Width() / 2
	want = int(math.Ceil(18*(h/(0.01-c.Effect))*(h/(0.01-c.Effect)))) - 18
	if c.Needs != want || want < 1 {
		t.Errorf("for equivalence: needs %d more blocks, want %d (interval %v)", c.Needs, want, c.Equivalence)
	}
	if c := stats.Compare(around(0.1, 0.001, 3), stats.Rule{Alpha: 0.01, Threshold: 0.01}); c.Needs != 5 {
		t.Errorf("3 blocks at alpha 0.01: needs %d more, want 5", c.Needs)
	}
	if c := stats.Compare(around(0.02, 0.05, 7), stats.Rule{Alpha: 0.01, Threshold: 0.01}); c.Interval.Bounded() || c.Needs < 20 {
		t.Errorf("7 noisy blocks at alpha 0.01: needs %d more, want what decides, not what bounds the interval", c.Needs)
	}
	// The run has not ended: six blocks bound a planned interval, not yet one for whenever one looks.
	if c := stats.Compare(around(0.47, 0.02, 6), stats.Rule{Alpha: 0.05, Threshold: 0.01, Anytime: true, Cap: 18}); c.Interval.Bounded() || c.Needs > 2 || len(c.Warnings) > 0 {
		t.Errorf("6 blocks of 0.47 ± 0.02 of an unfinished run, interval %v: needs %d more, warnings %v; want one or two, and none", c.Interval, c.Needs, c.Warnings)
	}
	// Two blocks tell little of the spread, yet what is wanted is that of eight and more.
	if c := stats.Compare([]float64{0.05, 0.15}, stats.Rule{Alpha: 0.01, Threshold: 0.01}); c.Needs < 6 || c.Needs > 20 {
		t.Errorf("2 blocks of 0.1 ± 0.05 at alpha 0.01: needs %d more, want some eight in all", c.Needs)
	}
}

// TestLopsidedNeeds holds that an interval which holds 0 at the end of its longer arm asks for as
// many blocks as bring that arm in, and not for one.
func TestLopsidedNeeds(t *testing.T) {
	d := []float64{0.021, 0.020, 0.019, 0.022, 0.020, -0.06, -0.04, 0.021}
	for _, sign := range []float64{1, -1} {
		signed := make([]float64, len(d))
		for i, v := range d {
			signed[i] = sign * v
		}
		c := stats.Compare(signed, stats.Rule{Alpha: 0.05})
		arm := c.Effect - c.Interval.Lo
		if sign < 0 {
			arm = c.Interval.Hi - c.Effect
		}
		want := int(math.Ceil(8*(arm/c.Effect)*(arm/c.Effect))) - 8
		if c.Verdict != stats.Inconclusive || c.Needs != want || want < 2 {
			t.Errorf("%v: %s, %d more blocks, want %d (effect %v, interval %v)", signed, c.Verdict, c.Needs, want, c.Effect, c.Interval)
		}
	}
}

func TestCompareWarnings(t *testing.T) {
	d := append(around(0, 0.3, 12), math.NaN(), math.Inf(1))
	c := stats.Compare(d, stats.Rule{Alpha: 0.01, Threshold: 0.01, Cap: 14})
	if c.N != 12 {
		t.Errorf("N = %d, want 12", c.N)
	}
	text := fmt.Sprint(c.Warnings)
	for _, want := range []string{"leaving out 2 of 14 blocks", "the cap is 14"} {
		if !strings.Contains(text, want) {
			t.Errorf("warnings %q lack %q", text, want)
		}
	}
}

func TestComparisonRatio(t *testing.T) {
	c := stats.Compare(around(math.Log(1.05), 1e-9, 12), stats.Rule{Alpha: 0.01})
	if r := c.Ratio(); math.Abs(r-1.05) > 1e-6 {
		t.Errorf("Ratio() = %v, want 1.05", r)
	}
	if i := c.RatioInterval(); !i.Contains(1.05) || i.Width() > 1e-6 {
		t.Errorf("RatioInterval() = %v, want about 1.05", i)
	}
}

func ExampleCompare() {
	// ln(arm) − ln(control) of CPU per request, one a block.
	d := []float64{0.051, 0.047, 0.062, 0.049, 0.038, 0.055, 0.050, 0.044, 0.058, 0.047, 0.053, 0.041}
	look := stats.Looks()[1]
	c := stats.Compare(d, stats.Rule{Alpha: look.Alpha, Threshold: 0.01})
	fmt.Printf("%s: %.3f [%.3f, %.3f] after %d blocks\n",
		c.Verdict, c.Ratio(), c.RatioInterval().Lo, c.RatioInterval().Hi, c.N)
	// Output:
	// slower: 1.051 [1.044, 1.058] after 12 blocks
}
