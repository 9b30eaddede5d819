// Package pattern reads the patterns of http.ServeMux, and those with constraints, and
// tells what they match.
//
// A pattern is [METHOD ][HOST]/PATH. Package router finds the pattern of a request
// among many by a tree of its own; package chain asks whether one matches.
package pattern

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"
)

// Pattern is a pattern in parts. It does not change once it is read.
type Pattern struct {
	Text     string // as it was written
	Method   string // "" = any
	Host     string // "" = any
	Segments []Segment
}

// Segment is one part of a pattern's path between slashes. A path that ends in
// a slash ends in a Multi without a name; one that ends in {$}, in the literal
// "/", which no other segment of a clean path can be.
type Segment struct {
	Kind  Kind
	Text  string      // of a literal: unescaped, and folded if the pattern is; else the wildcard's name
	Spelt string      // of a literal: unescaped, as it was written
	Folds bool        // of a literal: other spellings match, too
	Check *Constraint // of a wildcard: nil = any value
}

// Kind says what a segment matches.
type Kind uint8

const (
	Literal Kind = iota
	Wild         // one segment of the path
	Multi        // all the rest
)

// Last returns the last segment.
func (p *Pattern) Last() *Segment { return &p.Segments[len(p.Segments)-1] }

// HasUpper reports whether a literal was written with an upper-case letter.
func (p *Pattern) HasUpper() bool {
	return slices.ContainsFunc(p.Segments, func(s Segment) bool { return s.Kind == Literal && HasUpper(s.Spelt) })
}

// Names returns the names of the wildcards, in order.
func (p *Pattern) Names() []string {
	var names []string
	for _, s := range p.Segments {
		if s.Kind != Literal && s.Text != "" {
			names = append(names, s.Text)
		}
	}
	return names
}

// Wildcards returns how many segments are wildcards, named or not.
func (p *Pattern) Wildcards() int {
	n := 0
	for _, s := range p.Segments {
		if s.Kind != Literal {
			n++
		}
	}
	return n
}

// Unclean reports whether only a path with dots or empty segments could be the
// pattern's.
func (p *Pattern) Unclean() bool {
	return slices.ContainsFunc(p.Segments, func(s Segment) bool {
		return s.Kind == Literal && (s.Text == "" || s.Text == "." || s.Text == "..")
	})
}

// parser reads one pattern.
type parser struct {
	rest string // what is left of the text
	fold bool
	out  *Pattern
}

// Parse reads [METHOD ][HOST]/PATH. If fold is set, the case of literals does not
// matter. Errors say at which byte of text they are.
func Parse(text string, fold bool) (*Pattern, error) {
	if text == "" {
		return nil, errors.New("pattern is empty")
	}
	p := parser{rest: text, fold: fold, out: &Pattern{Text: text}}
	if err := p.pattern(); err != nil {
		return nil, fmt.Errorf("at offset %d: %w", len(text)-len(p.rest), err)
	}
	return p.out, nil
}

func (p *parser) pattern() error {
	if i := strings.IndexAny(p.rest, " \t"); i >= 0 {
		method := p.rest[:i]
		if strings.IndexByte(method, '/') >= 0 {
			return errors.New(`a space in a pattern without a method: write %20, in a constraint \x20`)
		}
		if method != "" && !isToken(method) {
			return fmt.Errorf("invalid method %q", method)
		}
		p.out.Method, p.rest = method, strings.TrimLeft(p.rest[i:], " \t")
	}
	slash := strings.IndexByte(p.rest, '/')
	if slash < 0 {
		return errors.New("no / where the path should begin")
	}
	p.out.Host = p.rest[:slash]
	if i := strings.IndexByte(p.out.Host, '{'); i >= 0 {
		p.rest = p.rest[i:]
		return errors.New("{ in the host: is the path's first / missing?")
	}
	p.rest = p.rest[slash:]
	if m := p.out.Method; m != "" && m != http.MethodConnect && p.rest != CleanPath(p.rest) {
		return errors.New("path is not clean and can never match")
	}
	for p.rest != "" {
		if err := p.segment(); err != nil {
			return err
		}
	}
	return nil
}

// segment reads a slash and what follows it up to the next.
func (p *parser) segment() error {
	text := p.rest[1:]
	if i := strings.IndexByte(text, '/'); i >= 0 {
		text = text[:i]
	}
	after := p.rest[1+len(text):]
	var s Segment
	switch brace := strings.IndexByte(text, '{'); {
	case text == "" && after == "":
		s = Segment{Kind: Multi}
	case brace < 0:
		s = p.literal(Unescape(text))
	case brace > 0:
		return fmt.Errorf("wildcard in %q is not a whole segment", text)
	case text[len(text)-1] != '}':
		return fmt.Errorf("wildcard %q does not end in } before the next /", text)
	case text == "{$}" && after != "":
		return errors.New("{$} is not at the end")
	case text == "{$}":
		s = Segment{Text: "/", Spelt: "/"}
	default:
		var err error
		if s, err = p.wildcard(text[1 : len(text)-1]); err != nil {
			return err
		}
		if s.Kind == Multi && after != "" {
			return fmt.Errorf("{%s...} is not at the end", s.Text)
		}
	}
	p.out.Segments = append(p.out.Segments, s)
	p.rest = after
	return nil
}

func (p *parser) literal(text string) Segment {
	if p.fold {
		return Segment{Text: Fold(text), Spelt: text, Folds: strings.ContainsFunc(text, isASCIILetter)}
	}
	return Segment{Text: text, Spelt: text}
}

// wildcard reads what stands between braces: NAME, NAME... or NAME:CONSTRAINT.
func (p *parser) wildcard(inner string) (Segment, error) {
	name, spec, constrained := strings.Cut(inner, ":")
	name, isMulti := strings.CutSuffix(name, "...")
	switch {
	case name == "":
		return Segment{}, errors.New("wildcard has no name")
	case !isName(name):
		return Segment{}, fmt.Errorf("wildcard name %q is not a Go identifier", name)
	case slices.Contains(p.out.Names(), name):
		return Segment{}, fmt.Errorf("wildcard name %q is there twice", name)
	case constrained && isMulti:
		return Segment{}, fmt.Errorf("{%s...} takes no constraint", name)
	case isMulti:
		return Segment{Kind: Multi, Text: name}, nil
	case !constrained:
		return Segment{Kind: Wild, Text: name}, nil
	}
	check, err := newConstraint(spec)
	if err != nil {
		return Segment{}, fmt.Errorf("constraint of {%s}: %w", name, err)
	}
	return Segment{Kind: Wild, Text: name, Check: check}, nil
}

func isName(s string) bool {
	for i, c := range s {
		if c != '_' && !unicode.IsLetter(c) && (i == 0 || !unicode.IsDigit(c)) {
			return false
		}
	}
	return s != ""
}

// isToken reports whether s may be a method (RFC 9110, section 5.6.2).
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !isDigit(c) && !isLetter(c) && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}
