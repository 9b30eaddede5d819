package chart

import (
	"math"

	"github.com/tarehq/tare/stats"
)

// Trend is values with their intervals in the order in which they came.
type Trend struct {
	Class  string // of the line
	Points []Estimate
}

// Estimate is a value at a place of the x axis. An end of its interval that is not bounded
// is drawn to the end of the y axis.
type Estimate struct {
	X, Value float64
	Interval stats.Interval
}

// Draw returns the area that the intervals span and the lines: the values joined, and each
// interval with its value as a dot. Y grows upwards.
func (t *Trend) Draw(x, y Axis) (area Curve, lines []Curve) {
	var joined, dots, intervals, around path
	down := func(v float64) float64 {
		if math.IsNaN(v) {
			v = y.Lo
		}
		return y.down(v)
	}
	for _, p := range t.Points {
		at := x.At(p.X)
		joined.to(at, down(p.Value))
		dots.dot(at, down(p.Value))
		intervals.to(at, down(p.Interval.Lo))
		intervals.to(at, down(p.Interval.Hi))
		intervals.up()
		around.to(at, down(p.Interval.Hi))
	}
	for i := range t.Points {
		p := &t.Points[len(t.Points)-1-i]
		around.to(x.At(p.X), down(p.Interval.Lo))
	}
	if len(t.Points) > 1 {
		area = Curve{t.Class, around.String() + "Z"}
	}
	return area, []Curve{{t.Class, joined.String()}, {t.Class, intervals.String()}, {t.Class + " dot", dots.String()}}
}
