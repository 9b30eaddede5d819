// Package template fills fields, {{.name}}, in text.
package template

import (
	"fmt"
	"slices"
	"strings"
)

// piece is a run of fixed text or one column of the feeder's record.
type piece struct {
	text    string // fixed, when column is negative
	column  int
	escaped bool // the column's value is percent-encoded when filled in
}

// Template is text with fields to fill. Fixed text is one piece, so filling
// costs a copy a piece and no search.
type Template []piece

// Source names the columns of the records that fill fields, and the file that they come
// from.
type Source struct {
	Path    string
	Columns []string
}

func (s *Source) list() string { return strings.Join(s.Columns, ", ") }

// Literal is a template without fields.
func Literal(text string) Template {
	if text == "" {
		return nil
	}
	return Template{{text: text, column: -1}}
}

// Parse cuts text at its {{.name}} fields; escaped has their values percent-encoded
// when they are filled in. Without a source the text is taken as it is, but for one that
// is to be escaped, a URL's, which cannot hold braces.
func Parse(text string, s *Source, escaped bool) (Template, error) {
	if s == nil && escaped && strings.Contains(text, "{{") {
		return nil, fmt.Errorf("%q has a field, and there is no feeder file to fill it (tare load --feed FILE)", excerpt(text))
	}
	if s == nil {
		return Literal(text), nil
	}
	var t Template
	for {
		before, rest, found := strings.Cut(text, "{{")
		t = append(t, Literal(before)...)
		if !found {
			return t, nil
		}
		inner, after, closed := strings.Cut(rest, "}}")
		name, dotted := strings.CutPrefix(strings.TrimSpace(inner), ".")
		if !closed || !dotted || name == "" {
			return nil, fmt.Errorf("%q does not open a field: want {{.name}} with one of %s", "{{"+excerpt(rest), s.list())
		}
		col := slices.Index(s.Columns, name)
		if col < 0 {
			return nil, fmt.Errorf("{{.%s}} is not a column of %s: it has %s", name, s.Path, s.list())
		}
		t = append(t, piece{column: col, escaped: escaped})
		text = after
	}
}

// excerpt is the beginning of s, short enough for a message.
func excerpt(s string) string {
	if len(s) > 20 {
		return s[:20] + "…"
	}
	return s
}

// Join appends the pieces of all ts, adjoining fixed text merged.
func Join(ts ...Template) Template {
	var all Template
	for _, t := range ts {
		for _, p := range t {
			if n := len(all); p.column < 0 && n > 0 && all[n-1].column < 0 {
				all[n-1].text += p.text
				continue
			}
			all = append(all, p)
		}
	}
	return all
}

// MapLiterals is t with f applied to its fixed text.
func (t Template) MapLiterals(f func(string) string) Template {
	t = slices.Clone(t)
	for i := range t {
		if t[i].column < 0 {
			t[i].text = f(t[i].text)
		}
	}
	return t
}

// Dynamic reports whether t has a field.
func (t Template) Dynamic() bool {
	return slices.ContainsFunc(t, func(p piece) bool { return p.column >= 0 })
}

// Columns appends the columns that t's fields name to cols.
func (t Template) Columns(cols []int) []int {
	for _, p := range t {
		if p.column >= 0 {
			cols = append(cols, p.column)
		}
	}
	return cols
}

// Size is the number of bytes that AppendTo adds for record.
func (t Template) Size(record []string) int {
	n := 0
	for _, p := range t {
		switch {
		case p.column < 0:
			n += len(p.text)
		case p.escaped:
			n += escapedLen(record[p.column])
		default:
			n += len(record[p.column])
		}
	}
	return n
}

// AppendTo appends t to dst, its fields filled from record.
func (t Template) AppendTo(dst []byte, record []string) []byte {
	for _, p := range t {
		switch {
		case p.column < 0:
			dst = append(dst, p.text...)
		case p.escaped:
			dst = appendEscaped(dst, record[p.column])
		default:
			dst = append(dst, record[p.column]...)
		}
	}
	return dst
}

// Fill is t as a string, its fields filled from record.
func (t Template) Fill(record []string) string {
	if len(t) == 1 && t[0].column < 0 {
		return t[0].text
	}
	return string(t.AppendTo(make([]byte, 0, t.Size(record)), record))
}

const hexDigits = "0123456789ABCDEF"

// appendEscaped appends s percent-encoded but for RFC 3986's unreserved
// characters, so that it is one path segment or one query value whatever it
// holds.
func appendEscaped(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; unreserved(c) {
			dst = append(dst, c)
		} else {
			dst = append(dst, '%', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return dst
}

func escapedLen(s string) int {
	n := len(s)
	for i := range len(s) {
		if !unreserved(s[i]) {
			n += 2
		}
	}
	return n
}

func unreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		c == '-' || c == '.' || c == '_' || c == '~'
}

// EscapeTarget percent-encodes what may not stand in a request target and
// leaves the rest, escapes among it, as the user wrote it.
func EscapeTarget(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; unreserved(c) || strings.IndexByte("!$&'()*+,;=:@/?%", c) >= 0 {
			b.WriteByte(c)
		} else {
			b.WriteByte('%')
			b.WriteByte(hexDigits[c>>4])
			b.WriteByte(hexDigits[c&15])
		}
	}
	return b.String()
}
