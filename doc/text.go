package doc

import (
	"io"
	"strings"
)

// TextOptions say how [Text] lays a page out.
type TextOptions struct {
	// Width is the terminal's, in columns. 0 is for a pipe: a paragraph is one
	// line, a table as wide as it needs, and nothing is cut.
	Width int
	Color bool // ANSI colours; whether to use them (NO_COLOR, pipes) is the caller's decision

	Closed bool // of a fold only its summary is written, as an item of a list
}

// Text writes the page for a terminal or a pipe. It returns the first error of
// writing.
func Text(w io.Writer, p Page, o TextOptions) error {
	t := &textWriter{TextOptions: o}
	t.blocks(p.Blocks)
	if p.Foot != "" {
		t.gap(nil)
		t.spans("", "", Spans{{Text: p.Foot, Tone: Muted}})
	}
	_, err := io.WriteString(w, t.out.String())
	return err
}

type textWriter struct {
	TextOptions
	out  strings.Builder
	last Block // that was written
}

func (t *textWriter) blocks(all []Block) {
	var closed List // folds until now, side by side
	for i, b := range all {
		switch b := b.(type) {
		case Fold:
			switch {
			case b.Lookup:
			case t.Closed:
				closed.Items = append(closed.Items, Plain(b.Summary))
			default:
				t.block(Heading{Level: 2, Text: b.Summary})
				t.blocks(b.Blocks)
			}
			if next := i + 1; len(closed.Items) > 0 && (next == len(all) || !isFold(all[next])) {
				t.block(closed)
				closed = List{}
			}
		case Figure:
			t.figure(b)
		case Table:
			if len(b.Rows) > 0 {
				t.block(b)
			}
		default:
			t.block(b)
		}
	}
}

func (t *textWriter) block(b Block) {
	t.gap(b)
	t.last = b
	switch b := b.(type) {
	case Heading:
		t.spans("", "", Spans{{Text: b.Text, Strong: true}})
	case Paragraph:
		t.spans("", "", b.Text)
	case Warning:
		warning := Spans{{Text: "Warning: ", Tone: Warn, Strong: true}}
		t.spans("", "", append(warning, tint(b.Text, Warn)...))
	case List:
		for _, item := range b.Items {
			t.spans("- ", "  ", item)
		}
	case Terms:
		t.terms(b)
	case Code:
		t.lines("    ", b.Text)
	case Table:
		t.table(&b)
	}
}

// figure writes the text form.
func (t *textWriter) figure(f Figure) {
	if f.Text == "" {
		return
	}
	t.gap(f)
	t.last = f
	t.lines("  ", f.Text)
	if len(f.Caption) > 0 {
		t.spans("", "", tint(f.Caption, Muted))
	}
}

// lines writes text with its own lines, indented.
func (t *textWriter) lines(indent, text string) {
	for line := range strings.SplitSeq(strings.TrimRight(Printable(text), "\n"), "\n") {
		t.line(indent + line)
	}
}

// gap leaves a line between blocks, except below a heading that is not the page's,
// above a note and between warnings.
func (t *textWriter) gap(next Block) {
	if t.last == nil {
		return
	}
	if h, ok := t.last.(Heading); ok && h.Level > 1 {
		return
	}
	_, warned := t.last.(Warning)
	if _, warns := next.(Warning); warned && warns {
		return
	}
	if p, ok := next.(Paragraph); ok && isNote(p) {
		if _, ok := t.last.(Heading); !ok {
			return
		}
	}
	t.line("")
}

func isFold(b Block) bool {
	_, is := b.(Fold)
	return is
}

func isNote(p Paragraph) bool { return len(p.Text) > 0 && p.Text[0].Tone == Muted }

// tint gives spans without a tone one.
func tint(text Spans, tone Tone) Spans {
	out := make(Spans, len(text))
	for i, s := range text {
		if out[i] = s; s.Tone == "" {
			out[i].Tone = tone
		}
	}
	return out
}

func (t *textWriter) line(text string) {
	t.out.WriteString(strings.TrimRight(text, " "))
	t.out.WriteByte('\n')
}

// leastRoom is the width that running text has at least.
const leastRoom = 16

// spans writes running text: the first line after first, the others after rest.
func (t *textWriter) spans(first, rest string, text Spans) {
	room := 0
	if t.Width > 0 {
		room = max(leastRoom, t.Width-Width(first))
	}
	for _, line := range fillLines(splitWords(text), room) {
		var b strings.Builder
		b.WriteString(first)
		for i, w := range line {
			if i > 0 {
				b.WriteByte(' ')
			}
			for _, p := range w {
				b.WriteString(t.styled(p.text, p.span))
			}
		}
		t.line(b.String())
		first = rest
	}
}

// ansi are the renditions of the tones.
var ansi = map[Tone]string{Good: "32", Bad: "31", Warn: "33", Muted: "2"}

// styled renders printable text, if there is colour.
func (t *textWriter) styled(text string, s Span) string {
	code := ansi[s.Tone]
	if s.Strong && code != "" {
		code = "1;" + code
	} else if s.Strong {
		code = "1"
	}
	if !t.Color || code == "" || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// terms writes a column of names and their texts, or one line.
func (t *textWriter) terms(b Terms) {
	if b.Inline {
		var line Spans
		for i, item := range b.Items {
			if i > 0 {
				line = append(line, Span{Text: ", "})
			}
			line = append(append(line, Span{Text: item.Name + " ", Tone: Muted}), item.Text...)
		}
		t.spans("", "", line)
		return
	}
	widest := 0
	for _, item := range b.Items {
		widest = max(widest, Width(oneLine(item.Name)))
	}
	if t.Width > 0 {
		widest = min(widest, max(leastRoom, t.Width/3))
	}
	for _, item := range b.Items {
		name := Cut(oneLine(item.Name), t.bound(widest))
		t.spans(name+strings.Repeat(" ", widest-Width(name)+2), strings.Repeat(" ", widest+2), item.Text)
	}
}

// bound is a width to cut at; in a pipe nothing is cut.
func (t *textWriter) bound(width int) int {
	if t.Width == 0 {
		return 0
	}
	return width
}
