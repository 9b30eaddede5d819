package router

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"unicode"
)

// relation compares what two patterns, or two parts of them, match: the first's
// set of requests to the second's.
type relation uint8

const (
	same     relation = iota
	wider             // the first matches all that the second does, and more
	narrower          // the reverse
	overlaps          // some requests are matched by both, some by either alone
	disjoint          // no request is matched by both
)

// and returns the relation of two products: r relates their one factors, s
// their other.
func (r relation) and(s relation) relation {
	switch {
	case r == disjoint || s == disjoint:
		return disjoint
	case r == same:
		return s
	case s == same || r == s:
		return r
	default:
		return overlaps
	}
}

// conflicts tells whether some request is matched by both patterns with neither
// being the more specific. A pattern with a host goes before one without.
func conflicts(p, q *pattern) bool {
	if p.host != q.host {
		return false
	}
	r := compareMethods(p.method, q.method).and(comparePaths(p.segments, q.segments))
	return r == same || r == overlaps
}

func compareMethods(m, n string) relation {
	switch {
	case m == n:
		return same
	case m == "" || m == http.MethodGet && n == http.MethodHead:
		return wider
	case n == "" || n == http.MethodGet && m == http.MethodHead:
		return narrower
	default:
		return disjoint
	}
}

func comparePaths(p, q []segment) relation {
	rel := same
	n := min(len(p), len(q))
	for i := range n {
		if rel = rel.and(compareSegments(&p[i], &q[i])); rel == disjoint {
			return disjoint
		}
	}
	switch {
	case len(p) == len(q):
		return rel
	case n == len(p) && p[n-1].kind == multi:
		return rel.and(wider)
	case n == len(q) && q[n-1].kind == multi:
		return rel.and(narrower)
	default:
		return disjoint
	}
}

func compareSegments(s, t *segment) relation {
	switch {
	case s.kind == multi && t.kind == multi:
		return same
	case s.kind == multi:
		return wider
	case t.kind == multi:
		return narrower
	case s.kind == wild && t.kind == wild:
		return compareConstraints(s.check, t.check)
	case s.kind == wild:
		return compareLiteral(s, t)
	case t.kind == wild:
		if compareLiteral(t, s) == wider {
			return narrower
		}
		return disjoint
	case s.text == t.text:
		return same
	default:
		return disjoint
	}
}

// compareLiteral relates a wildcard to a literal, which goes first wherever some
// spelling of it is a value of the wildcard.
func compareLiteral(s, t *segment) relation {
	if t.text == "/" {
		return disjoint
	}
	if _, ok := spelling(s.check, t); !ok {
		return disjoint
	}
	return wider
}

// spelling returns a spelling of the literal that the constraint allows, and
// whether there is one.
func spelling(c *constraint, t *segment) (string, bool) {
	if c.allows(t.spelt) || !t.folds {
		return t.spelt, c.allows(t.spelt)
	}
	var expr strings.Builder
	for _, r := range t.text {
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
	return witness(c, &constraint{exact: prog})
}

func compareConstraints(c, d *constraint) relation {
	switch {
	case c == nil && d == nil:
		return same
	case c == nil:
		return wider
	case d == nil:
		return narrower
	case c.spec == d.spec:
		return same
	}
	if _, ok := witness(c, d); !ok {
		return disjoint
	}
	return overlaps
}
