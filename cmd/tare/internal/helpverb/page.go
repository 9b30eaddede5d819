package helpverb

import (
	"strings"

	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/docs"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	table "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// reader turns a page's Markdown into blocks.
type reader struct {
	source []byte
	page   doc.Page
}

// readPage is Markdown as a page. It keeps what the documentation uses: headings,
// paragraphs, flat lists, code and tables.
func readPage(markdown string) doc.Page {
	r := &reader{source: []byte(markdown)}
	root := goldmark.New(goldmark.WithExtensions(extension.Table)).Parser().Parse(text.NewReader(r.source))
	for n := root.FirstChild(); n != nil; n = n.NextSibling() {
		r.addBlock(n)
	}
	return r.page
}

func (r *reader) addBlock(n ast.Node) {
	switch n := n.(type) {
	case *ast.Heading:
		r.page.Add(doc.Heading{Level: n.Level, Text: joinSpans(r.readSpans(n))})
	case *ast.List:
		var list doc.List
		for item := n.FirstChild(); item != nil; item = item.NextSibling() {
			list.Items = append(list.Items, r.readItem(item))
		}
		r.page.Add(list)
	case *ast.FencedCodeBlock, *ast.CodeBlock:
		r.page.Add(doc.Code{Text: string(n.Lines().Value(r.source))})
	case *table.Table:
		r.page.Add(r.readTable(n))
	default:
		if spans := r.readSpans(n); len(spans) > 0 {
			r.page.Add(doc.Paragraph{Text: spans})
		}
	}
}

// readItem is an item of a list, its blocks joined.
func (r *reader) readItem(item ast.Node) doc.Spans {
	var all doc.Spans
	for n := item.FirstChild(); n != nil; n = n.NextSibling() {
		if len(all) > 0 {
			all = append(all, doc.Span{Text: " "})
		}
		all = append(all, r.readSpans(n)...)
	}
	return all
}

// readTable is a table.
func (r *reader) readTable(n *table.Table) doc.Table {
	t := doc.Table{Wrap: true}
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		var texts []string
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			texts = append(texts, strings.TrimSpace(strings.ReplaceAll(joinSpans(r.readSpans(cell)), "`", "")))
		}
		if row.Kind() != table.KindTableHeader {
			t.Rows = append(t.Rows, doc.Row{Cells: doc.Cells(texts...)})
			continue
		}
		for i, head := range texts {
			t.Columns = append(t.Columns, doc.Column{Head: head, Key: i == 0, Right: n.Alignments[i] == table.AlignRight})
		}
	}
	return t
}

// readSpans is the running text below a node. Code keeps its backticks, since a terminal
// has no other type for it.
func (r *reader) readSpans(n ast.Node) doc.Spans {
	var all doc.Spans
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Text:
			all = append(all, doc.Span{Text: string(util.UnescapePunctuations(c.Segment.Value(r.source)))})
			if c.SoftLineBreak() || c.HardLineBreak() {
				all = append(all, doc.Span{Text: " "})
			}
		case *ast.CodeSpan:
			all = append(all, doc.Span{Text: "`" + r.codeText(c) + "`"})
		case *ast.Emphasis:
			for _, s := range r.readSpans(c) {
				s.Strong = s.Strong || c.Level == 2
				all = append(all, s)
			}
		case *ast.Link:
			all = append(all, linkSpans(r.readSpans(c), string(c.Destination), strings.HasSuffix(joinSpans(all), "("))...)
		case *ast.AutoLink:
			all = append(all, doc.Span{Text: string(c.URL(r.source))})
		case *ast.RawHTML: // the pages use <br> and <sub>
			all = append(all, doc.Span{Text: " "})
		default:
			all = append(all, r.readSpans(c)...)
		}
	}
	return all
}

// codeText is the text of code within a sentence.
func (r *reader) codeText(code *ast.CodeSpan) string {
	var b strings.Builder
	for c := code.FirstChild(); c != nil; c = c.NextSibling() {
		if text, ok := c.(*ast.Text); ok {
			b.Write(text.Segment.Value(r.source))
		}
	}
	return b.String()
}

// linkSpans is a link's text, and the topic or address behind it. Within parentheses there
// are no others.
func linkSpans(label doc.Spans, to string, within bool) doc.Spans {
	topic, address := docs.Resolve(to)
	switch {
	case topic == "" && address == "", joinSpans(label) == address:
		return label
	case topic != "":
		address = "`tare help " + topic + "`"
		if file, _, _ := strings.Cut(to, "#"); topic != docs.Index && joinSpans(label) == file {
			return doc.Spans{{Text: address}}
		}
	}
	if within {
		return append(label, doc.Span{Text: ": " + address})
	}
	return append(label, doc.Span{Text: " (" + address + ")"})
}

func joinSpans(spans doc.Spans) string {
	var b strings.Builder
	for _, s := range spans {
		b.WriteString(s.Text)
	}
	return b.String()
}
