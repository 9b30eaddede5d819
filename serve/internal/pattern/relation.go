package pattern

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"unicode"
)

// Relation compares what two patterns, or two parts of them, match: the first's
// set of requests to the second's.
type Relation uint8

const (
	Same     Relation = iota
	Wider             // the first matches all that the second does, and more
	Narrower          // the reverse
	Overlaps          // some requests are matched by both, some by either alone
	Disjoint          // no request is matched by both
)

// Covers reports whether the first matches all that the second does.
func (r Relation) Covers() bool { return r == Same || r == Wider }

// and returns the relation of two products: r relates their one factors, s
// their other.
func (r Relation) and(s Relation) Relation {
	switch {
	case r == Disjoint || s == Disjoint:
		return Disjoint
	case r == Same:
		return s
	case s == Same || r == s:
		return r
	default:
		return Overlaps
	}
}

// Compare relates the requests that two patterns match.
func Compare(p, q *Pattern) Relation {
	return compareHosts(p.Host, q.Host).and(CompareMethods(p.Method, q.Method)).and(comparePaths(p.Segments, q.Segments))
}

// Conflict reports whether some request is matched by both patterns with neither
// being the more specific. A pattern with a host goes before one without.
func Conflict(p, q *Pattern) bool {
	r := Compare(p, q)
	return p.Host == q.Host && (r == Same || r == Overlaps)
}

func compareHosts(p, q string) Relation {
	switch {
	case p == q:
		return Same
	case p == "":
		return Wider
	case q == "":
		return Narrower
	default:
		return Disjoint
	}
}

// CompareMethods relates the methods of two patterns, of which "" is any.
func CompareMethods(m, n string) Relation {
	switch {
	case m == n:
		return Same
	case m == "" || m == http.MethodGet && n == http.MethodHead:
		return Wider
	case n == "" || n == http.MethodGet && m == http.MethodHead:
		return Narrower
	default:
		return Disjoint
	}
}

func comparePaths(p, q []Segment) Relation {
	rel := Same
	n := min(len(p), len(q))
	for i := range n {
		if rel = rel.and(compareSegments(&p[i], &q[i])); rel == Disjoint {
			return Disjoint
		}
	}
	switch {
	case len(p) == len(q):
		return rel
	case n == len(p) && p[n-1].Kind == Multi:
		return rel.and(Wider)
	case n == len(q) && q[n-1].Kind == Multi:
		return rel.and(Narrower)
	default:
		return Disjoint
	}
}

func compareSegments(s, t *Segment) Relation {
	switch {
	case s.Kind == Multi && t.Kind == Multi:
		return Same
	case s.Kind == Multi:
		return Wider
	case t.Kind == Multi:
		return Narrower
	case s.Kind == Wild && t.Kind == Wild:
		return compareConstraints(s.Check, t.Check)
	case s.Kind == Wild:
		return compareLiteral(s, t)
	case t.Kind == Wild:
		if compareLiteral(t, s) == Wider {
			return Narrower
		}
		return Disjoint
	case s.Text == t.Text:
		return Same
	default:
		return Disjoint
	}
}

// compareLiteral relates a wildcard to a literal, which goes first wherever some
// spelling of it is a value of the wildcard.
func compareLiteral(s, t *Segment) Relation {
	if t.Text == "/" {
		return Disjoint
	}
	if _, ok := spelling(s.Check, t); !ok {
		return Disjoint
	}
	return Wider
}

// spelling returns a spelling of the literal that the constraint allows, and
// whether there is one.
func spelling(c *Constraint, t *Segment) (string, bool) {
	if c.Allows(t.Spelt) || !t.Folds {
		return t.Spelt, c.Allows(t.Spelt)
	}
	var expr strings.Builder
	for _, r := range t.Text {
		if isASCIILetter(r) {
			fmt.Fprintf(&expr, "[%c%c]", r, unicode.ToUpper(r))
		} else {
			expr.WriteString(regexp.QuoteMeta(string(r)))
		}
	}
	prog, err := program(expr.String())
	if err != nil {
		return "", false // cannot be: all is quoted
	}
	return witness(c, &Constraint{exact: prog})
}

func compareConstraints(c, d *Constraint) Relation {
	switch {
	case c == nil && d == nil:
		return Same
	case c == nil:
		return Wider
	case d == nil:
		return Narrower
	case c.Spec == d.Spec:
		return Same
	}
	if _, ok := witness(c, d); !ok {
		return Disjoint
	}
	return Overlaps
}
