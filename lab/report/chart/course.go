package chart

import (
	"math"
	"slices"

	"github.com/tarehq/tare/stats"
)

// Point is a place of a course; Y is NaN where there is nothing to draw.
type Point struct{ X, Y float64 }

// Course is how an arm's trials went. Lines are broken where a Y is NaN.
type Course struct {
	Class   string    // of the line
	Valid   [][]Point // trials that count
	Invalid [][]Point // and those that do not
	Shaded  bool      // draw where the trials that count lie instead of each: of many, no line can be followed
}

// Plot draws the trials: those that do not count in class invalid, those that do
// thin, and thick the median of these at each place in the trial. Shaded, there
// are two areas in place of the thin lines: all of the trials and their middle
// half. Y grows upwards and spans the whole height, px. The title and the ticks
// are the caller's to set.
func (c *Course) Plot(x, y Axis) Plot {
	p := Plot{
		Height: int(y.Span),
		Desc:   "A thin line a trial, dotted where it does not count; the thick line is the median of those that count.",
	}
	if c.Shaded {
		p.Desc = "The area holds the trials that count, its darker part their middle half; the thick line is their median, a dotted one a trial that does not count."
	}
	if len(c.Invalid) > 0 {
		p.Lines = append(p.Lines, Curve{"invalid", lines(c.Invalid, x, y)})
	}
	if len(c.Valid) == 0 {
		return p
	}
	across := sections(c.Valid)
	if c.Shaded {
		p.Areas = []Curve{{c.Class, between(across, 0, x, y)}, {c.Class, between(across, 0.25, x, y)}}
	} else {
		p.Lines = append(p.Lines, Curve{c.Class + " thin", lines(c.Valid, x, y)})
	}
	p.Lines = append(p.Lines, Curve{c.Class, median(across, x, y)})
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

// section is the trials at one place.
type section struct {
	at     float64   // the median of their X
	values []float64 // their Y, ascending
}

// sections are the places in the trial up to where most trials have ended.
func sections(trials [][]Point) []section {
	var all []section
	for k := 0; ; k++ {
		var at, values []float64
		for _, points := range trials {
			if k < len(points) && !math.IsNaN(points[k].Y) {
				at, values = append(at, points[k].X), append(values, points[k].Y)
			}
		}
		if 2*len(values) < len(trials) || len(values) == 0 {
			return all
		}
		slices.Sort(values)
		all = append(all, section{stats.Median(at), values})
	}
}

// median joins the medians of the trials.
func median(across []section, x, y Axis) string {
	var d path
	for _, s := range across {
		d.to(x.At(s.at), y.down(stats.Median(s.values)))
	}
	return d.String()
}

// between spans the trials but for a share of them at either end.
func between(across []section, share float64, x, y Axis) string {
	if len(across) == 0 {
		return ""
	}
	var d path
	for _, s := range across {
		n := len(s.values)
		d.to(x.At(s.at), y.down(s.values[n-1-int(share*float64(n))]))
	}
	for _, s := range slices.Backward(across) {
		d.to(x.At(s.at), y.down(s.values[int(share*float64(len(s.values)))]))
	}
	return d.String() + "Z"
}
