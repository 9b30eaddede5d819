package doc

import (
	"fmt"
	"io"
	"regexp"
	"strings"
)

// Markdown writes the page as GitHub flavoured Markdown, for a pull request or an
// issue. Folds are <details>, drawings are left out. It returns the first error
// of writing.
func Markdown(w io.Writer, p Page) error {
	m := &markdownWriter{}
	m.blocks(p.Blocks)
	if p.Foot != "" {
		m.raw("<sub>" + escapeMarkdown(p.Foot) + "</sub>\n")
	}
	_, err := io.WriteString(w, strings.TrimLeft(m.out.String(), "\n"))
	return err
}

type markdownWriter struct{ out strings.Builder }

func (m *markdownWriter) raw(text string) { m.out.WriteString(text) }

// special are the characters that mean something within a line of Markdown. At
// the beginning of a line others do: startsBlock.
var special = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", `*`, `\*`, `_`, `\_`, `[`, `\[`, `]`, `\]`, `|`, `\|`, `~`, `\~`, `!`, `\!`,
	`&`, `&amp;`, `<`, `&lt;`, `>`, `&gt;`, `$`, `<span>$</span>`,
	`@`, `@<!-- -->`, `#`, `#<!-- -->`, `://`, `:<!-- -->//`, `www.`, `www<!-- -->.`, // GitHub would notify people, and link issues and addresses
)

// startsBlock matches what begins a list or a rule at the beginning of a line.
var startsBlock = regexp.MustCompile(`^(\d*)([-+=.)#:])`)

// escapeMarkdown is text on one line without a meaning in Markdown.
func escapeMarkdown(text string) string { return special.Replace(oneLine(text)) }

// escapeLine is the same where it begins a line.
func escapeLine(text string) string {
	return startsBlock.ReplaceAllString(escapeMarkdown(text), `$1\$2`)
}

// inSummary are the characters that mean something in a block of HTML.
var inSummary = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "$", "<span>$</span>",
	"@", "@<!-- -->", "#", "#<!-- -->", "://", ":<!-- -->//", "www.", "www<!-- -->.")

func (m *markdownWriter) blocks(all []Block) {
	for _, b := range all {
		m.block(b)
	}
}

// block writes a block; every block ends with an empty line.
func (m *markdownWriter) block(b Block) {
	switch b := b.(type) {
	case Heading:
		// GitHub's pages have headings of the first level of their own.
		m.raw(strings.Repeat("#", min(max(b.Level, 1), 4)+1) + " " + escapeMarkdown(b.Text) + "\n\n")
	case Paragraph:
		m.raw(markdownLine(b.Text) + "\n\n")
	case Warning:
		m.raw("> [!WARNING]\n> " + markdownLine(b.Text) + "\n\n")
	case List:
		for _, item := range b.Items {
			m.raw("- " + markdownLine(item) + "\n")
		}
		m.raw("\n")
	case Terms:
		m.terms(b)
	case Code:
		m.code(b.Text)
	case Figure:
		if b.Text != "" {
			m.code(b.Text)
		}
	case Fold:
		m.raw("<details><summary>" + inSummary.Replace(oneLine(b.Summary)) + "</summary>\n\n")
		m.blocks(b.Blocks)
		m.raw("</details>\n\n")
	case Table:
		if len(b.Rows) > 0 {
			m.table(&b)
		}
	}
}

func (m *markdownWriter) terms(b Terms) {
	for i, item := range b.Items {
		name := escapeMarkdown(item.Name)
		switch {
		case b.Inline && i > 0:
			m.raw(" · ")
		case !b.Inline:
			m.raw("- ")
		}
		m.raw("**" + name + "** " + markdownSpans(item.Text, false))
		if !b.Inline {
			m.raw("\n")
		}
	}
	m.raw("\n")
	if b.Inline {
		m.raw("\n")
	}
}

// code writes lines in a fence that none of them closes.
func (m *markdownWriter) code(text string) {
	text = strings.TrimRight(Printable(text), "\n")
	fence := strings.Repeat("`", max(3, longestRun(text)+1))
	m.raw(fence + "\n" + text + "\n" + fence + "\n\n")
}

// longestRun is the length of the longest run of backticks.
func longestRun(text string) int {
	longest, n := 0, 0
	for _, r := range text {
		if n++; r != '`' {
			n = 0
		}
		longest = max(longest, n)
	}
	return longest
}

func markdownLine(text Spans) string { return markdownSpans(text, true) }

// markdownSpans is running text on one line, which it may begin.
func markdownSpans(text Spans, begins bool) string {
	var b strings.Builder
	for i, s := range text {
		one := oneLine(s.Text)
		if one == "" {
			if s.Text != "" && i > 0 {
				b.WriteByte(' ')
			}
			continue
		}
		if i > 0 && isBreak(rune(s.Text[0])) {
			b.WriteByte(' ')
		}
		out := escapeMarkdown(one)
		switch {
		case s.Code:
			out = codeSpan(one)
		case begins && b.Len() == 0 && !s.Strong:
			out = escapeLine(one)
		}
		if s.Strong {
			out = "**" + out + "**"
		}
		if isLink(s.Link) {
			out = "[" + out + "](<" + strings.NewReplacer("<", "%3C", ">", "%3E", "\\", "%5C", "|", "%7C").Replace(oneLine(s.Link)) + ">)"
		}
		b.WriteString(out)
		if last := s.Text[len(s.Text)-1]; i < len(text)-1 && isBreak(rune(last)) {
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// codeSpan is text on one line in a fence that it does not close. A table's cell
// would end at a | in it, so that such text is no code.
func codeSpan(text string) string {
	if strings.ContainsAny(text, "|$") {
		return escapeMarkdown(text)
	}
	fence := strings.Repeat("`", longestRun(text)+1)
	if strings.HasPrefix(text, "`") || strings.HasSuffix(text, "`") {
		text = " " + text + " "
	}
	return fence + text + fence
}

func (m *markdownWriter) table(b *Table) {
	if b.Caption != "" && !b.Unlabelled {
		m.raw("**" + escapeMarkdown(b.Caption) + "**\n\n")
	}
	m.raw("|")
	rule := "|"
	for _, c := range b.Columns {
		if c.Drawn {
			continue
		}
		m.raw(" " + escapeMarkdown(c.Head) + " |")
		if c.Right {
			rule += " --: |"
		} else {
			rule += " --- |"
		}
	}
	m.raw("\n" + rule + "\n")
	for _, row := range b.Rows {
		m.raw("|")
		for i, c := range b.Columns {
			if c.Drawn {
				continue
			}
			var cell Cell
			if i < len(row.Cells) {
				cell = row.Cells[i]
			}
			m.raw(" " + markdownCell(&cell, row.Sum) + " |")
		}
		m.raw("\n")
	}
	m.raw("\n")
}

func markdownCell(c *Cell, strong bool) string {
	text := markdownSpans(Spans{{Text: c.Text, Strong: c.Strong || strong, Code: c.Code}}, false)
	for _, note := range c.Notes {
		text += fmt.Sprintf("<br><sub>%s</sub>", escapeMarkdown(note))
	}
	return text
}
