package bound_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tarehq/tare/stats/bound"
	"github.com/tarehq/tare/stats/unit"
)

func Example() {
	c, err := bound.Parse("p99 <= 50 ms")
	if err != nil {
		panic(err)
	}
	fmt.Println(c.Measure, c.Bound)
	fmt.Println(c.Holds(48e6), c.Judge(40e6, 49e6), c.Judge(40e6, 60e6), c.Judge(51e6, 60e6))
	// Output:
	// p99 <= 50.0 ms
	// true held inconclusive failed
}

func TestParse(t *testing.T) {
	for give, want := range map[string]bound.Comparison{
		"p99<50ms":            {Measure: "p99", Bound: bound.Bound{Op: bound.Below, Value: 50e6, Unit: unit.Nanoseconds}},
		"max >1m30s":          {Measure: "max", Bound: bound.Bound{Op: bound.Above, Value: 90e9, Unit: unit.Nanoseconds}},
		"cpu_per_request<=5%": {Measure: "cpu_per_request", Bound: bound.Bound{Op: bound.AtMost, Value: .05, Unit: unit.Share}},
		"rate>=52.4k/s":       {Measure: "rate", Bound: bound.Bound{Op: bound.AtLeast, Value: 52400, Unit: unit.PerSecond}},
		"<= 20 MB":            {Measure: "", Bound: bound.Bound{Op: bound.AtMost, Value: 20e6, Unit: unit.Bytes}},
		">= 0.95":             {Measure: "", Bound: bound.Bound{Op: bound.AtLeast, Value: .95, Unit: unit.Count}},
	} {
		if got, err := bound.Parse(give); got != want || err != nil {
			t.Errorf("Parse(%q): got %v, %v; want %v", give, got, err, want)
		}
	}
	for give, want := range map[string]string{
		"p99": "no comparison", "p99=50ms": "no comparison", "p99<": "not a quantity", "p99<<5": "does not begin",
		"p99<5 kg": "not a quantity",
	} {
		if got, err := bound.Parse(give); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q): got %v, %v; want an error with %q", give, got, err, want)
		}
	}
}

func TestIn(t *testing.T) {
	for _, tt := range []struct {
		give, base string
		want       float64 // NaN: an error
	}{
		{"<5ms", unit.Nanoseconds, 5e6}, {"<5%", unit.Share, .05}, {"<0.05", unit.Share, .05}, {"<1000", unit.PerSecond, 1000},
		{"<5", unit.Nanoseconds, math.NaN()}, {"<5", unit.Share, math.NaN()}, {"<5ms", unit.Count, math.NaN()},
	} {
		b, err := bound.ParseBound(tt.give)
		if err != nil {
			t.Fatal(err)
		}
		got, err := b.In(tt.base)
		if math.IsNaN(tt.want) != (err != nil) || err == nil && (got.Value != tt.want || got.Unit != tt.base) {
			t.Errorf("%q in %q: got %v, %v; want %v", tt.give, tt.base, got, err, tt.want)
		}
	}
}

func TestJudge(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, tt := range []struct {
		op     bound.Op
		lo, hi float64
		want   bound.Outcome
	}{
		{bound.AtMost, 1, 5, bound.Held}, {bound.Below, 1, 5, bound.Inconclusive}, {bound.Below, 5, 6, bound.Failed},
		{bound.AtMost, 5, 6, bound.Inconclusive}, {bound.AtMost, 5.1, 6, bound.Failed}, {bound.AtLeast, 5, 6, bound.Held},
		{bound.Above, 5, 6, bound.Inconclusive}, {bound.AtLeast, 1, 4, bound.Failed}, {bound.Above, 1, 5, bound.Failed},
		{bound.AtMost, -inf, inf, bound.Inconclusive}, {bound.AtMost, nan, nan, bound.Inconclusive},
	} {
		if got := (bound.Bound{Op: tt.op, Value: 5}).Judge(tt.lo, tt.hi); got != tt.want {
			t.Errorf("%s 5 of %g to %g: got %s, want %s", tt.op, tt.lo, tt.hi, got, tt.want)
		}
	}
}

// FuzzParse reads anything: what is accepted is a finite bound that its own text, which
// rounds, repeats within a hundredth.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"p99.9<50ms", "errors>0.1%", "rate<10k/s", "max > 1h2m", ">= 8.2 MB", "cpu_per_request<=5%", "<μs", ">0.00000001"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c, err := bound.Parse(s)
		if err != nil {
			return
		}
		if math.IsInf(c.Value, 0) || math.IsNaN(c.Value) || c.Value < 0 {
			t.Fatalf("%q: bound %v", s, c.Value)
		}
		again, err := bound.ParseBound(strings.ReplaceAll(c.String(), ",", ""))
		digits := c.Value > 0 && c.Value < 1e-6 || c.Value >= 1e15 // has more digits than are read
		if digits || strings.ContainsAny(c.String(), "e") || strings.Contains(c.String(), "TiB") {
			return // for people alone
		}
		if err != nil || again.Op != c.Op || again.Unit != c.Unit || math.Abs(again.Value-c.Value) > .01*c.Value+.0005 {
			t.Fatalf("%q is %v, which reads as %v, %v", s, c.Bound, again, err)
		}
	})
}
