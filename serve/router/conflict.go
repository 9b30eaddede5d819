package router

import (
	"fmt"

	"github.com/tarehq/tare/serve/internal/pattern"
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

func newConflict(e, other *entry) *ConflictError {
	return &ConflictError{
		Pattern: e.Pattern, Location: e.Location,
		Other: other.Pattern, OtherLocation: other.Location,
		Example: pattern.Example(e.pattern, other.pattern),
		Same:    pattern.Compare(e.pattern, other.pattern) == pattern.Same,
	}
}

// index finds the patterns that may conflict with another without looking at
// all: a tree by segment that leaves constraints aside.
type index struct {
	literals map[string]*index
	wild     *index
	ends     []numbered // those that end here
	multis   []numbered // and with a multi after this
}

// numbered is an entry with its place in the order of registration.
type numbered struct {
	*entry
	order int
}

func (x *index) add(e *entry, order int) {
	for _, s := range e.pattern.Segments {
		switch s.Kind {
		case pattern.Multi:
			x.multis = append(x.multis, numbered{e, order})
			return
		case pattern.Wild:
			if x.wild == nil {
				x.wild = &index{}
			}
			x = x.wild
		default:
			if x.literals == nil {
				x.literals = map[string]*index{}
			}
			if x.literals[s.Text] == nil {
				x.literals[s.Text] = &index{}
			}
			x = x.literals[s.Text]
		}
	}
	x.ends = append(x.ends, numbered{e, order})
}

// conflict returns the entry registered first of those whose patterns conflict with
// that of e, or nil.
func (x *index) conflict(e *entry) *entry {
	var first numbered
	x.visit(e.pattern.Segments, func(n numbered) {
		if (first.entry == nil || n.order < first.order) && pattern.Conflict(e.pattern, n.pattern) {
			first = n
		}
	})
	return first.entry
}

// visit calls f with all patterns that may match a path that segs match.
func (x *index) visit(segs []pattern.Segment, f func(numbered)) {
	if x == nil {
		return
	}
	if len(segs) == 0 {
		each(x.ends, f)
		return
	}
	each(x.multis, f)
	rest := segs[1:]
	if segs[0].Kind == pattern.Multi { // takes what is left, however much
		each(x.ends, f)
		rest = segs
	}
	x.wild.visit(rest, f)
	if segs[0].Kind == pattern.Literal {
		x.literals[segs[0].Text].visit(rest, f)
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
