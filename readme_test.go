package tare_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// part is a heading, a table's row, a code block, an item of a list or a paragraph.
type part struct {
	kind  string
	line  int    // its first
	text  string // as it stands
	exact string // what a translation keeps
}

var (
	target = regexp.MustCompile(`\]\(([^)]*)\)`)
	figure = regexp.MustCompile(`\d+(?:[.,]\d+)*`)
)

// readParts divides a page into its parts.
func readParts(text string) []part {
	var all []part
	kind := "" // of the part that goes on
	for i, line := range strings.Split(text, "\n") {
		switch {
		case kind == "code":
			if strings.HasPrefix(line, "```") {
				kind = ""
			}
			all[len(all)-1].text += "\n" + line
			continue
		case line == "":
			kind = ""
			continue
		case strings.HasPrefix(line, "```"):
			kind = "code"
		case strings.HasPrefix(line, "#"):
			kind = line[:strings.IndexByte(line+" ", ' ')]
		case strings.HasPrefix(line, "|"):
			kind = "row"
		case strings.HasPrefix(line, "- "):
			kind = "item"
		case kind == "item" || kind == "paragraph":
			all[len(all)-1].text += "\n" + line
			continue
		default:
			kind = "paragraph"
		}
		all = append(all, part{kind: kind, line: i + 1, text: line})
	}
	for i := range all {
		all[i].exact = keepExact(all[i])
	}
	return all
}

// keepExact is what a translation of a part has too: code, links and figures, in any order.
func keepExact(p part) string {
	if p.kind == "code" {
		return p.text
	}
	var kept []string
	rest := p.text
	for _, found := range []*regexp.Regexp{inline, target, figure} {
		kept = append(kept, found.FindAllString(rest, -1)...)
		rest = found.ReplaceAllString(rest, " ")
	}
	slices.Sort(kept)
	return strings.Join(kept, " ")
}

// compareParts says where a translation lacks or has other code, links or figures; "" if nowhere.
func compareParts(original, translation string) string {
	ours, theirs := readParts(original), readParts(translation)
	for i, p := range ours {
		if i >= len(theirs) {
			return fmt.Sprintf("line %d has no counterpart: %s", p.line, p.text)
		}
		if q := theirs[i]; p.kind != q.kind || p.exact != q.exact {
			return fmt.Sprintf("line %d differs from line %d of the translation:\n%s\n%s\nkept must be, in a %s:\n%s\nis, in a %s:\n%s",
				p.line, q.line, p.text, q.text, p.kind, p.exact, q.kind, q.exact)
		}
	}
	if len(theirs) > len(ours) {
		return fmt.Sprintf("line %d of the translation has no counterpart: %s", theirs[len(ours)].line, theirs[len(ours)].text)
	}
	return ""
}

// TestProseInChinese has README.zh-CN.md say what README.md says, as far as a program can
// tell: the same parts in the same order, with the same code, links and figures.
func TestProseInChinese(t *testing.T) {
	var texts [2]string
	for i, page := range []string{"README.md", "README.zh-CN.md"} {
		content, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(content)
	}
	// Each links to the other.
	texts[0] = strings.Replace(texts[0], "(README.zh-CN.md)", "(README.md)", 1)
	if n := len(readParts(texts[0])); n < 100 {
		t.Fatalf("README.md has %d parts, want 100 or more: are they still found?", n)
	}
	if text := compareParts(texts[0], texts[1]); text != "" {
		t.Errorf("README.md, %s\nchange README.zh-CN.md too: translate the words, keep code, links and figures", text)
	}
}

// A translation that has gone stale is seen.
func TestCompareParts(t *testing.T) {
	const page = "# A\n\nTakes 5 µs, see [b](b.md) and `c -d`.\n\n| a | b |\n|---|---|\n| `x` | 1.26 |\n\n- one\n  more\n- two\n\n```\nrun 7\n```\n"
	if text := compareParts(page, strings.NewReplacer("Takes", "Dauert", "one", "eins", "see", "siehe").Replace(page)); text != "" {
		t.Errorf("a true translation: %s", text)
	}
	for was, is := range map[string]string{
		"5 µs": "6 µs", "(b.md)": "(c.md)", "`c -d`": "`c -e`", "# A": "## A", "| `x` | 1.26 |\n": "", "- two\n": "", "run 7": "run 8", "1.26": "1.27",
		"more\n- two": "more two", "```\n": "```\n\n```\n",
	} {
		if text := compareParts(page, strings.Replace(page, was, is, 1)); text == "" {
			t.Errorf("%q in place of %q: not seen", is, was)
		}
	}
}
