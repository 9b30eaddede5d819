package doc

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"regexp"
	"strings"
)

//go:embed page.css
var pageStyle string

//go:embed zoom.js
var zoomScript string

// HTMLOptions are what a page adds to the package's own. The zero value adds
// nothing.
type HTMLOptions struct {
	Style  string // CSS after the package's own
	Script string // JavaScript; the page must be complete without it
}

// HTML writes the page as one file that needs no other: it loads nothing, reads
// on a phone, in the dark, on paper and without scripts. It returns the first
// error of writing.
func HTML(w io.Writer, p Page, o HTMLOptions) error {
	h := &htmlWriter{}
	policy := "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
	if o.Script != "" {
		sum := sha256.Sum256([]byte(o.Script))
		policy += "; script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	h.raw("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n" +
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n" +
		"<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"generator\" content=\"tare\">\n" +
		"<meta http-equiv=\"Content-Security-Policy\" content=\"" + policy + "\">\n<link rel=\"icon\" href=\"data:,\">\n")
	h.element("title", "", p.Title)
	h.raw("<style>\n" + pageStyle + o.Style + "</style>\n</head>\n<body>\n<main>\n")
	h.blocks(p.Blocks)
	h.raw("</main>\n")
	if p.Foot != "" {
		h.raw("<footer>")
		h.element("p", "", p.Foot)
		h.raw("</footer>\n")
	}
	if o.Script != "" {
		h.raw("<script>" + o.Script + "</script>\n")
	}
	h.raw("</body>\n</html>\n")
	_, err := io.WriteString(w, h.out.String())
	return err
}

// Fragment writes blocks as a part of a page that somebody else begins and ends. [Style] is
// the style sheet that it needs. It returns the first error of writing.
func Fragment(w io.Writer, blocks ...Block) error {
	h := &htmlWriter{}
	h.blocks(blocks)
	_, err := io.WriteString(w, h.out.String())
	return err
}

// Style is the style sheet that [HTML] puts into a page.
func Style() string { return pageStyle }

// ZoomScript is JavaScript that widens what stands in an element of class zoom: the only
// element in that one.
func ZoomScript() string { return zoomScript }

type htmlWriter struct{ out strings.Builder }

func (h *htmlWriter) raw(markup string) { h.out.WriteString(markup) }

// unitAfter is the space between a number and a unit.
var unitAfter = regexp.MustCompile(`(\d) (%|ns|µs|ms|s|B|KiB|MiB|GiB|k|M)\b`)

// escape is text as HTML; a unit stays on its number's line.
func escape(text string) string {
	text = html.EscapeString(Printable(text))
	if strings.ContainsAny(text, "0123456789") {
		text = unitAfter.ReplaceAllString(strings.ReplaceAll(text, " %", "\u00a0%"), "$1\u00a0$2")
	}
	return text
}

// attributes are names and values in turn; empty values are left out.
func attributes(pairs ...string) string {
	var b strings.Builder
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			fmt.Fprintf(&b, " %s=\"%s\"", pairs[i], html.EscapeString(Printable(pairs[i+1])))
		}
	}
	return b.String()
}

// element writes text in an element.
func (h *htmlWriter) element(tag, attributes, text string) {
	fmt.Fprintf(&h.out, "<%s%s>%s</%s>\n", tag, attributes, escape(text), tag)
}

func (h *htmlWriter) blocks(all []Block) {
	for _, b := range all {
		h.block(b)
	}
}

func (h *htmlWriter) block(b Block) {
	switch b := b.(type) {
	case Heading:
		h.element(fmt.Sprintf("h%d", min(max(b.Level, 1), 4)), attributes("id", b.ID), b.Text)
	case Paragraph:
		class := ""
		if isNote(b) {
			class = "note"
		}
		h.wrapped("p", attributes("class", class), b.Text)
	case Warning:
		h.wrapped("p", attributes("class", "warning"), append(Spans{{Text: "Warning: ", Strong: true}}, b.Text...))
	case List:
		h.raw("<ul>\n")
		for _, item := range b.Items {
			h.wrapped("li", "", item)
		}
		h.raw("</ul>\n")
	case Terms:
		h.terms(b)
	case Code:
		h.raw("<pre class=\"scroll\" tabindex=\"0\"><code>" + html.EscapeString(Printable(b.Text)) + "</code></pre>\n")
	case Figure:
		h.figure(b)
	case Fold:
		h.raw("<details" + attributes("id", b.ID) + ">")
		h.element("summary", "", b.Summary)
		h.blocks(b.Blocks)
		h.raw("</details>\n")
	case Table:
		if len(b.Rows) > 0 {
			h.table(&b)
		}
	}
}

func (h *htmlWriter) wrapped(tag, attributes string, text Spans) {
	h.raw("<" + tag + attributes + ">")
	h.spans(text)
	h.raw("</" + tag + ">\n")
}

func (h *htmlWriter) terms(b Terms) {
	class := "terms"
	if b.Inline {
		class = "glance"
	}
	h.raw("<dl class=\"" + class + "\">\n")
	for _, item := range b.Items {
		h.raw("<div>")
		h.element("dt", "", item.Name)
		h.wrapped("dd", "", item.Text)
		h.raw("</div>\n")
	}
	h.raw("</dl>\n")
}

// figure writes a drawing; its alternative is in the picture's own name.
func (h *htmlWriter) figure(f Figure) {
	if f.Drawing == "" {
		return
	}
	h.raw("<figure" + attributes("aria-label", f.Alt) + ">" + string(f.Drawing))
	if len(f.Caption) > 0 {
		h.wrapped("figcaption", "", f.Caption)
	}
	h.raw("</figure>\n")
}

func (h *htmlWriter) spans(text Spans) {
	for _, s := range text {
		if s.Text == "" {
			continue
		}
		var closing []string
		open := func(tag, attributes string) {
			h.raw("<" + tag + attributes + ">")
			closing = append(closing, tag)
		}
		if isLink(s.Link) {
			open("a", attributes("href", s.Link))
		}
		if s.Tone != "" {
			open("span", attributes("class", string(s.Tone)))
		}
		if s.Strong {
			open("b", "")
		}
		if s.Code {
			open("code", "")
		}
		h.raw(escape(s.Text))
		for i := len(closing) - 1; i >= 0; i-- {
			h.raw("</" + closing[i] + ">")
		}
	}
}

// isLink reports whether a page may link there: a link that runs a script is none.
func isLink(link string) bool {
	return strings.HasPrefix(link, "https://") || strings.HasPrefix(link, "http://") || strings.HasPrefix(link, "#")
}

// table writes a table in a frame that scrolls. The roles keep it a table where
// the style sheet of a narrow screen makes records of it.
func (h *htmlWriter) table(b *Table) {
	class := "records"
	if b.Matrix {
		class = "matrix"
	}
	h.raw("<div class=\"scroll\" tabindex=\"0\" role=\"region\"" + attributes("aria-label", b.Caption) + "><table class=\"" + class + "\" role=\"table\">")
	if b.Caption != "" {
		hidden := ""
		if b.Unlabelled {
			hidden = "hidden"
		}
		h.element("caption", attributes("class", hidden), b.Caption)
	}
	h.raw("<thead role=\"rowgroup\"><tr role=\"row\">")
	for i := range b.Columns {
		c := &b.Columns[i]
		h.raw("<th role=\"columnheader\" scope=\"col\"" + attributes("class", c.class()) + ">")
		if c.Drawn {
			h.raw("<span class=\"hidden\">" + escape(c.Head) + "</span>")
		} else {
			h.raw(escape(c.Head))
		}
		h.raw(string(c.Drawing) + "</th>")
	}
	h.raw("</tr></thead>\n<tbody role=\"rowgroup\">\n")
	for _, row := range b.Rows {
		class := ""
		if row.Sum {
			class = "sum"
		}
		h.raw("<tr role=\"row\"" + attributes("class", class) + ">")
		for i := range b.Columns {
			var cell Cell
			if i < len(row.Cells) {
				cell = row.Cells[i]
			}
			h.cell(&b.Columns[i], &cell)
		}
		h.raw("</tr>\n")
	}
	h.raw("</tbody></table></div>\n")
}

// class are the classes of a column's cells.
func (c *Column) class() string {
	var classes []string
	for _, class := range []struct {
		name string
		has  bool
	}{{"num", c.Right}, {"key", c.Key}, {"drawn", c.Drawn}} {
		if class.has {
			classes = append(classes, class.name)
		}
	}
	return strings.Join(classes, " ")
}

func (h *htmlWriter) cell(c *Column, cell *Cell) {
	tag, role := "td", " role=\"cell\""
	if c.Key {
		tag, role = "th", " role=\"rowheader\" scope=\"row\""
	}
	class := c.class()
	if cell.Text == "" && cell.Drawing == "" && len(cell.Notes) == 0 {
		class = strings.TrimSpace(class + " none")
	}
	head := c.Head
	if c.Key {
		head = ""
	}
	h.raw("<" + tag + role + attributes("class", class, "data-head", head) + ">" + string(cell.Drawing))
	h.spans(Spans{{Text: cell.Text, Strong: cell.Strong, Code: cell.Code, Tone: cell.Tone}})
	for _, note := range cell.Notes {
		h.raw("<small>" + escape(note) + "</small>")
	}
	h.raw("</" + tag + ">")
}
