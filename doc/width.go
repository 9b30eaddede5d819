package doc

import (
	"strings"
	"unicode"

	"github.com/clipperhouse/displaywidth"
)

// Printable returns text without what would steer a terminal or hide in a page:
// control characters other than tabs and ends of lines, marks that turn the direction of
// writing, and letters that show nothing. A replacement character stands for each.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Bidi_Control, unicode.Other_Default_Ignorable_Code_Point) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// Width is the number of a terminal's columns that text takes.
func Width(text string) int { return displaywidth.String(text) }

// Cut shortens text to at most width columns, with … where it was longer. A width
// of 0 cuts nothing.
func Cut(text string, width int) string {
	if width <= 0 {
		return text
	}
	return displaywidth.TruncateString(text, width, "…")
}

// isBreak reports whether a line may end at r. A space that does not break is kept.
func isBreak(r rune) bool { return r == ' ' || r == '\n' || r == '\t' }

// oneLine is printable text on one line.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(Printable(text), isBreak), " ")
}

// piece is a part of a word in one style.
type piece struct {
	text string
	span Span
}

// word is what no line break parts.
type word []piece

func (w word) width() int {
	n := 0
	for _, p := range w {
		n += Width(p.text)
	}
	return n
}

// splitWords parts running text at white space; a word may change its style.
func splitWords(text Spans) []word {
	var words []word
	var open word
	for _, s := range text {
		clean := Printable(s.Text)
		for clean != "" {
			end := strings.IndexFunc(clean, isBreak)
			if end == 0 {
				if open != nil {
					words, open = append(words, open), nil
				}
				clean = strings.TrimLeftFunc(clean, isBreak)
				continue
			}
			if end < 0 {
				end = len(clean)
			}
			open = append(open, piece{clean[:end], s})
			clean = clean[end:]
		}
	}
	if open != nil {
		words = append(words, open)
	}
	return words
}

// Wrap breaks text at spaces into lines of at most width columns. A longer word
// has a line of its own. A width of 0 breaks nothing.
func Wrap(text string, width int) []string {
	var lines []string
	for _, words := range fillLines(splitWords(Plain(text)), width) {
		parts := make([]string, len(words))
		for i, w := range words {
			parts[i] = w[0].text
		}
		lines = append(lines, strings.Join(parts, " "))
	}
	return lines
}

// fillLines sets words on lines; there is one line at least.
func fillLines(words []word, width int) [][]word {
	lines := [][]word{nil}
	used := 0
	for _, w := range words {
		last := len(lines) - 1
		n := w.width()
		if width > 0 && len(lines[last]) > 0 && used+1+n > width {
			lines, last, used = append(lines, nil), last+1, 0
		}
		if len(lines[last]) > 0 {
			used++
		}
		lines[last] = append(lines[last], w)
		used += n
	}
	return lines
}
