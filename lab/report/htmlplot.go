package report

import (
	"fmt"
	"math"
	"slices"
)

// plot is a drawing of lines over two axes. Its text stands at percentages of
// the width and at pixels of the height, so it is as large on a phone as on a
// screen.
type plot struct {
	Title, Desc string
	Height      int // of the lines' part, px
	X           []tick
	Y           []tick
	Areas       []curve
	Lines       []curve
}

// curve is a line or an area of a plot.
type curve struct{ Class, D string }

// Axis is where the labels of the x axis stand.
func (p *plot) Axis() int { return p.Height + 14 }

// Total is the height with the labels.
func (p *plot) Total() int {
	if len(p.X) == 0 {
		return p.Height
	}
	return p.Height + 18
}

// hues is the number of colours; lines beyond take them again, dashed.
const hues = 8

// hue is the class of the i-th arm's line; 0 is the control.
func hue(i int) string {
	c := fmt.Sprintf("c%d", i%hues)
	if dash := i / hues; dash > 0 {
		c += fmt.Sprintf(" d%d", min(dash, 2))
	}
	return c
}

// label is the name of a line at its end.
type label struct {
	Class, Text string
	Y           float64 // of the text
	From        float64 // of the line's end
}

// lineHeight is how far labels are apart at least, px.
const lineHeight = 16

// spread moves labels apart so that none overlap, within height.
func spread(labels []label, height float64) {
	slices.SortStableFunc(labels, func(a, b label) int { return int(math.Copysign(1, a.From-b.From)) })
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
