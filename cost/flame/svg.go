package flame

import (
	"bufio"
	"cmp"
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/tarehq/tare/stats/unit"
)

// Height of one box, and the width of a letter, in the drawing's units, of which
// its width has 1000.
const (
	rowHeight   = 16
	letterWidth = 6.2
	drawingWide = 1000
)

// SVG draws boxes. Values are in the unit of unit.Format. Each box is a group
// with class "b" and the data attributes x, w (both 0 to 1), d (depth), o (the
// owner, if it has one) and f (the owner that begins there, if it has none), by
// which a script can zoom; its title says name, owner,
// value and share, and works without one.
func SVG(w io.Writer, boxes []Box, base string) error {
	out := bufio.NewWriter(w)
	deep := 0
	for _, b := range boxes {
		deep = max(deep, b.Depth)
	}
	height := (deep + 1) * rowHeight
	colours := Colours(byArea(boxes))
	fmt.Fprintf(out, `<svg class="flame" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="100%%" font-family="ui-monospace,monospace" font-size="10" role="img" aria-label="flame graph">`+"\n", drawingWide, height)
	for i := range boxes {
		b := boxes[i]
		b.Fill = cmp.Or(b.Fill, colours[b.Owner], colours[b.From], Shared)
		b.draw(out, height-(b.Depth+1)*rowHeight, base)
	}
	fmt.Fprintln(out, "</svg>")
	return out.Flush()
}

// draw writes the box whose upper side is at y.
func (b *Box) draw(out io.Writer, y int, base string) {
	x, wide := b.X*drawingWide, b.Width*drawingWide
	name, note, owner := clean(b.Name), b.Note, ""
	if note == "" {
		note = fmt.Sprintf(": %s, %s", unit.Format(b.Value, base), unit.Format(b.Width, unit.Share))
		switch {
		case b.Owner != "":
			note = ", of " + b.Owner + note
		case b.From != "":
			note = ", begins " + b.From + note
		}
	}
	switch {
	case b.Owner != "":
		owner = fmt.Sprintf(` data-o="%s"`, html.EscapeString(clean(b.Owner)))
	case b.From != "":
		owner = fmt.Sprintf(` data-f="%s"`, html.EscapeString(clean(b.From)))
	}
	fmt.Fprintf(out, `<g class="b" data-x="%.6f" data-w="%.6f" data-d="%d"%s><title>%s%s</title><rect x="%.2f" y="%d" width="%.2f" height="%d" rx="1" fill="%s"/>`,
		b.X, b.Width, b.Depth, owner, html.EscapeString(name), html.EscapeString(clean(note)),
		x, y, max(wide-0.3, 0.1), rowHeight-1, html.EscapeString(b.Fill))
	if label := fit(name, wide); label != "" {
		fmt.Fprintf(out, `<text x="%.2f" y="%d" fill="#000">%s</text>`, x+2, y+11, html.EscapeString(label))
	}
	fmt.Fprintln(out, "</g>")
}

// fit shortens a function's name to a width: the directories of its package go
// first, then its end. Nothing is left of what would be below three letters.
func fit(name string, wide float64) string {
	letters := int((wide - 4) / letterWidth)
	if letters < 3 {
		return ""
	}
	runes := []rune(name[strings.LastIndexByte(name, '/')+1:])
	if len(runes) <= letters {
		return string(runes)
	}
	return string(runes[:letters-1]) + "…"
}

// clean drops what may not stand in XML.
func clean(name string) string {
	b := make([]rune, 0, len(name))
	for _, r := range name {
		if r >= ' ' && r != 0xFFFE && r != 0xFFFF && r != 0xFFFD {
			b = append(b, r)
		}
	}
	return string(b)
}
