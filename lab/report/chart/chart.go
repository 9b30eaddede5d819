// Package chart draws a report's figures as the parts of SVG drawings.
//
// An [Extent] gathers values and makes an [Axis] of them, which maps values to
// coordinates. Drawings are built of these: a [Plot] is lines and areas over two
// axes, as [Quantiles] and [Course.Plot] draw them, and a [Bar] is one effect
// with its interval, as wide as the row of a table. They hold text and numbers for a
// template to place and to escape; colours and strokes are the style sheet's,
// by the classes named here.
//
// Everything is a function of its arguments, so the same figures are drawn the
// same to the byte. Nothing is decided here, neither what is shown nor what it
// means: that is for the report. The types are plain data: any number of
// goroutines may read one, and only one change it. For a drawing that needs more than lines and
// areas, or more than some thousand points, this is the wrong place.
package chart

import (
	"fmt"
	"math"
	"slices"
)

// Across is the width of every drawing. Drawings are as wide as the page lets
// them: their horizontal coordinates run from 0 to Across whatever the width,
// and strokes and text do not scale.
const Across = 1000

// Plot is a drawing of lines over two axes. Its text stands at percentages of
// the width and at pixels of the height, so it is as large on a phone as on a
// screen.
type Plot struct {
	Title, Desc string
	Height      int    // of the lines' part, px
	X           []Tick // in percent of the width
	Y           []Tick // in px from the top
	Areas       []Curve
	Lines       []Curve
}

// Curve is a line or an area of a plot.
type Curve struct {
	Class string // of the style sheet
	D     string // data of an SVG path
}

// Axis is where the labels of the x axis stand, px from the top.
func (p *Plot) Axis() int { return p.Height + 14 }

// Total is the height with the labels, px.
func (p *Plot) Total() int {
	if len(p.X) == 0 {
		return p.Height
	}
	return p.Height + 18
}

// hues is the number of colours; lines beyond take them again, dashed.
const hues = 8

// Hue is the class of the i-th arm's line; 0 is the control.
func Hue(i int) string {
	c := fmt.Sprintf("c%d", i%hues)
	if dash := i / hues; dash > 0 {
		c += fmt.Sprintf(" d%d", min(dash, 2))
	}
	return c
}

// Label is the name of a line at its end.
type Label struct {
	Class, Text string
	Y           float64 // of the text, px from the top
	From        float64 // of the line's end, likewise
}

// lineHeight is how far labels are apart at least, px.
const lineHeight = 16

// Spread sorts labels by where their lines end and sets Y so that none overlap,
// within height as long as there is room for all.
func Spread(labels []Label, height float64) {
	slices.SortStableFunc(labels, func(a, b Label) int { return int(math.Copysign(1, a.From-b.From)) })
	for i := range labels {
		labels[i].Y = max(labels[i].From, lineHeight/2)
		if i > 0 {
			labels[i].Y = max(labels[i].Y, labels[i-1].Y+lineHeight)
		}
	}
	limit := height - lineHeight/2
	for i := len(labels) - 1; i >= 0; i-- {
		labels[i].Y = min(labels[i].Y, limit)
		limit = labels[i].Y - lineHeight
	}
}
