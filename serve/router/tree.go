package router

import (
	"net/http"
	"slices"
	"strings"

	"github.com/tarehq/tare/serve/internal/sys"
)

// route is a pattern ready to be served.
type route struct {
	text    string // the pattern as Request.Pattern shows it
	handler http.Handler
	names   *sys.PathNames
	n       int  // number of names
	multi   bool // ends in a multi
	unclean bool
	pattern *pattern
}

// tree holds the routes of one host. It does not change once it is built.
//
// It is a radix tree over the bytes of the path. Wildcards hang below nodes that
// end in a slash. In a literal of a pattern, a slash and a percent sign are
// stored percent-encoded, which tells a slash in a segment from one between two.
type tree struct {
	root   *node
	static statics
	deep   int // the most wildcards that a route has
}

// node is one cache line.
type node struct {
	prefix string
	next   []*node // by first byte of their prefix, counted from low; nil where there is none
	low    byte
	leaf   *leaf // routes that end here
	wild   *wildcards
}

// wildcards are what may follow a node in place of a literal, in the order in
// which they are tried.
type wildcards struct {
	checked []checkedNode
	any     *node
	multi   *leaf
}

type checkedNode struct {
	check *constraint
	node  *node
}

// child returns the node whose prefix begins with c, or nil.
func (n *node) child(c byte) *node {
	if i := int(c - n.low); i < len(n.next) { // c < low wraps around to a large i
		return n.next[i]
	}
	return nil
}

// slot returns where the child that begins with c belongs.
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
		c := *at
		if c == nil {
			c = &node{prefix: s}
			*at = c
			return c
		}
		i := commonPrefix(s, c.prefix)
		if i < len(c.prefix) {
			upper := &node{prefix: c.prefix[:i]}
			c.prefix = c.prefix[i:]
			*upper.slot(c.prefix[0]) = c
			*at = upper
			c = upper
		}
		n, s = c, s[i:]
	}
	return n
}

func commonPrefix(s, t string) int {
	i := 0
	for i < len(s) && i < len(t) && s[i] == t[i] {
		i++
	}
	return i
}

// below returns the node behind a wildcard with this constraint, made if missing.
func (w *wildcards) below(c *constraint) *node {
	if c == nil {
		if w.any == nil {
			w.any = &node{}
		}
		return w.any
	}
	for _, x := range w.checked {
		if x.check.spec == c.spec {
			return x.node
		}
	}
	w.checked = append(w.checked, checkedNode{c, &node{}})
	return w.checked[len(w.checked)-1].node
}

func (n *node) wildcards() *wildcards {
	if n.wild == nil {
		n.wild = &wildcards{}
	}
	return n.wild
}

// add puts a route into the tree.
func (t *tree) add(p *pattern, r *route) {
	n := t.root
	var path strings.Builder // bytes since the last wildcard
	for i, s := range p.segments {
		path.WriteByte('/')
		switch {
		case s.kind == multi:
			w := n.literal(path.String()).wildcards()
			if w.multi == nil {
				w.multi = &leaf{}
			}
			w.multi.add(p.method, r)
			t.deep = max(t.deep, p.wildcards())
			return
		case s.kind == wild:
			n = n.literal(path.String()).wildcards().below(s.check)
			path.Reset()
		case s.text == "/" && i == len(p.segments)-1:
			// The slash alone.
		default:
			path.WriteString(armor(s.text))
		}
	}
	n = n.literal(path.String())
	if n.leaf == nil {
		n.leaf = &leaf{}
	}
	n.leaf.add(p.method, r)
	t.deep = max(t.deep, p.wildcards())
	if r.n == 0 {
		t.static.add(path.String(), n.leaf)
	}
}

// compact drops nodes below n that only lead to another.
func (n *node) compact() {
	for _, c := range n.next {
		if c != nil {
			c.compact()
		}
	}
	if n.wild == nil {
		return
	}
	for i := range n.wild.checked {
		n.wild.checked[i].node = n.wild.checked[i].node.compacted()
	}
	if n.wild.any != nil {
		n.wild.any = n.wild.any.compacted()
	}
}

// compacted compacts n and returns what does its work.
func (n *node) compacted() *node {
	n.compact()
	if n.prefix == "" && n.leaf == nil && n.wild == nil && len(n.next) == 1 {
		return n.next[0]
	}
	return n
}

// seal makes the tree ready to be walked; nothing may be added from then on.
func (t *tree) seal() { t.root = t.root.compacted() }

// armor returns a segment as the tree stores it.
func armor(s string) string {
	if strings.IndexByte(s, '%') >= 0 {
		s = strings.ReplaceAll(s, "%", "%25")
	}
	if strings.IndexByte(s, '/') >= 0 {
		s = strings.ReplaceAll(s, "/", "%2F")
	}
	return s
}

// statics finds routes without wildcards by their whole path, at a cost that
// does not depend on how many there are.
//
// The filter spares most paths that are not there the hash: for the 203 routes
// of the GitHub table it lets through 1 in 20 of the others.
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

func (s *statics) find(path string) *leaf {
	if path == "" || s.filter[path[len(path)-1]%32]&(1<<(len(path)%64)) == 0 {
		return nil
	}
	return s.leaves[path]
}
