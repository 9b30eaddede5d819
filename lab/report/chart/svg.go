package chart

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// number keeps coordinates short: to a tenth.
func number(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }

// Element is an element with text, and attributes as names and values in turn.
func Element(tag, text string, attributes ...string) string {
	return openTag(tag, attributes...) + html.EscapeString(text) + "</" + tag + ">"
}

func openTag(tag string, attributes ...string) string {
	var b strings.Builder
	b.WriteString("<" + tag)
	for i := 0; i+1 < len(attributes); i += 2 {
		fmt.Fprintf(&b, " %s=\"%s\"", attributes[i], html.EscapeString(attributes[i+1]))
	}
	b.WriteString(">")
	return b.String()
}

// drawPath is a path, nothing where it has no data.
func drawPath(class, data string) string {
	if data == "" {
		return ""
	}
	return Element("path", "", "class", class, "d", data)
}

// SVG is the bar as an element of a page, as wide as there is room.
func (b *Bar) SVG() string {
	var out strings.Builder
	out.WriteString(openTag("svg", "class", "bar", "viewBox", fmt.Sprintf("0 0 %d %d", Across, BarHeight), "preserveAspectRatio", "none", "role", "img"))
	out.WriteString(Element("title", b.Label))
	if b.BandW > 0 {
		out.WriteString(Element("rect", "", "class", "band", "x", number(b.BandX), "y", "0", "width", number(b.BandW), "height", strconv.Itoa(BarHeight)))
	}
	out.WriteString(drawPath("zero", fmt.Sprintf("M%s 0V%d", number(b.Zero), BarHeight)))
	for _, p := range [][2]string{{"dots", b.Dots}, {"line", b.Line}, {"point", b.Point}, {"published", b.Published}} {
		out.WriteString(drawPath(p[0], p[1]))
	}
	out.WriteString("</svg>")
	return out.String()
}

// Scale is an axis below the head of a column of bars. Ticks stand in percent of the
// width.
func Scale(ticks []Tick) string {
	var out strings.Builder
	out.WriteString(openTag("svg", "class", "ticks", "width", "100%", "height", "16", "aria-hidden", "true"))
	for _, t := range ticks {
		out.WriteString(Element("text", t.Text, "x", number(t.At)+"%", "y", "12"))
	}
	out.WriteString("</svg>")
	return out.String()
}

// SVG is the plot as an element of a page, as wide as there is room.
func (p *Plot) SVG() string {
	var out strings.Builder
	height := strconv.Itoa(p.Height)
	out.WriteString(openTag("svg", "class", "plot", "width", "100%", "height", strconv.Itoa(p.Total()), "role", "img"))
	out.WriteString(Element("title", p.Title) + Element("desc", p.Desc))
	out.WriteString(openTag("svg", "viewBox", fmt.Sprintf("0 0 %d %d", Across, p.Height), "preserveAspectRatio", "none", "width", "100%", "height", height))
	for _, y := range p.Y {
		out.WriteString(drawPath("grid", fmt.Sprintf("M0 %sH%d", number(y.At), Across)))
	}
	for _, a := range p.Areas {
		out.WriteString(drawPath("area "+a.Class, a.D))
	}
	for _, l := range p.Lines {
		out.WriteString(drawPath("curve "+l.Class, l.D))
	}
	out.WriteString("</svg>")
	for _, y := range p.Y {
		out.WriteString(Element("text", y.Text, "class", "y", "x", "2", "y", number(y.At), "dy", "-3"))
	}
	for _, x := range p.X {
		class := "x"
		switch {
		case x.At <= 0:
			class = "x first"
		case x.At >= 99:
			class = "x final"
		}
		out.WriteString(Element("text", x.Text, "class", class, "x", number(x.At)+"%", "y", strconv.Itoa(p.Axis())))
	}
	out.WriteString("</svg>")
	return out.String()
}

// Names are the labels of lines at their ends, to stand right of a plot of that height.
func Names(labels []Label, height int) string {
	var out strings.Builder
	out.WriteString(openTag("svg", "class", "labels", "width", "150", "height", strconv.Itoa(height), "aria-hidden", "true"))
	for _, l := range labels {
		out.WriteString(drawPath("curve "+l.Class, fmt.Sprintf("M0 %sL14 %sH20", number(l.From), number(l.Y))))
		out.WriteString(Element("text", l.Text, "x", "25", "y", number(l.Y), "dy", "4"))
	}
	out.WriteString("</svg>")
	return out.String()
}

// Legend names lines below a plot.
func Legend(labels []Label) string {
	return legend(labels, func(l Label) (swatch, text string) {
		return openTag("svg", "width", "26", "height", "10", "aria-hidden", "true") + drawPath("curve "+l.Class, "M0 5H26"), l.Text
	})
}

// legend lists what there is: a swatch, an svg that is still open, and what it stands for.
func legend[T any](all []T, entry func(T) (swatch, text string)) string {
	var out strings.Builder
	out.WriteString(openTag("div", "class", "legend"))
	for _, one := range all {
		swatch, text := entry(one)
		out.WriteString("<span>" + swatch + "</svg> " + html.EscapeString(text) + "</span> ")
	}
	out.WriteString("</div>")
	return out.String()
}

// Part is a part of a stack: its class, its share of [Across] and what it is.
type Part struct {
	Class string
	Width float64
	Text  string
}

// Stack is parts side by side, as wide as there is room. The label says them in words.
func Stack(label string, parts []Part) string {
	var out strings.Builder
	out.WriteString(openTag("svg", "class", "stack", "viewBox", fmt.Sprintf("0 0 %d 20", Across), "preserveAspectRatio", "none", "role", "img"))
	out.WriteString(Element("title", label))
	x := 0.0
	for _, p := range parts {
		out.WriteString(openTag("rect", "class", p.Class, "x", number(x), "y", "0", "width", number(p.Width), "height", "20") + Element("title", p.Text) + "</rect>")
		x += p.Width
	}
	out.WriteString("</svg>")
	return out.String()
}

// Keys say which class of a stack is what.
func Keys(parts []Part) string {
	return legend(parts, func(p Part) (swatch, text string) {
		return openTag("svg", "width", "11", "height", "11", "aria-hidden", "true") + Element("rect", "", "class", p.Class, "width", "11", "height", "11"), p.Text
	})
}
