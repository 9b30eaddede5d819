package chart

import (
	"math"

	"github.com/tarehq/tare/stats"
)

// Bar is an effect drawn across an axis. Up and down it runs from 0 to
// BarHeight.
type Bar struct {
	BandX, BandW float64 // what is too small to count; no width: not drawn
	Zero         float64 // no effect
	Dots         string  // the blocks' single differences
	Line, Point  string  // interval and estimate
	Published    string  // the published figure
	Label        string  // the same in words, for the report to set
}

// BarHeight is the height of a bar's coordinates.
const BarHeight = 28

// Effect is what a bar shows.
type Effect struct {
	Value     float64
	Interval  stats.Interval // an infinite end is drawn without a stop
	Band      float64        // too small to count, either way; 0: none is drawn
	Singles   []float64      // the blocks'; those beyond the axis are left out
	Published *float64       // nil: none
}

// EmptyBar has the band and no effect.
func EmptyBar(band float64, x Axis) *Bar {
	return &Bar{BandX: x.At(-band), BandW: x.At(band) - x.At(-band), Zero: x.At(0)}
}

// NewBar draws e.
func NewBar(e Effect, x Axis) *Bar {
	b := EmptyBar(e.Band, x)
	var dots, point, published path
	for i, d := range e.Singles {
		if d >= x.Lo && d <= x.Hi { // beyond the axis it would stand at its end
			dots.dot(x.At(d), BarHeight/2+float64(i%5-2)*3)
		}
	}
	point.dot(x.At(e.Value), BarHeight/2)
	if e.Published != nil {
		published.to(x.At(*e.Published), 2)
		published.to(x.At(*e.Published), BarHeight-2)
	}
	b.Dots, b.Line, b.Point, b.Published = dots.String(), whiskers(e.Interval, x), point.String(), published.String()
	return b
}

// whiskers draws an interval; an end that is not bounded has no stop.
func whiskers(i stats.Interval, x Axis) string {
	const mid, stop = BarHeight / 2, 5
	var p path
	for _, end := range []float64{i.Lo, i.Hi} {
		if !math.IsInf(end, 0) {
			p.to(x.At(end), mid-stop)
			p.to(x.At(end), mid+stop)
			p.up()
		}
	}
	p.to(x.At(i.Lo), mid)
	p.to(x.At(i.Hi), mid)
	return p.String()
}
