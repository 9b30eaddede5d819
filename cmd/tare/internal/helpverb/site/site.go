// Package site writes the documentation as a folder of HTML pages, whose search needs no server.
package site

import (
	"bytes"
	"embed"
	"encoding/json"
	"html/template"
	"os"
	"path/filepath"
	"strings"

	"github.com/tarehq/tare/docs"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// assets are what all pages share.
//
//go:embed style.css search.js
var assets embed.FS

//go:embed page.html
var layout string

// section is a part of a page below one heading, as the search finds it.
type section struct {
	Page  string `json:"page"`  // title of the page
	Title string `json:"title"` // heading
	Link  string `json:"link"`
	Text  string `json:"text"`
}

// page is a page as HTML, with its sections.
type page struct {
	Topic, Title, File string
	Body               template.HTML
	sections           []section
}

// Write writes the pages into a folder, which it makes if needed. The first page is
// index.html. Files of the same names are replaced.
func Write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	pages := []page{}
	index := []section{}
	for _, topic := range docs.Topics() {
		p, err := convert(topic)
		if err != nil {
			return err
		}
		pages, index = append(pages, p), append(index, p.sections...)
	}
	tmpl, err := template.New("page").Parse(layout)
	if err != nil {
		return err
	}
	files := map[string][]byte{}
	for _, p := range pages {
		var out bytes.Buffer
		if err := tmpl.Execute(&out, struct {
			page
			All []page
		}{p, pages}); err != nil {
			return err
		}
		files[p.File] = out.Bytes()
	}
	sections, err := json.Marshal(index)
	if err != nil {
		return err
	}
	// A page that lies on disk may load a script and nothing else.
	files["index.js"] = append([]byte("window.tareSections = "), sections...)
	for _, name := range []string{"style.css", "search.js"} {
		if files[name], err = assets.ReadFile(name); err != nil {
			return err
		}
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// fileOf is the file of a topic.
func fileOf(topic string) string {
	if topic == docs.Index {
		return "index.html"
	}
	return topic + ".html"
}

// convert makes HTML of a topic's Markdown. Links lead to the other files.
func convert(topic string) (page, error) {
	p := page{Topic: topic, File: fileOf(topic)}
	source := []byte(docs.Page(topic))
	// The pages are the repository's own, so that what HTML they have is passed on.
	markdown := goldmark.New(goldmark.WithExtensions(extension.Table),
		goldmark.WithParserOptions(parser.WithAutoHeadingID()), goldmark.WithRendererOptions(html.WithUnsafe()))
	root := markdown.Parser().Parse(text.NewReader(source))
	for n := root.FirstChild(); n != nil; n = n.NextSibling() {
		p.addBlock(n, source)
	}
	if err := ast.Walk(root, turnLink); err != nil {
		return p, err
	}
	var body bytes.Buffer
	err := markdown.Renderer().Render(&body, source, root)
	p.Body = template.HTML(body.String())
	return p, err
}

// addBlock adds a block to the section that it belongs to.
func (p *page) addBlock(n ast.Node, source []byte) {
	if heading, ok := n.(*ast.Heading); ok {
		title := plainText(n, source)
		if p.Title == "" {
			p.Title = title
		}
		s := section{Page: p.Title, Title: title, Link: p.File}
		if id, ok := heading.AttributeString("id"); ok && len(p.sections) > 0 {
			s.Link += "#" + string(id.([]byte))
		}
		p.sections = append(p.sections, s)
		return
	}
	if len(p.sections) > 0 {
		last := &p.sections[len(p.sections)-1]
		last.Text = strings.TrimSpace(last.Text + " " + plainText(n, source))
	}
}

// turnLink has a link to a page lead to its file, and one to another file, or a picture, to
// the repository. It is an [ast.Walker].
func turnLink(n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	switch n := n.(type) {
	case *ast.Link:
		topic, address := docs.Resolve(string(n.Destination))
		switch {
		case topic != "":
			n.Destination = append([]byte(fileOf(topic)), fragment(n.Destination)...)
		case address != "":
			n.Destination = []byte(address)
		}
	case *ast.Image:
		_, address := docs.Resolve(string(n.Destination))
		n.Destination = []byte(strings.Replace(address, "/blob/", "/raw/", 1))
	}
	return ast.WalkContinue, nil
}

// fragment is the end of a link from # on.
func fragment(link []byte) []byte {
	if i := bytes.IndexByte(link, '#'); i >= 0 {
		return link[i:]
	}
	return nil
}

// plainText is the text below a node, its words a space apart.
func plainText(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // no step of it fails
		switch n := n.(type) {
		case *ast.Text:
			if entering {
				b.Write(util.UnescapePunctuations(n.Segment.Value(source)))
				if n.SoftLineBreak() || n.HardLineBreak() {
					b.WriteByte(' ')
				}
			}
		case *ast.CodeBlock, *ast.FencedCodeBlock:
			if entering {
				b.Write(n.Lines().Value(source))
			}
		}
		if n.Type() == ast.TypeBlock && !entering {
			b.WriteByte(' ')
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(b.String()), " ")
}
