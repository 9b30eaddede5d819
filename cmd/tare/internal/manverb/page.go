package manverb

import (
	"bytes"
	"cmp"
	"go/doc/comment"
	"strings"

	"github.com/alecthomas/kong"
)

// pageName is what man calls the page of tare or of a verb.
func pageName(n *kong.Node) string { return strings.ReplaceAll(n.FullPath(), " ", "-") }

// page is the manual page of tare or of a verb in roff, with the man macros. The date is
// that of the program, "" for none.
func page(n *kong.Node, date string) []byte {
	r := &roff{}
	name := pageName(n)
	r.macro("TH", escape(strings.ToUpper(name)), "1", date, "tare", "Manual of tare")
	short, long, _ := strings.Cut(n.Help, "\n\n")
	r.macro("SH", "NAME")
	r.line(name + " - " + strings.TrimSuffix(strings.TrimPrefix(short, n.Name+" "), "."))
	r.macro("SH", "SYNOPSIS")
	r.raw(bold(n.FullPath()) + " " + escape(strings.TrimSpace(strings.TrimPrefix(n.Summary(), n.Path()))))
	r.macro("SH", "DESCRIPTION")
	r.prose(short + "\n\n" + long + "\n\n" + n.Detail)
	if len(n.Positional) > 0 {
		r.macro("SH", "ARGUMENTS")
		for _, arg := range n.Positional {
			r.item(bold(arg.Summary()), arg.Help)
		}
	}
	r.flags(n)
	if verbs := visible(n); len(verbs) > 0 {
		r.macro("SH", "COMMANDS")
		for _, verb := range verbs {
			r.item(reference(verb), verb.Help)
		}
	}
	r.macro("SH", "SEE ALSO")
	if n.Parent != nil {
		r.raw(reference(n.Parent))
		r.macro("PP")
	}
	r.raw("The topics of the documentation: " + bold("tare help topics"))
	return r.out.Bytes()
}

// reference names a page as manuals do.
func reference(n *kong.Node) string { return bold(pageName(n)) + "(1)" }

// roff is a page in the making.
type roff struct{ out bytes.Buffer }

// macro writes a request with its arguments, which are roff already.
func (r *roff) macro(name string, args ...string) {
	r.out.WriteString("." + name)
	for _, arg := range args {
		r.out.WriteString(` "` + strings.ReplaceAll(arg, `"`, `\(dq`) + `"`)
	}
	r.out.WriteByte('\n')
}

// raw writes a line that is roff already.
func (r *roff) raw(text string) {
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		r.out.WriteString(`\&`)
	}
	r.out.WriteString(text + "\n")
}

// line writes text as a line.
func (r *roff) line(text string) { r.raw(escape(text)) }

// item writes a term, which is roff already, with its text indented below it.
func (r *roff) item(term, text string) {
	r.macro("TP")
	r.raw(term)
	r.line(text)
}

// flags writes the flags of a verb, by group in the order of the first of each.
func (r *roff) flags(n *kong.Node) {
	byTitle := map[string][]*kong.Flag{}
	titles := []string{""} // those without a group come first
	for _, level := range n.AllFlags(true) {
		for _, f := range level {
			title := ""
			if f.Group != nil {
				title = f.Group.Title
			}
			if _, ok := byTitle[title]; !ok && title != "" {
				titles = append(titles, title)
			}
			byTitle[title] = append(byTitle[title], f)
		}
	}
	r.macro("SH", "OPTIONS")
	for _, title := range titles {
		if title != "" {
			r.macro("SS", escape(strings.TrimSuffix(title, ":")))
		}
		for _, f := range byTitle[title] {
			r.item(bold(flagForms(f)), f.Help)
		}
	}
}

// flagForms are the ways to write a flag.
func flagForms(f *kong.Flag) string {
	text := f.String()
	if f.Tag.Negatable != "" {
		text = strings.Replace(text, "--", "--[no-]", 1)
	}
	return text
}

// prose writes text of the form that Go's comments have, as kong does for --help:
// paragraphs, lists, and code, which is indented.
func (r *roff) prose(text string) {
	for i, block := range new(comment.Parser).Parse(text).Content {
		switch b := block.(type) {
		case *comment.Heading:
			r.macro("SS", escape(plain(b.Text)))
		case *comment.Paragraph:
			if i > 0 {
				r.macro("PP")
			}
			r.text(plain(b.Text))
		case *comment.Code:
			r.macro("IP")
			r.macro("nf")
			for line := range strings.Lines(b.Text) {
				r.line(strings.TrimSuffix(line, "\n"))
			}
			r.macro("fi")
		case *comment.List:
			for _, item := range b.Items {
				r.macro("IP", cmp.Or(item.Number, "*"), "4")
				for _, part := range item.Content {
					if p, ok := part.(*comment.Paragraph); ok {
						r.text(plain(p.Text))
					}
				}
			}
		}
	}
}

// text writes a paragraph, which may have several lines.
func (r *roff) text(paragraph string) {
	for line := range strings.Lines(paragraph) {
		r.line(strings.TrimSpace(line))
	}
}

// plain is running text without its marks.
func plain(all []comment.Text) string {
	var b strings.Builder
	for _, t := range all {
		switch t := t.(type) {
		case comment.Plain:
			b.WriteString(string(t))
		case comment.Italic:
			b.WriteString(string(t))
		case *comment.Link:
			b.WriteString(plain(t.Text))
		case *comment.DocLink:
			b.WriteString(plain(t.Text))
		}
	}
	return b.String()
}

func bold(text string) string { return `\fB` + escape(text) + `\fR` }

// signs are what roff would read as its own, or print as a sign that looks like it.
var signs = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`)

// escape is text as roff prints it literally, so that commands can be copied from a page.
func escape(text string) string { return signs.Replace(text) }
