package tare_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Bounds on the prose of README.md and docs: most sentences are short, with few commas.
const (
	mostWords  = 26  // of nine sentences in ten
	mostCommas = 0.8 // a sentence
)

var (
	fenced    = regexp.MustCompile("(?s)```.*?```")
	noProse   = regexp.MustCompile(`(?m)^(    |\||#).*$`) // indented code, tables, headings
	inline    = regexp.MustCompile("`[^`]*`")
	linked    = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	paragraph = regexp.MustCompile(`\n\s*\n`)
	sentence  = regexp.MustCompile(`[^.!?]+(?:[.!?]+[^\s.!?][^.!?]*)*[.!?]*`)
)

// TestProse prints and bounds the words and commas of sentences in README.md and docs:
// go test -run TestProse -v .
func TestProse(t *testing.T) {
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	var all []int
	commas := 0
	for _, page := range append(pages, "README.md") {
		content, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		lengths, n := measureProse(string(content))
		t.Logf("%-24s %4d sentences, nine in ten of at most %d words, %.2f commas a sentence",
			page, len(lengths), ninth(lengths), float64(n)/float64(max(1, len(lengths))))
		all, commas = append(all, lengths...), commas+n
	}
	share := float64(commas) / float64(len(all))
	t.Logf("%-24s %4d sentences, nine in ten of at most %d words, %.2f commas a sentence", "all", len(all), ninth(all), share)
	if got := ninth(all); got > mostWords || share > mostCommas {
		t.Errorf("nine sentences in ten have at most %d words and there are %.2f commas a sentence; want at most %d and %.1f: break the longest ones", got, share, mostWords, mostCommas)
	}
}

// measureProse returns the words of each sentence, and the commas of all.
func measureProse(text string) (lengths []int, commas int) {
	text = linked.ReplaceAllString(inline.ReplaceAllString(noProse.ReplaceAllString(fenced.ReplaceAllString(text, ""), ""), "X"), "$1")
	for _, part := range paragraph.Split(text, -1) {
		for _, s := range sentence.FindAllString(part, -1) {
			if n := len(strings.Fields(s)); n > 2 {
				lengths = append(lengths, n)
				commas += strings.Count(s, ",")
			}
		}
	}
	return lengths, commas
}

// ninth is the length that nine sentences in ten do not exceed.
func ninth(lengths []int) int {
	if len(lengths) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(lengths))
	return sorted[len(sorted)*9/10]
}

func TestMeasureProse(t *testing.T) {
	lengths, commas := measureProse("# A heading, with a comma\n\nOne two three. Four, five `a, b` six!\n\n| a, | b |\n\n```\ncode, code\n```\n\nSee [the page](x,y) at 3.5 ms.\n")
	if want := []int{3, 4, 6}; !slices.Equal(lengths, want) || commas != 1 {
		t.Errorf("got sentences of %v words and %d commas, want %v and 1", lengths, commas, want)
	}
}
