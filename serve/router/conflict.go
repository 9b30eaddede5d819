package router

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// ConflictError says that two patterns match the same request while neither is
// the more specific.
type ConflictError struct {
	Pattern, Location string // of the route that was to be added, as file:line
	Other             string // of the route that is there
	OtherLocation     string
	Example           string // a request that both match, such as GET /a/b
	Same              bool   // whether both match the same requests
}

func (e *ConflictError) Error() string {
	why := "and neither is more specific"
	if e.Same {
		why = "and the one matches what the other does"
	}
	return fmt.Sprintf("pattern %q (%s) conflicts with %q (%s): both match %s, %s",
		e.Pattern, e.Location, e.Other, e.OtherLocation, e.Example, why)
}

func newConflict(p, q *pattern) *ConflictError {
	return &ConflictError{
		Pattern: p.text, Location: p.loc,
		Other: q.text, OtherLocation: q.loc,
		Example: exampleMethod(p.method, q.method) + " " + p.host + examplePath(p.segments, q.segments),
		Same:    compareMethods(p.method, q.method).and(comparePaths(p.segments, q.segments)) == same,
	}
}

// exampleMethod returns a method that both patterns match, given that there is
// one.
func exampleMethod(m, n string) string {
	if compareMethods(m, n) == wider {
		m = n
	}
	return cmp.Or(m, http.MethodGet)
}

// examplePath returns a path that both match, given that there is one.
func examplePath(p, q []segment) string {
	var b strings.Builder
	for i := range max(len(p), len(q)) {
		b.WriteByte('/')
		s, t := at(p, i), at(q, i)
		if s.kind == literal {
			s, t = t, s
		}
		switch { // s is a wildcard or both are literals
		case t.kind == literal && t.text == "/" && i == max(len(p), len(q))-1:
		case t.kind == literal:
			v, _ := spelling(s.check, t) // there is one, or the patterns were disjoint
			b.WriteString(escapeLiteral(v))
		case s.kind == multi && t.kind == multi:
		default:
			b.WriteString(escapeLiteral(exampleValue(s, t)))
		}
	}
	return b.String()
}

// escapeLiteral percent-encodes a segment, dots too where cleaning would
// otherwise take it away.
func escapeLiteral(s string) string {
	if s == "." || s == ".." {
		return strings.ReplaceAll(s, ".", "%2E")
	}
	return url.PathEscape(s)
}

// at returns the segment that a path's i-th is matched by.
func at(p []segment, i int) *segment { return &p[min(i, len(p)-1)] }

// exampleValue returns a value that both wildcards take.
func exampleValue(s, t *segment) string {
	if s.check == nil && t.check == nil {
		return cmp.Or(s.text, t.text)
	}
	v, _ := witness(s.check, t.check) // there is one, or the patterns were disjoint
	return v
}

// index finds the patterns that may conflict with another without looking at
// all: a tree by segment that leaves constraints aside.
type index struct {
	literals map[string]*index
	wild     *index
	ends     []numbered // patterns that end here
	multis   []numbered // and with a multi after this
}

// numbered is a pattern with its place in the order of registration.
type numbered struct {
	pattern *pattern
	order   int
}

func (x *index) add(p *pattern, order int) {
	for _, s := range p.segments {
		switch s.kind {
		case multi:
			x.multis = append(x.multis, numbered{p, order})
			return
		case wild:
			if x.wild == nil {
				x.wild = &index{}
			}
			x = x.wild
		default:
			if x.literals == nil {
				x.literals = map[string]*index{}
			}
			if x.literals[s.text] == nil {
				x.literals[s.text] = &index{}
			}
			x = x.literals[s.text]
		}
	}
	x.ends = append(x.ends, numbered{p, order})
}

// conflict returns the pattern registered first of those that conflict with p,
// or nil.
func (x *index) conflict(p *pattern) *pattern {
	var first numbered
	x.visit(p.segments, func(n numbered) {
		if (first.pattern == nil || n.order < first.order) && conflicts(p, n.pattern) {
			first = n
		}
	})
	return first.pattern
}

// visit calls f with all patterns that may match a path that segs match.
func (x *index) visit(segs []segment, f func(numbered)) {
	if x == nil {
		return
	}
	if len(segs) == 0 {
		each(x.ends, f)
		return
	}
	each(x.multis, f)
	rest := segs[1:]
	if segs[0].kind == multi { // takes what is left, however much
		each(x.ends, f)
		rest = segs
	}
	x.wild.visit(rest, f)
	if segs[0].kind == literal {
		x.literals[segs[0].text].visit(rest, f)
		return
	}
	for _, y := range x.literals {
		y.visit(rest, f)
	}
}

func each(ns []numbered, f func(numbered)) {
	for _, n := range ns {
		f(n)
	}
}
