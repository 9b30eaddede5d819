// Package report writes what a run says for its readers.
//
// [Text] is for a person at a terminal or in a pipe, [HTML] for a browser,
// [JSON] for programs, [Bench] for benchstat, [Compare] sets two runs against
// each other. Each takes an analysis of lab/verdict (Bench the run itself, HTML
// it too, since they show the single trials) and writes; none of them decides
// anything, so that all forms say the same. Wherever a figure stands, its
// interval and number of blocks stand beside it, and where something is not
// shown the reason is.
package report

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// page writes lines of text of a limited width, with colour or without. The
// first error ends all writing and is kept.
type page struct {
	w     io.Writer
	width int
	color bool
	err   error

	explained bool // the marks of the medians
}

// style is an ANSI rendition.
type style string

const (
	plain  style = ""
	bold   style = "1"
	dim    style = "2"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
)

// in renders text in a style, if the page has colour.
func (p *page) in(s style, text string) string {
	text = Printable(text)
	if !p.color || s == plain || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// Printable returns text, which an arm or somebody else's run may have made up,
// without what would steer a terminal: control characters other than the tab and
// the end of a line, and marks that turn the direction of writing.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// line writes one line; white space at its end is cut.
func (p *page) line(format string, args ...any) {
	if p.err != nil {
		return
	}
	text := format
	if len(args) > 0 {
		text = fmt.Sprintf(format, args...)
	}
	_, p.err = io.WriteString(p.w, strings.TrimRight(text, " ")+"\n")
}

// wrap writes text within the page's width: the first line after first, the
// others after as much space.
func (p *page) wrap(first, text string) { p.wrapIn(plain, first, text) }

func (p *page) wrapIn(s style, first, text string) {
	indent := utf8.RuneCountInString(first)
	for i, line := range Fold(text, p.width-indent) {
		if i > 0 {
			first = strings.Repeat(" ", indent)
		}
		p.line("%s%s", Printable(first), p.in(s, line))
	}
}

// Fold breaks text at spaces into lines of at most width columns; a longer
// word has a line of its own.
func Fold(text string, width int) []string {
	var lines []string
	var line string
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	if line != "" || len(lines) == 0 {
		lines = append(lines, line)
	}
	return lines
}

// column heads a column of a table.
type column struct {
	head string
	left bool // aligned; numbers are on the right
	most int  // columns of text shown at most, longer cells cut with …; 0 = no bound
}

// item is a cell of a table.
type item struct {
	text  string
	style style
}

// table writes rows under their heads.
func (p *page) table(cols []column, rows [][]item) {
	widths := make([]int, len(cols))
	head := make([]item, len(cols))
	for i, c := range cols {
		head[i] = item{c.head, dim}
		for _, row := range append([][]item{head}, rows...) {
			row[i].text = shorten(row[i].text, c.most)
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i].text))
		}
	}
	for _, row := range append([][]item{head}, rows...) {
		var b strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell.text))
			text := p.in(cell.style, cell.text)
			switch {
			case !cols[i].left:
				b.WriteString(pad + text)
			case i == len(row)-1:
				b.WriteString(text)
			default:
				b.WriteString(text + pad)
			}
			if i < len(row)-1 {
				b.WriteString("  ")
			}
		}
		p.line("  %s", b.String())
	}
}

// shorten cuts text to at most n columns.
func shorten(text string, n int) string {
	if n <= 0 || utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n-1]) + "…"
}
