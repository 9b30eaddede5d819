package chart

import (
	"math"

	"github.com/tarehq/tare/stats"
)

// Point is a place of a course; Y is NaN where there is nothing to draw.
type Point struct{ X, Y float64 }

// Course is how an arm's trials went, a line each. Lines are broken where a Y is
// NaN.
type Course struct {
	Class   string    // of the line
	Valid   [][]Point // trials that count
	Invalid [][]Point // and those that do not
}

// Plot draws the trials: those that do not count in class invalid, those that do
// thin, and thick the median of these at each place in the trial. Y grows upwards
// and spans the whole height, px. The title and the ticks are the caller's to set.
func (c *Course) Plot(x, y Axis) Plot {
	p := Plot{
		Height: int(y.Span),
		Desc:   "A thin line a trial, dotted where it does not count; the thick line is the median of those that count.",
	}
	if len(c.Invalid) > 0 {
		p.Lines = append(p.Lines, Curve{"invalid", lines(c.Invalid, x, y)})
	}
	if len(c.Valid) > 0 {
		p.Lines = append(p.Lines, Curve{c.Class + " thin", lines(c.Valid, x, y)}, Curve{c.Class, median(c.Valid, x, y)})
	}
	return p
}

func lines(trials [][]Point, x, y Axis) string {
	var d path
	for _, points := range trials {
		for _, q := range points {
			if math.IsNaN(q.Y) {
				d.up()
				continue
			}
			d.to(x.At(q.X), y.down(q.Y))
		}
		d.up()
	}
	return d.String()
}

// median joins the medians of the trials' points at each place in the trial.
func median(trials [][]Point, x, y Axis) string {
	var d path
	for k := 0; ; k++ {
		var at, values []float64
		for _, points := range trials {
			if k < len(points) && !math.IsNaN(points[k].Y) {
				at, values = append(at, points[k].X), append(values, points[k].Y)
			}
		}
		if 2*len(values) < len(trials) || len(values) == 0 {
			return d.String() // most trials have ended
		}
		d.to(x.At(stats.Median(at)), y.down(stats.Median(values)))
	}
}
