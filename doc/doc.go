// Package doc writes reports: one page of blocks, as text, HTML or Markdown.
//
// A [Page] is a list of blocks: [Heading], [Paragraph], [List], [Terms], [Table],
// [Figure], [Warning], [Code] and [Fold]. A program builds it once. [Text] writes
// it for a terminal or a pipe, [HTML] as one file that needs no other, [Markdown]
// for a pull request on GitHub.
//
// Every string may come from a stranger. The writers replace control characters
// and escape the rest, so that no string changes the structure of a page or steers
// a terminal. The one exception is [Markup], which HTML copies as it is.
//
// A writer decides about layout only. What a reader must know is in the words of
// the page: colour repeats it, and is absent from Markdown.
package doc

import "fmt"

// Page is a report.
type Page struct {
	Title  string // of the file, in HTML
	Blocks []Block
	Foot   string // what the page was made from; "" for none
}

// Add appends blocks.
func (p *Page) Add(blocks ...Block) { p.Blocks = append(p.Blocks, blocks...) }

// Block is one of this package's blocks.
type Block interface{ block() }

// Tone is what a text means to the reader, beside its words.
type Tone string

// The tones. The zero tone is neutral.
const (
	Good  Tone = "good"
	Bad   Tone = "bad"
	Warn  Tone = "warn"
	Muted Tone = "muted"
)

// Span is a piece of running text.
type Span struct {
	Text   string
	Strong bool
	Code   bool
	Tone   Tone
	Link   string // http, https or #fragment; HTML and Markdown ignore others
}

// Spans is running text. White space in it breaks lines and is one space.
type Spans []Span

// Plain is text in one plain span.
func Plain(text string) Spans { return Spans{{Text: text}} }

// Markup is HTML or SVG that [HTML] copies unescaped. Whoever makes it escapes
// what is in it.
type Markup string

// Heading begins a section.
type Heading struct {
	Level int // 1 to 4; 1 is the page's own
	Text  string
	ID    string // anchor in HTML; "" for none
}

// Paragraph is running text.
type Paragraph struct{ Text Spans }

// Warning is a paragraph that a reader should not miss.
type Warning struct{ Text Spans }

// List is a list of items, each of them running text.
type List struct{ Items []Spans }

// Term is a name and what it stands for.
type Term struct {
	Name string
	Text Spans
}

// Terms are facts by name.
type Terms struct {
	Items  []Term
	Inline bool // few short ones, side by side
}

// Add appends a fact in plain text.
func (t *Terms) Add(name, format string, args ...any) {
	t.Items = append(t.Items, Term{name, Plain(fmt.Sprintf(format, args...))})
}

// Code is text with lines of its own, such as a command or machine code.
type Code struct{ Text string }

// Figure is a drawing. HTML shows the drawing, the other writers the text form;
// they omit a figure without one.
type Figure struct {
	Alt     string // what the drawing shows, for those who do not see it
	Caption Spans
	Drawing Markup // the SVG names itself or stands in an element named by Alt
	Text    string // the drawing in characters
}

// Fold is what a reader can open. [Text] writes it open, or its summary alone.
type Fold struct {
	Summary string
	ID      string // anchor in HTML; "" for none
	Blocks  []Block
	Lookup  bool // holds what one looks up, such as versions: [Text] leaves it out
}

func (Heading) block()   {}
func (Paragraph) block() {}
func (Warning) block()   {}
func (List) block()      {}
func (Terms) block()     {}
func (Code) block()      {}
func (Figure) block()    {}
func (Fold) block()      {}
func (Table) block()     {}

// Paragraphf is a paragraph of plain text.
func Paragraphf(format string, args ...any) Paragraph {
	return Paragraph{Plain(fmt.Sprintf(format, args...))}
}

// Note is a muted paragraph: what a reader needs to understand the block above
// or below it.
func Note(text string) Paragraph { return Paragraph{Spans{{Text: text, Tone: Muted}}} }

// Table is a table with a head.
type Table struct {
	Caption string // names the table to screen readers, and above it unless Unlabelled
	Columns []Column
	Rows    []Row

	// Matrix marks a table with one column for each of many things. Where it is
	// too wide, text splits it between columns and HTML scrolls it. Other tables
	// become one record a row.
	Matrix bool
	// Wrap has text break the cells of a table that is too wide between words. Where that
	// leaves too little room, each row is its key with the other cells below, by their heads.
	Wrap       bool
	Unlabelled bool // the caption repeats a heading and is not shown
}

// Column is a column of a table.
type Column struct {
	Head     string
	Right    bool   // aligned right, as numbers are
	Key      bool   // says what the row is about
	Shrink   bool   // a terminal too narrow for the table cuts its cells, with …
	Optional bool   // a terminal too narrow for the table leaves it out
	Drawn    bool   // holds drawings; only HTML shows it
	Drawing  Markup // below the head, such as the labels of an axis
}

// Row is a row of a table; missing cells at its end are empty.
type Row struct {
	Cells []Cell
	Sum   bool // of the rows above
}

// Cell is a cell of a table. White space in its text is one space.
type Cell struct {
	Text    string
	Strong  bool
	Code    bool
	Tone    Tone
	Notes   []string // smaller lines below; in text only of key columns, and of a Matrix
	Drawing Markup   // before the text, in HTML
}

// Cells are plain cells.
func Cells(texts ...string) []Cell {
	cells := make([]Cell, len(texts))
	for i, text := range texts {
		cells[i].Text = text
	}
	return cells
}
