package doc_test

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tarehq/tare/doc"
)

var update = flag.Bool("update", false, "write the golden files anew")

// samplePage has every block, with s wherever a string may come from a stranger.
func samplePage(s string) doc.Page {
	p := doc.Page{Title: "study " + s, Foot: "run 7 " + s}
	p.Add(
		doc.Heading{Level: 1, Text: "chi costs 2.1 % " + s},
		doc.Terms{Inline: true, Items: []doc.Term{{Name: "state", Text: doc.Plain("decided")}, {Name: "blocks " + s, Text: doc.Plain("12 " + s)}}},
		doc.Warning{Text: doc.Plain("the host gave others 9 % of the CPU time " + s)},
		doc.Heading{Level: 2, Text: "Claims " + s, ID: "claims"},
		doc.Note("Each claim has the verdict of its first check "+s),
		doc.Paragraph{Text: doc.Spans{{Text: s}, {Text: " run "}, {Text: "tare run nesting " + s, Code: true}, {Text: " or "}, {Text: "see " + s, Link: "https://example.com/?q=" + s, Strong: true}, {Text: ".", Tone: doc.Bad}}},
		doc.List{Items: []doc.Spans{doc.Plain(s), {{Text: "better " + s, Tone: doc.Good}, {Text: s, Strong: true}}}},
		doc.Terms{Items: []doc.Term{{Name: "design " + s, Text: doc.Plain("randomised blocks, a fresh process for each trial; seed 1, 12 blocks " + s)}, {Name: s, Text: doc.Plain("none")}}},
		doc.Code{Text: "MOVQ AX, BX\nCALL runtime.newobject " + s},
		doc.Fold{Summary: "All metrics " + s, ID: "all", Blocks: []doc.Block{
			sampleTable(s),
			doc.Figure{Alt: "rates " + s, Caption: doc.Plain("Answers a second " + s), Drawing: `<svg role="img" viewBox="0 0 1 1"><title>rates</title></svg>`, Text: "▁▂▃ " + s},
			doc.Figure{Alt: "drawn only " + s, Drawing: `<svg role="img" viewBox="0 0 1 1"><title>drawn</title></svg>`},
			doc.Table{Caption: "empty " + s, Columns: []doc.Column{{Head: s}}},
		}},
	)
	return p
}

func sampleTable(s string) doc.Table {
	return doc.Table{
		Caption: "throughput " + s,
		Columns: []doc.Column{{Head: "arm " + s, Key: true, Shrink: true}, {Head: "median", Right: true}, {Head: "interval", Drawn: true, Drawing: `<svg aria-hidden="true"></svg>`},
			{Head: "difference", Right: true, Optional: true}, {Head: "verdict"}},
		Rows: []doc.Row{
			{Cells: []doc.Cell{{Text: "chi " + s, Notes: []string{"github.com/go-chi/chi/v5 " + s}}, {Text: "1.84 ms", Code: true}, {Drawing: `<svg role="img"></svg>`}, {Text: "+38 µs"}, {Text: "slower " + s, Tone: doc.Bad}}},
			{Cells: doc.Cells("net/http "+s, "1.80 ms")},
			{Sum: true, Cells: doc.Cells("all", "3.64 ms", "", "", s)},
		},
	}
}

func TestWriters(t *testing.T) {
	page := samplePage("a|b <i>*x*")
	for _, c := range []struct {
		file  string
		write func(io.Writer) error
	}{
		{"page.pipe.txt", func(w io.Writer) error { return doc.Text(w, page, doc.TextOptions{}) }},
		{"page.60.txt", func(w io.Writer) error { return doc.Text(w, page, doc.TextOptions{Width: 60}) }},
		{"page.closed.txt", func(w io.Writer) error { return doc.Text(w, page, doc.TextOptions{Width: 60, Closed: true}) }},
		{"page.colour.txt", func(w io.Writer) error { return doc.Text(w, page, doc.TextOptions{Width: 100, Color: true}) }},
		{"page.html", func(w io.Writer) error { return doc.HTML(w, page, doc.HTMLOptions{Script: "let x = 1"}) }},
		{"page.md", func(w io.Writer) error { return doc.Markdown(w, page) }},
	} {
		var got bytes.Buffer
		if err := c.write(&got); err != nil {
			t.Fatalf("%s: %v", c.file, err)
		}
		out := got.Bytes()
		if before, rest, ok := bytes.Cut(out, []byte("<style>")); ok { // the style sheet is not what this is about
			_, after, _ := bytes.Cut(rest, []byte("</style>"))
			out = append(append(bytes.Clone(before), "<style></style>"...), after...)
		}
		path := filepath.Join("testdata", c.file)
		if *update {
			if err := os.WriteFile(path, out, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(out, want) {
			t.Errorf("%s differs from its golden file (-update writes it anew); got\n%s", c.file, out)
		}
	}
}

// matrix is a table of many columns.
func matrix() doc.Page {
	return doc.Page{Blocks: []doc.Block{doc.Table{
		Matrix:  true,
		Columns: []doc.Column{{Head: "owner", Key: true, Shrink: true}, {Head: "first", Right: true}, {Head: "second", Right: true}, {Head: "third", Right: true}},
		Rows: []doc.Row{
			{Cells: doc.Cells("example.com/service/internal/auth.Middleware", "1.00 ms", "2.00 ms", "–")},
			{Cells: doc.Cells("日本語のミドルウェア", "1.00 ms", "2.00 ms", "3.00 ms")},
			{Sum: true, Cells: doc.Cells("all", "2.00 ms", "4.00 ms", "3.00 ms")},
		},
	}}}
}

func TestTextFitsWidth(t *testing.T) {
	for _, page := range []doc.Page{samplePage("short"), matrix()} {
		for width := 40; width < 120; width++ {
			var b strings.Builder
			if err := doc.Text(&b, page, doc.TextOptions{Width: width}); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(b.String()) {
				if n := doc.Width(strings.TrimSuffix(line, "\n")); n > width {
					t.Errorf("width %d: a line takes %d columns: %q", width, n, line)
				}
			}
		}
	}
}

func TestTextMatrixSplits(t *testing.T) {
	var b strings.Builder
	if err := doc.Text(&b, matrix(), doc.TextOptions{Width: 36}); err != nil {
		t.Fatal(err)
	}
	want := `  owner                first
  example.com/serv…  1.00 ms
  日本語のミドルウ…  1.00 ms
  all                2.00 ms

  owner               second
  example.com/serv…  2.00 ms
  日本語のミドルウ…  2.00 ms
  all                4.00 ms

  owner                third
  日本語のミドルウ…  3.00 ms
  all                3.00 ms
`
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Notes of a matrix stand below their cells, those of other tables only below keys.
func TestTextNotes(t *testing.T) {
	table := doc.Table{
		Columns: []doc.Column{{Head: "owner", Key: true}, {Head: "first", Right: true}, {Head: "second", Right: true}},
		Rows: []doc.Row{{Cells: []doc.Cell{{Text: "auth", Notes: []string{"auth/auth.go:12"}}, {Text: "1.00 ms"},
			{Text: "2.00 ms ▲", Notes: []string{"+1.00 ms, 95 %: +900 µs to +1.10 ms"}}}}},
	}
	for matrix, want := range map[bool]string{
		false: "  owner    first     second\n  auth   1.00 ms  2.00 ms ▲\n    auth/auth.go:12\n",
		true: "  owner    first               second\n  auth   1.00 ms            2.00 ms ▲\n                      +1.00 ms, 95 %:\n" +
			"                  +900 µs to +1.10 ms\n    auth/auth.go:12\n",
	} {
		table.Matrix = matrix
		var b strings.Builder
		if err := doc.Text(&b, doc.Page{Blocks: []doc.Block{table}}, doc.TextOptions{Width: 60}); err != nil || b.String() != want {
			t.Errorf("matrix %t: got %v\n%s\nwant\n%s", matrix, err, b.String(), want)
		}
	}
}

// A pipe gets all of every name, and a paragraph on one line.
func TestTextPipeIsWhole(t *testing.T) {
	long := strings.Repeat("example.com/a/very/long/import/path/", 20) + "auth.Middleware"
	page := doc.Page{Blocks: []doc.Block{
		doc.Paragraph{Text: doc.Plain(strings.Repeat("word ", 100) + "end")},
		doc.Terms{Items: []doc.Term{{Name: long, Text: doc.Plain("x")}}},
		doc.Table{Columns: []doc.Column{{Head: "owner", Key: true, Shrink: true}, {Head: "self", Optional: true}}, Rows: []doc.Row{{Cells: doc.Cells(long, "1 ms")}}},
	}}
	var b strings.Builder
	if err := doc.Text(&b, page, doc.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), long); n != 2 || strings.Contains(b.String(), "…") {
		t.Errorf("the long name stands there %d times, want 2 and nothing cut:\n%s", n, b.String())
	}
	if !strings.Contains(b.String(), "word end\n") || strings.Count(b.String(), "\n") != 6 {
		t.Errorf("the paragraph is broken:\n%s", b.String())
	}
}

func TestWidthAndCut(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		cut   string // to 5 columns
	}{
		{"", 0, ""}, {"hello", 5, "hello"}, {"hello!", 6, "hell…"}, {"日本", 4, "日本"}, {"日本語", 6, "日本…"},
		{"e\u0301te\u0301s", 4, "e\u0301te\u0301s"}, {"▲ 3 µs", 6, "▲ 3 …"},
	} {
		if got := doc.Width(c.text); got != c.width {
			t.Errorf("%q takes %d columns, want %d", c.text, got, c.width)
		}
		if got := doc.Cut(c.text, 5); got != c.cut {
			t.Errorf("%q cut to 5 columns is %q, want %q", c.text, got, c.cut)
		}
	}
	if got := doc.Cut("whatever", 0); got != "whatever" {
		t.Errorf("a width of 0 cut to %q", got)
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  []string
	}{
		{"", 5, []string{""}},
		{"one two three", 7, []string{"one two", "three"}},
		{"unbreakable word", 4, []string{"unbreakable", "word"}},
		{"5\u00a0ms later", 4, []string{"5\u00a0ms", "later"}},
		{"one\ntwo\tthree", 0, []string{"one two three"}},
	} {
		if got := doc.Wrap(c.text, c.width); strings.Join(got, "\n") != strings.Join(c.want, "\n") {
			t.Errorf("%q in %d columns: got %q, want %q", c.text, c.width, got, c.want)
		}
	}
}

func TestPrintable(t *testing.T) {
	if got, want := doc.Printable("a\x1b[31mb\u202ec\td\ne\xff\u3164"), "a\ufffd[31mb\ufffdc\td\ne\ufffd\ufffd"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestFragment writes the blocks as they stand in a whole page, and nothing around them.
func TestFragment(t *testing.T) {
	blocks := []doc.Block{doc.Heading{Level: 2, Text: "a <b>"}, doc.Table{Caption: "c", Columns: []doc.Column{{Head: "h", Key: true}}, Rows: []doc.Row{{Cells: doc.Cells("x")}}}}
	var fragment, page strings.Builder
	if err := errors.Join(doc.Fragment(&fragment, blocks...), doc.HTML(&page, doc.Page{Blocks: blocks}, doc.HTMLOptions{})); err != nil {
		t.Fatal(err)
	}
	if got := fragment.String(); !strings.HasPrefix(got, "<h2>a &lt;b&gt;</h2>") || !strings.Contains(page.String(), "<main>\n"+got+"</main>") || !strings.Contains(page.String(), doc.Style()) {
		t.Errorf("got %q, want what stands in the page", got)
	}
}

// A table that wraps breaks its cells between words. Where a column would become too narrow,
// each row is its key with the other cells below.
func TestWrappedTable(t *testing.T) {
	page := doc.Page{Blocks: []doc.Block{doc.Table{
		Wrap:    true,
		Columns: []doc.Column{{Head: "tier", Key: true}, {Head: "shows"}, {Head: "price", Right: true}},
		Rows: []doc.Row{
			{Cells: doc.Cells("0", "processor time and memory", "6 to 19 % of its CPU")},
			{Cells: doc.Cells("1", "", "none")},
			{Cells: doc.Cells("2", "all", "none")},
		},
	}}}
	for width, want := range map[int]string{
		60: "  tier  shows                                     price\n  0     processor time and memory  6 to 19 % of its CPU\n  1                                                none\n  2     all                                        none\n",
		44: "  tier  shows                          price\n  0     processor time      6 to 19 % of its\n        and memory                       CPU\n\n  1                                     none\n  2     all                             none\n",
		30: "  tier: 0\n    shows: processor time and\n      memory\n    price: 6 to 19 % of its\n      CPU\n\n  tier: 1\n    price: none\n\n  tier: 2\n    shows: all\n    price: none\n",
	} {
		var out bytes.Buffer
		if err := doc.Text(&out, page, doc.TextOptions{Width: width}); err != nil || out.String() != want {
			t.Errorf("width %d: %v: got\n%s\nwant\n%s", width, err, &out, want)
		}
	}
}
