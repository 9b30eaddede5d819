package pattern

import (
	"cmp"
	"net/http"
	"strings"
)

// Example returns a request that both patterns match, such as GET /a/b, given that
// there is one and both have the same host.
func Example(p, q *Pattern) string {
	return exampleMethod(p.Method, q.Method) + " " + p.Host + examplePath(p.Segments, q.Segments)
}

// exampleMethod returns a method that both patterns match, given that there is
// one.
func exampleMethod(m, n string) string {
	if CompareMethods(m, n) == Wider {
		m = n
	}
	return cmp.Or(m, http.MethodGet)
}

// examplePath returns a path that both match, given that there is one.
func examplePath(p, q []Segment) string {
	var b strings.Builder
	for i := range max(len(p), len(q)) {
		b.WriteByte('/')
		s, t := at(p, i), at(q, i)
		if s.Kind == Literal {
			s, t = t, s
		}
		switch { // s is a wildcard or both are literals
		case t.Kind == Literal && t.Text == "/" && i == max(len(p), len(q))-1:
		case t.Kind == Literal:
			v, _ := spelling(s.Check, t) // there is one, or the patterns were disjoint
			b.WriteString(Escape(v))
		case s.Kind == Multi && t.Kind == Multi:
		default:
			b.WriteString(Escape(exampleValue(s, t)))
		}
	}
	return b.String()
}

// at returns the segment that a path's i-th is matched by.
func at(p []Segment, i int) *Segment { return &p[min(i, len(p)-1)] }

// exampleValue returns a value that both wildcards take.
func exampleValue(s, t *Segment) string {
	if s.Check == nil && t.Check == nil {
		return cmp.Or(s.Text, t.Text)
	}
	v, _ := witness(s.Check, t.Check) // there is one, or the patterns were disjoint
	return v
}
