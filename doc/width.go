package doc

import (
	"strings"
	"unicode"
)

// Printable returns text without what would steer a terminal or hide in a page:
// control characters other than tabs and ends of lines, and marks that turn the
// direction of writing. A replacement character stands for each.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// Width is the number of a terminal's columns that text takes.
func Width(text string) int {
	n := 0
	for _, r := range text {
		n += runeWidth(r)
	}
	return n
}

// wide are the blocks of Unicode whose characters take two columns (East Asian
// Width W and F, after UAX 11), rounded to blocks.
//
// Note: libraries know sequences of emoji as well, which terminals show unlike
// one another. A report's names do not need them.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x1100, 0x115f, 1}, {0x231a, 0x231b, 1}, {0x23e9, 0x23ec, 1}, {0x2e80, 0x303e, 1}, {0x3041, 0xa4cf, 1},
		{0xa960, 0xa97f, 1}, {0xac00, 0xd7a3, 1}, {0xf900, 0xfaff, 1}, {0xfe30, 0xfe6f, 1}, {0xff00, 0xff60, 1}, {0xffe0, 0xffe6, 1},
	},
	R32: []unicode.Range32{{0x1f300, 0x1f64f, 1}, {0x1f680, 0x1f6ff, 1}, {0x1f900, 0x1f9ff, 1}, {0x20000, 0x3fffd, 1}},
}

func runeWidth(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case unicode.Is(wide, r):
		return 2
	}
	return 1
}

// Cut shortens text to at most width columns, with … where it was longer. A width
// of 0 cuts nothing.
func Cut(text string, width int) string {
	if width <= 0 || Width(text) <= width {
		return text
	}
	used := 1 // of the …
	for i, r := range text {
		if used += runeWidth(r); used > width {
			return text[:i] + "…"
		}
	}
	return text
}

// isBreak says whether a line may end at r. A space that does not break is kept.
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
