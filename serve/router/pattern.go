package router

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// pattern is a registered pattern in parts.
type pattern struct {
	text     string // as registered, with the prefixes of its groups
	method   string // "" = any
	host     string // "" = any
	segments []segment
	loc      string // file:line of the registration
}

// segment is one part of a pattern's path between slashes. A path that ends in
// a slash ends in a multi without a name; one that ends in {$}, in the literal
// "/", which no other segment of a clean path can be.
type segment struct {
	kind  kind
	text  string      // of a literal: unescaped, and folded if the router folds case; else the wildcard's name
	spelt string      // of a literal: unescaped, as registered
	folds bool        // of a literal: other spellings match, too
	check *constraint // of a wildcard: nil = any value
}

type kind uint8

const (
	literal kind = iota
	wild         // one segment of the path
	multi        // all the rest
)

func (p *pattern) last() *segment { return &p.segments[len(p.segments)-1] }

// hasUpper tells whether a literal was registered with an upper-case letter.
func (p *pattern) hasUpper() bool {
	return slices.ContainsFunc(p.segments, func(s segment) bool { return s.kind == literal && hasUpper(s.spelt) })
}

// names returns the names of the wildcards, in order.
func (p *pattern) names() []string {
	var names []string
	for _, s := range p.segments {
		if s.kind != literal && s.text != "" {
			names = append(names, s.text)
		}
	}
	return names
}

// wildcards returns how many segments are wildcards, named or not.
func (p *pattern) wildcards() int {
	n := 0
	for _, s := range p.segments {
		if s.kind != literal {
			n++
		}
	}
	return n
}

// unclean tells whether only a path with dots or empty segments could be the
// pattern's.
func (p *pattern) unclean() bool {
	return slices.ContainsFunc(p.segments, func(s segment) bool {
		return s.kind == literal && (s.text == "" || s.text == "." || s.text == "..")
	})
}

// parser reads one pattern.
type parser struct {
	rest string // what is left of the text
	fold bool
	out  *pattern
}

// parse reads [METHOD ][HOST]/PATH. Errors say at which byte of text they are.
func parse(text string, fold bool) (*pattern, error) {
	if text == "" {
		return nil, errors.New("pattern is empty")
	}
	p := parser{rest: text, fold: fold, out: &pattern{text: text}}
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
		p.out.method, p.rest = method, strings.TrimLeft(p.rest[i:], " \t")
	}
	slash := strings.IndexByte(p.rest, '/')
	if slash < 0 {
		return errors.New("no / where the path should begin")
	}
	p.out.host = p.rest[:slash]
	if i := strings.IndexByte(p.out.host, '{'); i >= 0 {
		p.rest = p.rest[i:]
		return errors.New("{ in the host: is the path's first / missing?")
	}
	p.rest = p.rest[slash:]
	if m := p.out.method; m != "" && m != http.MethodConnect && p.rest != cleanPath(p.rest) {
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
	var s segment
	switch brace := strings.IndexByte(text, '{'); {
	case text == "" && after == "":
		s = segment{kind: multi}
	case brace < 0:
		s = p.literal(unescape(text))
	case brace > 0:
		return fmt.Errorf("wildcard in %q is not a whole segment", text)
	case text[len(text)-1] != '}':
		return fmt.Errorf("wildcard %q does not end in } before the next /", text)
	case text == "{$}" && after != "":
		return errors.New("{$} is not at the end")
	case text == "{$}":
		s = segment{text: "/", spelt: "/"}
	default:
		var err error
		if s, err = p.wildcard(text[1 : len(text)-1]); err != nil {
			return err
		}
		if s.kind == multi && after != "" {
			return fmt.Errorf("{%s...} is not at the end", s.text)
		}
	}
	p.out.segments = append(p.out.segments, s)
	p.rest = after
	return nil
}

func (p *parser) literal(text string) segment {
	if p.fold {
		return segment{text: fold(text), spelt: text, folds: strings.ContainsFunc(text, isASCIILetter)}
	}
	return segment{text: text, spelt: text}
}

// wildcard reads what stands between braces: NAME, NAME... or NAME:CONSTRAINT.
func (p *parser) wildcard(inner string) (segment, error) {
	name, spec, constrained := strings.Cut(inner, ":")
	name, isMulti := strings.CutSuffix(name, "...")
	switch {
	case name == "":
		return segment{}, errors.New("wildcard has no name")
	case !isName(name):
		return segment{}, fmt.Errorf("wildcard name %q is not a Go identifier", name)
	case slices.Contains(p.out.names(), name):
		return segment{}, fmt.Errorf("wildcard name %q is there twice", name)
	case constrained && isMulti:
		return segment{}, fmt.Errorf("{%s...} takes no constraint", name)
	case isMulti:
		return segment{kind: multi, text: name}, nil
	case !constrained:
		return segment{kind: wild, text: name}, nil
	}
	check, err := newConstraint(spec)
	if err != nil {
		return segment{}, fmt.Errorf("constraint of {%s}: %w", name, err)
	}
	return segment{kind: wild, text: name, check: check}, nil
}

func isName(s string) bool {
	for i, c := range s {
		if c != '_' && !unicode.IsLetter(c) && (i == 0 || !unicode.IsDigit(c)) {
			return false
		}
	}
	return s != ""
}

// isToken tells whether s may be a method (RFC 9110, section 5.6.2).
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !isDigit(c) && !isLetter(c) && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

// unescape returns s without percent-encoding, or s itself if that is broken.
func unescape(s string) string {
	if u, err := url.PathUnescape(s); err == nil {
		return u
	}
	return s
}

// cleanPath returns p beginning with a slash, without empty and dot segments;
// it ends in a slash if p does.
func cleanPath(p string) string {
	c := path.Clean("/" + p)
	if strings.HasSuffix(p, "/") && c != "/" {
		c += "/"
	}
	return c
}

// fold returns s with ASCII letters in lower case. Its length stays.
func fold(s string) string {
	if !hasUpper(s) {
		return s
	}
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c | 0x20
		}
	}
	return string(b)
}

func isASCIILetter(r rune) bool { return r < utf8.RuneSelf && isLetter(byte(r)) }

func hasUpper(s string) bool {
	for i := range len(s) {
		if 'A' <= s[i] && s[i] <= 'Z' {
			return true
		}
	}
	return false
}
