package chart_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/tarehq/tare/lab/report/chart"
	"github.com/tarehq/tare/stats"
)

func ExampleNewBar() {
	var e chart.Extent
	e.Add(-0.02, 0.02, 0.05, 0.08)
	effect := chart.Effect{Value: 0.06, Interval: stats.Interval{Lo: 0.05, Hi: 0.08}, Band: 0.02}
	b := chart.NewBar(effect, e.Axis(0, chart.Across))
	fmt.Printf("band %.0f wide from %.0f\n", b.BandW, b.BandX)
	fmt.Println("interval", b.Line)
	fmt.Println("estimate", b.Point)
	// Output:
	// band 400 wide from 0
	// interval M700 9L700 19M1000 9L1000 19M700 14L1000 14
	// estimate M800 14h0
}

func TestAxis(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		name   string
		values []float64
		room   float64
		v      float64
		want   float64
	}{
		{"low end", []float64{2, 6}, 0, 2, 0},
		{"high end", []float64{2, 6}, 0, 6, 100},
		{"between", []float64{2, 6}, 0, 3, 25},
		{"room at both ends", []float64{2, 6}, 0.5, 2, 25},
		{"below", []float64{2, 6}, 0, -9, 0},
		{"above", []float64{2, 6}, 0, inf, 100},
		{"what is not finite does not stretch it", []float64{2, math.NaN(), inf, -inf, 6}, 0, 4, 50},
		{"one value stands in the middle", []float64{7}, 0.5, 7, 50},
	} {
		var e chart.Extent
		e.Add(c.values...)
		x := e.Axis(c.room, 100)
		if !(x.Lo < x.Hi) {
			t.Errorf("%s: the axis runs from %v to %v", c.name, x.Lo, x.Hi)
		}
		if math.Abs(x.At(c.v)-c.want) > 1e-6 {
			t.Errorf("%s: %v of %v stands at %v, want %v", c.name, c.v, c.values, x.At(c.v), c.want)
		}
	}
	if x := (chart.Extent{}).Axis(0.1, 100); !(x.Lo < x.Hi) {
		t.Errorf("an axis of nothing runs from %v to %v, want a length", x.Lo, x.Hi)
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want []float64
	}{
		{"fives", chart.Linear(-1, 11, 4), []float64{0, 5, 10}},
		{"twos", chart.Linear(0.3, 8.1, 4), []float64{2, 4, 6, 8}},
		{"small", chart.Linear(-0.02, 0.02, 4), []float64{-0.02, -0.01, 0, 0.01, 0.02}},
		{"1, 2 and 5", chart.Decades(0.9, 60, 6), []float64{1, 2, 5, 10, 20, 50}},
		{"1 and 3", chart.Decades(0.9, 60, 5), []float64{1, 3, 10, 30}},
		{"powers", chart.Decades(0.9, 60, 2), []float64{1, 10}},
		{"some powers", chart.Decades(1, 1e7, 4), []float64{1, 1e2, 1e4, 1e6}},
		{"none", chart.Decades(61, 89, 4), nil},
	} {
		same := func(a, b float64) bool { return math.Abs(a-b) <= 1e-12*max(1, math.Abs(b)) }
		if !slices.EqualFunc(c.got, c.want, same) {
			t.Errorf("%s: got %v, want %v", c.name, c.got, c.want)
		}
	}
}

// However far an axis reaches, its ticks are few and on it.
func TestTicksAreBounded(t *testing.T) {
	for lo := 1e-12; lo < 1e12; lo *= 7 {
		for _, times := range []float64{1.0001, 1.5, 9, 1e3, 1e9} {
			for n := 2; n < 9; n++ {
				hi := lo * times
				if d := chart.Decades(lo, hi, n); len(d) > n {
					t.Errorf("Decades(%v, %v, %d) has %d values: %v", lo, hi, n, len(d), d)
				}
				for _, v := range append(chart.Linear(lo, hi, n), chart.Decades(lo, hi, n)...) {
					if v < lo*(1-1e-9) || v > hi*(1+1e-9) {
						t.Errorf("%v to %v, %d: %v is not between", lo, hi, n, v)
					}
				}
				if l := chart.Linear(lo, hi, n); len(l) > n+1 {
					t.Errorf("Linear(%v, %v, %d) has %d values, want at most %d", lo, hi, n, len(l), n+1)
				}
			}
		}
	}
}

func TestBar(t *testing.T) {
	x := chart.Axis{Lo: -1, Hi: 1, Span: 100}
	inf := math.Inf(1)
	published := 0.5
	for _, c := range []struct {
		name string
		e    chart.Effect
		want chart.Bar
	}{
		{"bounded", chart.Effect{Value: 0.2, Interval: stats.Interval{Lo: 0, Hi: 0.4}, Band: 0.1},
			chart.Bar{BandX: 45, BandW: 10, Zero: 50, Line: "M50 9L50 19M70 9L70 19M50 14L70 14", Point: "M60 14h0"}},
		{"unbounded", chart.Effect{Value: 0.2, Interval: stats.Interval{Lo: -inf, Hi: inf}},
			chart.Bar{BandX: 50, Zero: 50, Line: "M0 14L100 14", Point: "M60 14h0"}},
		{"blocks beyond the axis are left out", chart.Effect{Interval: stats.Interval{}, Singles: []float64{-2, -0.5, 1.01, 1}},
			chart.Bar{BandX: 50, Zero: 50, Dots: "M25 11h0M100 17h0", Line: "M50 9L50 19M50 9L50 19M50 14L50 14", Point: "M50 14h0"}},
		{"published", chart.Effect{Interval: stats.Interval{Lo: -inf, Hi: inf}, Published: &published},
			chart.Bar{BandX: 50, Zero: 50, Line: "M0 14L100 14", Point: "M50 14h0", Published: "M75 2L75 26"}},
	} {
		got := *chart.NewBar(c.e, x)
		got.BandX, got.BandW = math.Round(got.BandX*1e9)/1e9, math.Round(got.BandW*1e9)/1e9
		if got != c.want {
			t.Errorf("%s:\n got %+v\nwant %+v", c.name, got, c.want)
		}
	}
}

func TestHue(t *testing.T) {
	seen := map[string]int{}
	for i := range 24 {
		h := chart.Hue(i)
		if j, twice := seen[h]; twice {
			t.Errorf("lines %d and %d both are %q", j, i, h)
		}
		seen[h] = i
	}
	for i, want := range map[int]string{0: "c0", 7: "c7", 8: "c0 d1", 17: "c1 d2", 33: "c1 d2"} {
		if got := chart.Hue(i); got != want {
			t.Errorf("line %d: got %q, want %q", i, got, want)
		}
	}
}

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		name string
		from []float64
		want []float64
	}{
		{"apart already", []float64{150, 20, 80}, []float64{20, 80, 150}},
		{"in one place", []float64{50, 50, 50}, []float64{50, 66, 82}},
		{"at the top", []float64{0, 1}, []float64{8, 24}},
		{"at the bottom", []float64{200, 199, 150}, []float64{150, 176, 192}},
	} {
		var labels []chart.Label
		for _, f := range c.from {
			labels = append(labels, chart.Label{From: f})
		}
		chart.Spread(labels, 200)
		var got []float64
		for _, l := range labels {
			got = append(got, l.Y)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: lines end at %v: got labels at %v, want %v", c.name, c.from, got, c.want)
		}
	}
}

func TestPlotHeight(t *testing.T) {
	p := chart.Plot{Height: 84}
	if got := p.Total(); got != 84 {
		t.Errorf("without labels below: got %d px, want 84", got)
	}
	p.X = []chart.Tick{{}}
	if p.Axis() <= p.Height || p.Total() <= p.Axis() {
		t.Errorf("got labels at %d of %d px below lines of %d px", p.Axis(), p.Total(), p.Height)
	}
}
