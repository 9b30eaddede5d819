package doc

import (
	"slices"
	"strings"
)

// grid is the columns of a table that text shows, with printable cells.
type grid struct {
	cols   []Column
	rows   []Row
	widths []int
}

// indent is the space left of a table.
const indent = "  "

// leastShrunk is the width that cutting leaves to a column.
const leastShrunk = 14

// noteWidth is how wide notes make a column, but for their longest word.
const noteWidth = 20

// leastWrapped is the width that breaking leaves to a column, if it has that much text.
const leastWrapped = 14

// table writes a table as the width allows: whole, without optional columns,
// with cells cut or broken, split between columns, or as records.
func (t *textWriter) table(b *Table) {
	if b.Caption != "" && !b.Unlabelled {
		t.spans("", "", Spans{{Text: b.Caption, Strong: true}})
	}
	g := newGrid(b)
	room := t.Width - len(indent)
	for t.Width > 0 && g.total() > room && g.dropOptional() {
	}
	switch {
	case t.Width == 0 || g.total() <= room || !b.Matrix && !b.Wrap && g.shrink(room):
		t.rows(g)
		return
	case b.Wrap && g.narrow(room):
		t.wrappedRows(g)
		return
	case b.Wrap:
		t.entries(g)
		return
	case !b.Matrix:
		t.records(g)
		return
	}
	for i, part := range g.split(room) {
		if i > 0 {
			t.line("")
		}
		t.rows(part)
	}
}

func newGrid(b *Table) *grid {
	g := &grid{rows: make([]Row, len(b.Rows))}
	var shown []int // columns of the table
	for i, c := range b.Columns {
		if c.Drawn {
			continue
		}
		c.Head = oneLine(c.Head)
		g.cols, shown = append(g.cols, c), append(shown, i)
		g.widths = append(g.widths, Width(c.Head))
	}
	for k, row := range b.Rows {
		g.rows[k].Sum = row.Sum
		for i, from := range shown {
			var cell Cell
			if from < len(row.Cells) {
				cell = row.Cells[from]
			}
			cell.Text = oneLine(cell.Text)
			cell.Strong = cell.Strong || row.Sum
			if !g.cols[i].Key {
				cell.Notes = g.notesBelow(b, i, cell.Notes)
			}
			g.rows[k].Cells = append(g.rows[k].Cells, cell)
			g.widths[i] = max(g.widths[i], Width(cell.Text))
		}
	}
	return g
}

// notesBelow are the notes of a cell that is no key as they stand below it, in lines that end
// at colons: only a matrix has them, and its column is as wide.
func (g *grid) notesBelow(b *Table, column int, notes []string) []string {
	if !b.Matrix {
		return nil
	}
	var lines []string
	for _, note := range notes {
		for part := range strings.SplitAfterSeq(oneLine(note), ": ") {
			lines = append(lines, Wrap(strings.TrimSpace(part), noteWidth)...)
		}
	}
	for _, line := range lines {
		g.widths[column] = max(g.widths[column], Width(line))
	}
	return lines
}

// total is the width of the grid.
func (g *grid) total() int {
	n := 2 * (len(g.cols) - 1)
	for _, w := range g.widths {
		n += w
	}
	return n
}

// pick is the grid of some of its columns.
func (g *grid) pick(columns []int) *grid {
	out := &grid{rows: make([]Row, len(g.rows))}
	for _, i := range columns {
		out.cols, out.widths = append(out.cols, g.cols[i]), append(out.widths, g.widths[i])
		for k := range g.rows {
			out.rows[k].Sum = g.rows[k].Sum
			out.rows[k].Cells = append(out.rows[k].Cells, g.rows[k].Cells[i])
		}
	}
	return out
}

// dropOptional leaves out the last optional column, if there is one.
func (g *grid) dropOptional() bool {
	for i := len(g.cols) - 1; i >= 0; i-- {
		if g.cols[i].Optional {
			var keep []int
			for k := range g.cols {
				if k != i {
					keep = append(keep, k)
				}
			}
			*g = *g.pick(keep)
			return true
		}
	}
	return false
}

// shrink narrows columns until the grid fits, and says whether it does. One that
// cannot be made to fit keeps its widths.
func (g *grid) shrink(room int) bool {
	widths := slices.Clone(g.widths)
	excess := g.total() - room
	for i, c := range g.cols {
		if c.Shrink && excess > 0 {
			less := min(excess, max(0, widths[i]-leastShrunk))
			widths[i] -= less
			excess -= less
		}
	}
	if excess > 0 {
		return false
	}
	g.widths = widths
	return true
}

// narrow takes from the widest columns until the grid fits with its cells broken between
// words, and says whether it does.
func (g *grid) narrow(room int) bool {
	least := make([]int, len(g.cols))
	for i, c := range g.cols {
		least[i] = min(g.widths[i], leastWrapped)
		words := Wrap(c.Head, 1)
		for _, row := range g.rows {
			words = append(words, Wrap(row.Cells[i].Text, 1)...)
		}
		for _, w := range words {
			least[i] = max(least[i], Width(w))
		}
	}
	for g.total() > room {
		widest := -1
		for i, w := range g.widths {
			if w > least[i] && (widest < 0 || w > g.widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return false
		}
		g.widths[widest]--
	}
	return true
}

// split parts the grid into some that fit, each with the key columns. A row
// without a figure in a part is left out of it.
func (g *grid) split(room int) []*grid {
	var keys []int
	used, widest := 0, 0
	for i, c := range g.cols {
		if !c.Key {
			widest = max(widest, g.widths[i])
		}
	}
	for i, c := range g.cols {
		if c.Key {
			if c.Shrink {
				g.widths[i] = min(g.widths[i], max(leastShrunk, min(room/2, room-2-widest)))
			}
			keys = append(keys, i)
			used += g.widths[i]
		}
	}
	var parts []*grid
	var columns []int
	n := used
	flush := func() {
		if len(columns) > 0 {
			part := g.pick(append(slices.Clone(keys), columns...))
			part.rows = slices.DeleteFunc(part.rows, func(r Row) bool { return !r.Sum && isBlank(r.Cells[len(keys):]) })
			parts = append(parts, part)
		}
		columns, n = nil, used
	}
	for i, c := range g.cols {
		if c.Key {
			continue
		}
		if n+2+g.widths[i] > room {
			flush()
		}
		columns = append(columns, i)
		n += 2 + g.widths[i]
	}
	flush()
	return parts
}

// isBlank reports whether no cell has a figure.
func isBlank(cells []Cell) bool {
	return !slices.ContainsFunc(cells, func(c Cell) bool { return c.Text != "" && c.Text != "–" })
}

// rows writes a grid, its head first and a row's notes below it. A key at the end of a
// row that is too long for its column begins the notes.
func (t *textWriter) rows(g *grid) {
	head := Row{}
	for _, c := range g.cols {
		head.Cells = append(head.Cells, Cell{Text: c.Head, Tone: Muted})
	}
	for _, row := range append([]Row{head}, g.rows...) {
		var b strings.Builder
		for i, cell := range row.Cells {
			if i > 0 {
				b.WriteString("  ")
			}
			text := cell.Text
			switch c := g.cols[i]; {
			case t.Width == 0 || Width(text) <= g.widths[i]:
			case c.Key && i == len(row.Cells)-1:
				text, row.Cells[i].Notes = "", append([]string{text}, cell.Notes...)
			case c.Shrink:
				text = Cut(text, g.widths[i])
			}
			pad := strings.Repeat(" ", max(0, g.widths[i]-Width(text)))
			text = t.styled(text, Span{Strong: cell.Strong, Tone: cell.Tone})
			switch {
			case g.cols[i].Right:
				b.WriteString(pad + text)
			case i == len(row.Cells)-1:
				b.WriteString(text)
			default:
				b.WriteString(text + pad)
			}
		}
		t.line(indent + b.String())
		t.below(g, row)
		t.notes(g.cols, row)
	}
}

// below writes the notes of cells that are no keys, each in its column.
func (t *textWriter) below(g *grid, row Row) {
	for n, more := 0, true; more; n++ {
		line := indent
		more = false
		for i, cell := range row.Cells {
			text := ""
			if !g.cols[i].Key && n < len(cell.Notes) {
				text, more = cell.Notes[n], true
			}
			pad := strings.Repeat(" ", max(0, g.widths[i]-Width(text)))
			text = t.styled(text, Span{Tone: Muted})
			if g.cols[i].Right {
				pad, text = "", pad+text
			}
			line += text + pad + "  "
		}
		if more {
			t.line(line)
		}
	}
}

// wrappedRows writes a grid whose cells take several lines. Where they do, a blank line
// parts the rows.
func (t *textWriter) wrappedRows(g *grid) {
	head := Row{}
	for _, c := range g.cols {
		head.Cells = append(head.Cells, Cell{Text: c.Head, Tone: Muted})
	}
	last := 0 // lines of the row before
	for k, row := range append([]Row{head}, g.rows...) {
		cells, height := make([][]string, len(row.Cells)), 0
		for i, cell := range row.Cells {
			cells[i] = Wrap(cell.Text, g.widths[i])
			height = max(height, len(cells[i]))
		}
		if k > 1 && max(height, last) > 1 {
			t.line("")
		}
		last = height
		for n := range height {
			line := indent
			for i, c := range row.Cells {
				text := ""
				if n < len(cells[i]) {
					text = cells[i][n]
				}
				pad := strings.Repeat(" ", max(0, g.widths[i]-Width(text)))
				text = t.styled(text, Span{Strong: c.Strong, Tone: c.Tone})
				if g.cols[i].Right {
					pad, text = "", pad+text
				}
				line += text + pad + "  "
			}
			t.line(line)
		}
	}
}

// entries writes each row of a grid as its key, and below it the other cells by their heads.
func (t *textWriter) entries(g *grid) {
	for k, row := range g.rows {
		if k > 0 {
			t.line("")
		}
		for i, cell := range row.Cells {
			text := Spans{{Text: g.cols[i].Head, Tone: Muted}, {Text: ": ", Tone: Muted}, {Text: cell.Text, Strong: cell.Strong || g.cols[i].Key, Tone: cell.Tone}}
			if g.cols[i].Head == "" {
				text = text[2:]
			}
			first := indent
			if !g.cols[i].Key {
				first += indent
			}
			if cell.Text != "" {
				t.spans(first, first+indent, text)
			}
		}
	}
}

// notes writes what stands below the cells of key columns.
func (t *textWriter) notes(cols []Column, row Row) {
	for i, cell := range row.Cells {
		if cols[i].Key {
			for _, note := range cell.Notes {
				t.spans(indent+indent, indent+indent, Spans{{Text: note, Tone: Muted}})
			}
		}
	}
}

// records writes a row of a grid as a sentence: the key, then its other cells by
// their heads.
func (t *textWriter) records(g *grid) {
	for _, row := range g.rows {
		var key, rest Spans
		for i, cell := range row.Cells {
			span := Span{Text: cell.Text, Strong: cell.Strong, Tone: cell.Tone}
			switch {
			case cell.Text == "":
			case g.cols[i].Key:
				if key != nil {
					key = append(key, Span{Text: ", "})
				}
				span.Strong = true
				key = append(key, span)
			default:
				if rest != nil {
					rest = append(rest, Span{Text: ", "})
				}
				if g.cols[i].Head != "" {
					rest = append(rest, Span{Text: g.cols[i].Head + " ", Tone: Muted})
				}
				rest = append(rest, span)
			}
		}
		if key != nil && rest != nil {
			key = append(key, Span{Text: ": "})
		}
		t.spans("- ", "  ", append(key, rest...))
		t.notes(g.cols, row)
	}
}
