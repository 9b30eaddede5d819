package router

import (
	"strings"

	"github.com/tarehq/tare/serve/internal/pattern"
)

// walk goes through a tree along one path.
type walk struct {
	values []string // room for the wildcards' values, as deep as the tree
	method method
	name   string // the method itself
	raw    bool   // the path is in the tree's own encoding and need not be clean
	spelt  string // if raw: the path before its case was folded

	// What it met, for a path that no route matched, or one only by its beginning.
	slash   bool // the path ended where a slash leads on
	refused bool // a route matched but for its method
}

// from returns the most specific route below n whose path matches p, or nil.
// The values of wildcards go to w.values from k on.
//
// Trying a literal before a wildcard, and that before the rest of the path,
// finds the most specific route first: of two routes that match one path, the
// one is more specific than the other in every segment, or they conflict.
//
// A wildcard takes no segment that is empty or made of dots only, nor the rest
// of a path that holds one, so that what is matched is clean without having
// been looked at beforehand.
func (w *walk) from(n *node, p string, k int) *route {
	at := 0
	for {
		if tail := n.tail; tail != "" {
			end := at + len(tail)
			if len(p) < end || p[at:end] != tail {
				w.slash = w.slash || end == len(p)+1 && tail[len(tail)-1] == '/' && p[at:] == tail[:len(tail)-1]
				return nil
			}
			at = end
		}
		if at >= len(p) {
			break
		}
		c := n.child(p[at])
		if n.any == nil && n.rest == nil {
			if c == nil {
				return nil
			}
			n = c
			at++
			continue
		}
		if c != nil {
			if r := w.from(c, p[at+1:], k); r != nil {
				return r
			}
		}
		i := strings.IndexByte(p[at:], '/')
		if i < 0 {
			i = len(p) - at
		}
		if n.rest != nil {
			return w.alternatives(n, p[at:], k, i)
		}
		value := p[at : at+i]
		if !w.fits(value) {
			return nil
		}
		w.values[k] = value
		n, k = n.any, k+1
		at += i
		if at == len(p) {
			break
		}
		if n.next == nil {
			return nil
		}
		n = n.next[0] // behind a wildcard there is nothing but a slash
		at++
	}
	if n.leaf != nil && w.method != otherMethod {
		if r := n.leaf.routes[w.method]; r != nil {
			return r
		}
	}
	return w.end(n, k)
}

// alternatives tries the wildcards of n in turn, for a path whose first segment
// ends at i.
func (w *walk) alternatives(n *node, p string, k, i int) *route {
	if w.fits(p[:i]) {
		for _, c := range n.rest.checked {
			if !c.check.Allows(w.value(p, i)) {
				continue
			}
			w.values[k] = p[:i]
			if r := w.from(c.node, p[i:], k+1); r != nil {
				return r
			}
		}
		if n.any != nil {
			w.values[k] = p[:i]
			if r := w.from(n.any, p[i:], k+1); r != nil {
				return r
			}
		}
	}
	if n.rest.multi == nil || !w.raw && !pattern.IsClean(p) {
		return nil
	}
	w.values[k] = p
	return w.pick(n.rest.multi)
}

// end picks a route where the path ends.
func (w *walk) end(n *node, k int) *route {
	if n.leaf != nil {
		if r := w.pick(n.leaf); r != nil {
			return r
		}
	}
	if c := n.child('/'); c != nil {
		w.slash = w.slash || c.tail == ""
	}
	if n.rest == nil || n.rest.multi == nil {
		return nil
	}
	w.values[k] = ""
	return w.pick(n.rest.multi)
}

func (w *walk) pick(l *leaf) *route {
	r := l.route(w.method, w.name)
	w.refused = w.refused || r == nil
	return r
}

// fits reports whether a wildcard may take the segment.
func (w *walk) fits(s string) bool {
	if w.raw {
		return s != "" && s != "%2f" // as in a ServeMux, an encoded slash alone is no value
	}
	return s != "" && (s[0] != '.' || s != "." && s != "..")
}

// value returns the first i bytes of the rest of the path as a constraint sees
// them. The copy keeps the compiler from moving the walk to the heap, since what
// a constraint does with a string is not known to it.
func (w *walk) value(p string, i int) string {
	if !w.raw {
		return p[:i]
	}
	at := len(w.spelt) - len(p)
	return pattern.Unescape(strings.Clone(w.spelt[at : at+i]))
}

// leaves calls f with every leaf below n that p leads to, most specific first.
// It is what from would try if no leaf had a route for the method.
func (w *walk) leaves(n *node, p string, f func(*leaf)) {
	p, ok := strings.CutPrefix(p, n.tail)
	if !ok {
		return
	}
	if p == "" {
		if n.leaf != nil {
			f(n.leaf)
		}
	} else if c := n.child(p[0]); c != nil {
		w.leaves(c, p[1:], f)
	}
	i := strings.IndexByte(p, '/')
	if i < 0 {
		i = len(p)
	}
	fits := w.fits(p[:i])
	if n.rest != nil && fits {
		for _, c := range n.rest.checked {
			if c.check.Allows(w.value(p, i)) {
				w.leaves(c.node, p[i:], f)
			}
		}
	}
	if n.any != nil && fits {
		w.leaves(n.any, p[i:], f)
	}
	if n.rest != nil && n.rest.multi != nil {
		f(n.rest.multi)
	}
}
