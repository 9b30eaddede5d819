package chart_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tarehq/tare/lab/report/chart"
)

func TestPlaces(t *testing.T) {
	places := chart.Places(1000, 5)
	if got := chart.QuantileAt(places[0]); got != 0.5 {
		t.Errorf("the first place is quantile %v, want 0.5", got)
	}
	if got := chart.QuantileAt(places[4]); math.Abs(got-0.999) > 1e-12 {
		t.Errorf("the last place is quantile %v, want 0.999", got)
	}
	for i := range 3 {
		if a, b := places[i+1]-places[i], places[i+2]-places[i+1]; math.Abs(a-b) > 1e-12 {
			t.Errorf("places %v are not equally far apart", places)
		}
	}
	for _, q := range []float64{0, 0.5, 0.9, 0.99, 0.99999} {
		if got := chart.QuantileAt(chart.PlaceOf(q)); math.Abs(got-q) > 1e-12 {
			t.Errorf("quantile %v stands where %v does", q, got)
		}
	}
}

func TestQuantiles(t *testing.T) {
	places := []float64{1, 2, 3}
	e := func(x float64) int64 { return int64(math.Round(math.Exp(x))) }
	slow := chart.Spectrum{
		Name: "slow", Class: "c0", Limit: math.Inf(1),
		Times:  []int64{e(10), e(11), e(12)},
		Trials: [][]int64{{e(12), e(10), e(11), e(9), e(10)}, {e(11)}, {e(12), e(12)}},
	}
	cut := chart.Spectrum{Name: "cut", Class: "c1", Limit: 2, Times: []int64{e(10), e(10), e(11)}}
	lost := chart.Spectrum{Name: "lost", Class: "c2"}
	p, names := chart.Quantiles([]chart.Spectrum{slow, lost, cut}, places)
	// The axis has a twentieth more than 10 to 12 at either end: 11 is in the
	// middle, 10 and 12 are 145.5 px from it.
	wantLines := []chart.Curve{
		{Class: "c0", D: "M0 305.5L500 160L1000 14.5"},
		{Class: "c1", D: "M0 305.5L500 305.5"},
		{Class: "c1 beyond", D: "M500 305.5L1000 160"},
	}
	if !slices.Equal(p.Lines, wantLines) {
		t.Errorf("lines\n got %v\nwant %v", p.Lines, wantLines)
	}
	// Five trials: from the second to the fourth.
	wantAreas := []chart.Curve{{Class: "c0", D: "M0 160L500 160L1000 14.5L1000 14.5L500 160L0 305.5Z"}}
	if !slices.Equal(p.Areas, wantAreas) {
		t.Errorf("areas\n got %v\nwant %v", p.Areas, wantAreas)
	}
	if len(names) != 2 || names[0].Text != "slow" || names[1].Text != "cut" || !(names[0].From < names[1].From) {
		t.Errorf("got names %v, want slow above cut", names)
	}
	for _, y := range p.Y {
		if y.At < 0 || y.At > chart.QuantilesHeight || y.Text == "" {
			t.Errorf("tick %q stands at %v", y.Text, y.At)
		}
	}
	if len(p.Y) == 0 {
		t.Error("the times have no tick")
	}
}

// A spectrum of which no place counts in every trial is dotted throughout.
func TestQuantilesBeyondThroughout(t *testing.T) {
	s := chart.Spectrum{Class: "c0", Limit: 0, Times: []int64{5, 6}, Trials: [][]int64{{5}, {6}}}
	p, _ := chart.Quantiles([]chart.Spectrum{s}, []float64{1, 2})
	if len(p.Lines) != 1 || p.Lines[0].Class != "c0 beyond" || strings.Count(p.Lines[0].D, "M") != 1 {
		t.Errorf("got lines %v, want one beyond", p.Lines)
	}
	if len(p.Areas) != 1 || p.Areas[0].D != "" {
		t.Errorf("got areas %v, want an empty one", p.Areas)
	}
}

func TestCourse(t *testing.T) {
	gap := math.NaN()
	x, y := chart.Axis{Lo: 0, Hi: 4, Span: 100}, chart.Axis{Lo: 0, Hi: 10, Span: 50}
	valid := [][]chart.Point{
		{{X: 0, Y: 2}, {X: 2, Y: 4}, {X: 4, Y: 6}},
		{{X: 0, Y: 4}, {X: 2, Y: gap}},
		{{X: 0, Y: 9}, {X: 2, Y: 8}},
	}
	invalid := [][]chart.Point{{{X: 0, Y: 0}, {X: 2, Y: gap}, {X: 4, Y: 10}}}
	for _, c := range []struct {
		name           string
		valid, invalid [][]chart.Point
		want           []chart.Curve
	}{
		{"nothing", nil, nil, nil},
		{"none counts: a gap breaks the line", nil, invalid, []chart.Curve{{Class: "invalid", D: "M0 50M100 0"}}},
		// Two of three reach the second place and one the third: the median
		// ends there.
		{"median", valid, nil, []chart.Curve{
			{Class: "c3 thin", D: "M0 40L50 30L100 20M0 30M0 5L50 10"},
			{Class: "c3", D: "M0 30L50 20"},
		}},
		{"both", valid[:1], invalid, []chart.Curve{
			{Class: "invalid", D: "M0 50M100 0"},
			{Class: "c3 thin", D: "M0 40L50 30L100 20"},
			{Class: "c3", D: "M0 40L50 30L100 20"},
		}},
	} {
		course := chart.Course{Class: "c3", Valid: c.valid, Invalid: c.invalid}
		p := course.Plot(x, y)
		if !slices.Equal(p.Lines, c.want) {
			t.Errorf("%s:\n got %v\nwant %v", c.name, p.Lines, c.want)
		}
		if p.Height != 50 {
			t.Errorf("%s: got height %d, want that of the axis, 50", c.name, p.Height)
		}
	}
}

// Shaded, a course is two areas, of all its trials and of their middle half, and
// the median: what does not count stays a line.
func TestCourseShaded(t *testing.T) {
	x, y := chart.Axis{Lo: 0, Hi: 4, Span: 100}, chart.Axis{Lo: 0, Hi: 10, Span: 50}
	course := chart.Course{Class: "c3", Shaded: true, Invalid: [][]chart.Point{{{X: 0, Y: 0}, {X: 4, Y: 10}}}}
	for _, at := range []float64{1, 9, 5, 2, 6} { // in any order, one ends early
		course.Valid = append(course.Valid, []chart.Point{{X: 0, Y: at}, {X: 4, Y: at + 1}})
	}
	course.Valid[1] = course.Valid[1][:1]
	p := course.Plot(x, y)
	wantAreas := []chart.Curve{
		{Class: "c3", D: "M0 5L100 15L100 40L0 45Z"},
		{Class: "c3", D: "M0 20L100 20L100 35L0 40Z"}, // 2 to 6 of five; 3 to 6 of four
	}
	if !slices.Equal(p.Areas, wantAreas) {
		t.Errorf("areas\n got %v\nwant %v", p.Areas, wantAreas)
	}
	wantLines := []chart.Curve{{Class: "invalid", D: "M0 50L100 0"}, {Class: "c3", D: "M0 25L100 27.5"}}
	if !slices.Equal(p.Lines, wantLines) {
		t.Errorf("lines\n got %v\nwant %v", p.Lines, wantLines)
	}
}
