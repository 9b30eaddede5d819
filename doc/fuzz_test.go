package doc_test

import (
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/tarehq/tare/doc"
)

// FuzzStructure writes a page with a stranger's string everywhere. No string may
// add an element to the HTML, anything with a meaning to the Markdown, or a
// control character to the text.
func FuzzStructure(f *testing.F) {
	for _, seed := range []string{"", " ", "x", "a|b", "<script>alert(1)</script>", "</style></title>", "`` ` ```", "- item", "1. item", "# head", "> quote",
		"[a](javascript:alert(1))", "![i](http://x/y)", "**bold**", "~~~", "\n\n---\n", "a\\", "\\|", "@user #12 www.x.org", "$a$", "&amp;", "\"' onload=x", "\x1b[31m", "\u202e", "\xff",
		"--- | ---", "=", "</details>", "<!-- ", "-->", "\u2028", "]]>", "http://a|b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		alike := "x" // a string that means as little
		if strings.Trim(s, " \n\t") == "" {
			alike = s
		}
		text := writeMarkdown(s)
		if i := strings.IndexFunc(text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r == 0x202e }); i >= 0 {
			t.Errorf("%q: a control character is written: %q", s, text[i:])
		}
		compareLines(t, s, listElements(s), listElements(alike))
		compareLines(t, s, structureOf(text), structureOf(writeMarkdown(alike)))
	})
}

// compareLines reports the first line that differs.
func compareLines(t *testing.T, s, got, want string) {
	t.Helper()
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			t.Errorf("%q: line %d means %q, want %q", s, i, a[i], b[i])
			return
		}
	}
	if len(a) != len(b) {
		t.Errorf("%q: got %d lines, want %d", s, len(a), len(b))
	}
}

// writeMarkdown is the sample page in Markdown.
func writeMarkdown(s string) string {
	var b strings.Builder
	if err := doc.Markdown(&b, samplePage(s)); err != nil {
		panic(err)
	}
	return b.String()
}

// listElements lists the elements of the sample page in HTML with the names of their
// attributes.
func listElements(s string) string {
	var page strings.Builder
	if err := doc.HTML(&page, samplePage(s), doc.HTMLOptions{}); err != nil {
		panic(err)
	}
	var out strings.Builder
	z := html.NewTokenizer(strings.NewReader(page.String()))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return out.String()
		case html.StartTagToken, html.EndTagToken, html.SelfClosingTagToken, html.CommentToken, html.DoctypeToken:
			t := z.Token()
			out.WriteString(t.Type.String() + " " + t.Data)
			for _, a := range t.Attr {
				out.WriteString(" " + a.Key)
			}
			out.WriteByte('\n')
		}
	}
}

var (
	fenced    = regexp.MustCompile("(?ms)^(`{3,})\n.*?\n(`{3,})\n")
	summary   = regexp.MustCompile(`<summary>[^<>]*(<!-- -->[^<>]*|<span>\$</span>[^<>]*)*</summary>`)
	isolated  = regexp.MustCompile(`[@#:E]<!-- -->|www<!-- -->|<span>\$</span>|&(amp|lt|gt);`)
	target    = regexp.MustCompile(`\]\(<[^<>\n]*>\)`)
	backticks = regexp.MustCompile("^`+")
	structure = regexp.MustCompile("(?m)^(\\d+[.)]|[-+=>#]+)|[|<>*_~$@\\[\\]`]")
)

// structureOf is what is left of Markdown, line by line, without escaped
// characters, code and words.
func structureOf(text string) string {
	text = fenced.ReplaceAllString(text, "CODE\n")
	text = summary.ReplaceAllString(text, "SUMMARY")
	text = dropInline(text)
	text = isolated.ReplaceAllString(text, "E")
	text = target.ReplaceAllString(text, "]TARGET")
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString(strings.Join(structure.FindAllString(line, -1), ""))
		out.WriteByte('\n')
	}
	return out.String()
}

// dropInline cuts out escaped characters, and code spans, which end at a run of
// as many backticks.
func dropInline(text string) string {
	var out strings.Builder
	for len(text) > 0 {
		run := backticks.FindString(text)
		switch {
		case text[0] == '\\' && len(text) > 1:
			out.WriteByte('E')
			text = text[2:]
		case run == "":
			out.WriteByte(text[0])
			text = text[1:]
		default:
			text = text[len(run):]
			line, _, _ := strings.Cut(text, "\n")
			end := regexp.MustCompile("(^|[^`])" + run + "($|[^`])").FindStringSubmatchIndex(line)
			if end == nil {
				out.WriteString("UNCLOSED" + run)
				continue
			}
			text = text[end[3]+len(run):]
			out.WriteByte('C')
		}
	}
	return out.String()
}
