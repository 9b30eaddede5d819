package cli

import (
	"fmt"
	"unicode/utf8"

	"github.com/tarehq/tare/doc"
)

// Progress shows on standard error what is under way: one line redrawn in place on a
// terminal.
type Progress struct {
	Terminal *Terminal
	Drawn    bool // whether anything was
}

// NewProgress has nothing drawn yet.
func NewProgress(t *Terminal) *Progress { return &Progress{Terminal: t} }

// Draw redraws the line on a terminal.
func (p *Progress) Draw(text string) {
	if !p.Terminal.Live {
		return
	}
	text = doc.Printable(text)
	if r := []rune(text); len(r) >= p.Terminal.Columns {
		text = string(r[:p.Terminal.Columns-1])
	}
	fmt.Fprintf(p.Terminal.Err, "\r\x1b[K\x1b[?7l%s\x1b[?7h", text) // cut, not wrapped, where the window has become narrower
	p.Drawn = true
}

// Line prints a line that stays. On a terminal, one that does not fit is broken between words.
func (p *Progress) Line(text string) {
	if text == "" {
		return
	}
	if p.Terminal.Live {
		fmt.Fprint(p.Terminal.Err, "\r\x1b[K")
	}
	if columns := p.Terminal.Columns; columns > 0 && utf8.RuneCountInString(text) > columns {
		p.Terminal.NoteLine(text)
		return
	}
	fmt.Fprintln(p.Terminal.Err, doc.Printable(text))
}

// Done clears the line.
func (p *Progress) Done() {
	if p.Terminal.Live && p.Drawn {
		fmt.Fprint(p.Terminal.Err, "\r\x1b[K")
	}
}
