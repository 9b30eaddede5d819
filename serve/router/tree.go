package router

import (
	"net/http"
	"slices"
	"strings"

	"github.com/tarehq/tare/serve/internal/pattern"
	"github.com/tarehq/tare/serve/internal/sys"
)

// route is a pattern ready to be served.
type route struct {
	text    string // the pattern as Request.Pattern shows it
	handler http.Handler
	names   sys.PathNames
	n       int  // number of names
	multi   bool // ends in a multi
	slow    bool // whether the route is meant needs a closer look at the path
	pattern *pattern.Pattern
}

// tree holds the routes of one host. It does not change once it is built.
//
// It is a radix tree over the bytes of the path. Wildcards hang below nodes that
// end in a slash. In a literal of a pattern, a slash and a percent sign are
// stored percent-encoded, which tells a slash in a segment from one between two.
type tree struct {
	root   *node // behind the first slash
	static statics
}

// node is a place in the tree. The byte that led to it is its parent's matter.
type node struct {
	tail string  // bytes that must follow
	low  byte    // the least byte that may follow these
	next []*node // by that byte, counted from low; nil where there is none
	any  *node   // behind a wildcard without a constraint
	rest *rest   // the other wildcards; nil: none
	leaf *leaf   // routes that end here
}

// rest holds the wildcards that are rare.
type rest struct {
	checked []checkedNode
	multi   *leaf
}

type checkedNode struct {
	check *pattern.Constraint
	node  *node
}

// child returns the node that c leads to, or nil.
func (n *node) child(c byte) *node {
	if i := int(c - n.low); i < len(n.next) { // c < low wraps around to a large i
		return n.next[i]
	}
	return nil
}

// slot returns where the child that c leads to belongs.
func (n *node) slot(c byte) **node {
	switch {
	case n.next == nil:
		n.low, n.next = c, make([]*node, 1)
	case c < n.low:
		n.next = slices.Concat(make([]*node, n.low-c), n.next)
		n.low = c
	case int(c-n.low) >= len(n.next):
		n.next = slices.Concat(n.next, make([]*node, int(c-n.low)+1-len(n.next)))
	}
	return &n.next[c-n.low]
}

// literal returns the node that the bytes of s lead to from n, made if missing.
func (n *node) literal(s string) *node {
	for s != "" {
		at := n.slot(s[0])
		s = s[1:]
		if *at == nil {
			*at = &node{tail: s}
			return *at
		}
		if i := commonPrefix(s, (*at).tail); i < len((*at).tail) {
			*at = (*at).split(i)
		}
		n = *at
		s = s[len(n.tail):]
	}
	return n
}

// split returns a new node that takes the first i bytes of n's tail and leads
// to n.
func (n *node) split(i int) *node {
	upper := &node{tail: n.tail[:i]}
	*upper.slot(n.tail[i]) = n
	n.tail = n.tail[i+1:]
	return upper
}

func commonPrefix(s, t string) int {
	i := 0
	for i < len(s) && i < len(t) && s[i] == t[i] {
		i++
	}
	return i
}

// below returns the node behind a wildcard with this constraint, made if missing.
func (n *node) below(c *pattern.Constraint) *node {
	if c == nil {
		if n.any == nil {
			n.any = &node{}
		}
		return n.any
	}
	r := n.others()
	for _, x := range r.checked {
		if x.check.Spec == c.Spec {
			return x.node
		}
	}
	r.checked = append(r.checked, checkedNode{c, &node{}})
	return r.checked[len(r.checked)-1].node
}

// others returns the rare wildcards of n, made if missing.
func (n *node) others() *rest {
	if n.rest == nil {
		n.rest = &rest{}
	}
	return n.rest
}

// add puts a route into the tree.
func (t *tree) add(p *pattern.Pattern, r *route) {
	n := t.root
	var path strings.Builder // bytes since the last wildcard
	for i, s := range p.Segments {
		if i > 0 {
			path.WriteByte('/')
		}
		switch {
		case s.Kind == pattern.Multi:
			o := n.literal(path.String()).others()
			if o.multi == nil {
				o.multi = &leaf{}
			}
			o.multi.add(p.Method, r)
			return
		case s.Kind == pattern.Wild:
			n = n.literal(path.String()).below(s.Check)
			path.Reset()
		case s.Text == "/" && i == len(p.Segments)-1:
			// The slash alone.
		default:
			path.WriteString(armor(s.Text))
		}
	}
	n = n.literal(path.String())
	if n.leaf == nil {
		n.leaf = &leaf{}
	}
	n.leaf.add(p.Method, r)
	if r.n == 0 {
		t.static.add("/"+path.String(), n.leaf)
	}
}

// armor returns a segment as the tree stores it.
func armor(s string) string {
	if strings.IndexByte(s, '%') >= 0 {
		s = strings.ReplaceAll(s, "%", "%25")
	}
	if strings.IndexByte(s, '/') >= 0 {
		s = strings.ReplaceAll(s, "/", "%2f") // as folding case leaves it
	}
	return s
}

// statics finds routes without wildcards by their whole path, at a cost that
// does not depend on how many there are.
//
// The filter spares most paths that are not there the hash: for the 203 routes
// of the GitHub table it lets through 1 in 30 of the others.
type statics struct {
	leaves map[string]*leaf
	filter [32]uint64 // by last byte: which lengths there are, modulo 64
}

func (s *statics) add(path string, l *leaf) {
	if s.leaves == nil {
		s.leaves = map[string]*leaf{}
	}
	s.leaves[path] = l
	s.filter[path[len(path)-1]%32] |= 1 << (len(path) % 64)
}

// route returns what serves the path by the method, or nil.
func (s *statics) route(path string, m method, name string) *route {
	if s.filter[path[len(path)-1]%32]&(1<<(len(path)%64)) == 0 {
		return nil
	}
	if l := s.leaves[path]; l != nil {
		return l.route(m, name)
	}
	return nil
}
