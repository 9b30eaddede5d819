// Package links says where the pages of runs and studies are, and links to them.
package links

import (
	"html/template"
	"net/url"
	"strings"
	"time"

	"github.com/tarehq/tare/doc"
)

// To is a link to a page of the site.
func To(path, text string) doc.Markup {
	return doc.Markup(`<a href="` + template.HTMLEscapeString(path) + `">` + template.HTMLEscapeString(doc.Printable(text)) + `</a>`)
}

// Cell is a cell of a table that links to a page of the site.
func Cell(path, text string, notes ...string) doc.Cell {
	return doc.Cell{Drawing: To(path, text), Notes: notes}
}

// Beside are links side by side, under a label that is the site's own.
func Beside(label string, all ...doc.Markup) doc.Block {
	var out doc.Markup
	for _, l := range all {
		out += l + " "
	}
	return doc.Figure{Drawing: `<nav class="pages" aria-label="` + doc.Markup(label) + `">` + out + `</nav>`}
}

// Run is the path of a run's page, or of one below it.
func Run(run string, below ...string) string {
	return "/runs/" + strings.Join(append([]string{url.PathEscape(run)}, below...), "/")
}

// Study is the path of a study's page.
func Study(study string, query url.Values) string {
	path := "/studies/" + url.PathEscape(study)
	if q := query.Encode(); q != "" {
		path += "?" + q
	}
	return path
}

// Compare is the path of the page that compares two runs.
func Compare(a, b string) string {
	return "/compare?" + url.Values{"a": {a}, "b": {b}}.Encode()
}

// Date is when a run began, in UTC.
func Date(t time.Time) string {
	if t.IsZero() {
		return "unknown"
	}
	return t.UTC().Format("2006-01-02 15:04")
}
