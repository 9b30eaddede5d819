package chart

import (
	"math"
	"slices"

	"github.com/tarehq/tare/stats/unit"
)

// Spectrum is an arm's times by quantile, at the places of the drawing.
type Spectrum struct {
	Name   string
	Class  string    // of the line
	Times  []int64   // ns, all trials together; none: not drawn
	Trials [][]int64 // by place: ns, a trial each, in any order; nil: their spread is not drawn
	Limit  float64   // the place up to which every trial counts; beyond it the line is dotted
}

// QuantilesHeight is the height of a drawing of quantiles, px.
const QuantilesHeight = 320

// PlaceOf is where quantile q, from 0 to below 1, stands: at the logarithm of
// 1/(1−q), so that p90, p99 and p99.9 are equally far apart.
func PlaceOf(q float64) float64 { return -math.Log1p(-q) }

// QuantileAt is the quantile at a place.
func QuantileAt(place float64) float64 { return -math.Expm1(-place) }

// Places are n places, equally far apart, from the median to the quantile that
// has a share of 1/most behind it. n is 2 at least.
func Places(most float64, n int) []float64 {
	places := make([]float64, n)
	for i := range places {
		places[i] = math.Ln2 + (math.Log(most)-math.Ln2)*float64(i)/float64(n-1)
	}
	return places
}

// Quantiles draws a line for each spectrum over the places, which ascend; the
// times grow upwards by their logarithms. The labels name the lines in the
// order given, where they end; X and the title are the caller's to set.
func Quantiles(all []Spectrum, places []float64) (p Plot, names []Label) {
	n := len(places) - 1
	all = slices.DeleteFunc(slices.Clone(all), func(s Spectrum) bool { return len(s.Times) == 0 })
	var e Extent
	for _, s := range all {
		e.Add(logNs(s.Times[0]), logNs(s.Times[n]))
	}
	y := e.Axis(0.05, QuantilesHeight)
	x := Axis{places[0], places[n], Across}
	p.Height = QuantilesHeight
	for _, v := range Decades(math.Exp(y.Lo), math.Exp(y.Hi), 8) {
		p.Y = append(p.Y, Tick{y.down(math.Log(v)), unit.Format(v, unit.Nanoseconds)})
	}
	for _, s := range all {
		p.Lines = append(p.Lines, s.curves(places, x, y)...)
		if s.Trials != nil {
			p.Areas = append(p.Areas, Curve{s.Class, s.area(places, x, y)})
		}
		names = append(names, Label{Class: s.Class, Text: s.Name, From: y.down(logNs(s.Times[n]))})
	}
	return p, names
}

// curves draws the arm's line, dotted beyond its limit.
func (s *Spectrum) curves(places []float64, x, y Axis) []Curve {
	var counts, beyond path
	for i, place := range places {
		at, height := x.At(place), y.down(logNs(s.Times[i]))
		if place <= s.Limit {
			counts.to(at, height)
		}
		if i+1 == len(places) || places[i+1] > s.Limit { // from the last that counts
			beyond.to(at, height)
		}
	}
	var lines []Curve
	if counts.down {
		lines = append(lines, Curve{s.Class, counts.String()})
	}
	if places[len(places)-1] > s.Limit {
		lines = append(lines, Curve{s.Class + " beyond", beyond.String()})
	}
	return lines
}

// area spans the middle half of the trials, as far as all of them count.
func (s *Spectrum) area(places []float64, x, y Axis) string {
	for len(places) > 0 && places[len(places)-1] > s.Limit {
		places = places[:len(places)-1]
	}
	if len(places) == 0 {
		return ""
	}
	var outline path
	low := make([]float64, len(places))
	for i, place := range places {
		sorted := slices.Sorted(slices.Values(s.Trials[i]))
		n := len(sorted)
		low[i] = logNs(sorted[n/4])
		outline.to(x.At(place), y.down(logNs(sorted[n-1-n/4])))
	}
	for i := len(places) - 1; i >= 0; i-- {
		outline.to(x.At(places[i]), y.down(low[i]))
	}
	return outline.String() + "Z"
}

func logNs(ns int64) float64 { return math.Log(float64(max(ns, 1))) }
