package router

import "strings"

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
	for {
		if len(p) < len(n.prefix) || p[:len(n.prefix)] != n.prefix {
			w.slash = w.slash || len(n.prefix) == len(p)+1 && n.prefix[len(p)] == '/' && n.prefix[:len(p)] == p
			return nil
		}
		p = p[len(n.prefix):]
		if p == "" {
			return w.end(n, k)
		}
		c, alt := n.child(p[0]), n.wild
		if alt == nil {
			if c == nil {
				return nil
			}
			n = c
			continue
		}
		if c != nil {
			if r := w.from(c, p, k); r != nil {
				return r
			}
		}
		i := strings.IndexByte(p, '/')
		if i < 0 {
			i = len(p)
		}
		if alt.checked == nil && alt.multi == nil { // the common case needs no way back
			if !w.fits(p[:i]) {
				return nil
			}
			w.values[k] = p[:i]
			n, p, k = alt.any, p[i:], k+1
			continue
		}
		return w.alternatives(alt, p, k, i)
	}
}

// alternatives tries wildcards in turn, for a path whose first segment ends
// at i.
func (w *walk) alternatives(alt *wildcards, p string, k, i int) *route {
	if w.fits(p[:i]) {
		w.values[k] = p[:i]
		for _, c := range alt.checked {
			if !c.check.allows(w.value(p, i)) {
				continue
			}
			if r := w.from(c.node, p[i:], k+1); r != nil {
				return r
			}
			w.values[k] = p[:i]
		}
		if alt.any != nil {
			if r := w.from(alt.any, p[i:], k+1); r != nil {
				return r
			}
		}
	}
	if alt.multi == nil || !w.raw && !isClean(p) {
		return nil
	}
	w.values[k] = p
	return w.pick(alt.multi)
}

// end picks a route where the path ends.
func (w *walk) end(n *node, k int) *route {
	if n.leaf != nil {
		if r := w.pick(n.leaf); r != nil {
			return r
		}
	}
	if c := n.child('/'); c != nil {
		w.slash = w.slash || c.prefix == "/"
	}
	if n.wild == nil || n.wild.multi == nil {
		return nil
	}
	w.values[k] = ""
	return w.pick(n.wild.multi)
}

func (w *walk) pick(l *leaf) *route {
	r := l.route(w.method, w.name)
	w.refused = w.refused || r == nil
	return r
}

// fits tells whether a wildcard may take the segment.
func (w *walk) fits(s string) bool {
	if w.raw {
		return s != "" && s != "%2F" // as in a ServeMux, an encoded slash alone is no value
	}
	return s != "" && (s[0] != '.' || s != "." && s != "..")
}

// value returns the first i bytes of the rest of the path as a constraint sees
// them.
func (w *walk) value(p string, i int) string {
	if !w.raw {
		return p[:i]
	}
	at := len(w.spelt) - len(p)
	return unescape(w.spelt[at : at+i])
}

// isClean tells whether the rest of a path behind a slash has no empty and no
// dot segments. It may end in a slash.
func isClean(p string) bool {
	for p != "" {
		i := strings.IndexByte(p, '/')
		switch {
		case i == 0:
			return false
		case p[0] == '.' && (i == 1 || i < 0 && len(p) == 1):
			return false
		case p[0] == '.' && len(p) > 1 && p[1] == '.' && (i == 2 || i < 0 && len(p) == 2):
			return false
		case i < 0:
			return true
		}
		p = p[i+1:]
	}
	return true
}

// leaves calls f with every leaf below n that p leads to, most specific first.
// It is what from would try if no leaf had a route for the method.
func (w *walk) leaves(n *node, p string, f func(*leaf)) {
	rest, ok := strings.CutPrefix(p, n.prefix)
	if !ok {
		return
	}
	if rest == "" {
		if n.leaf != nil {
			f(n.leaf)
		}
	} else if c := n.child(rest[0]); c != nil {
		w.leaves(c, rest, f)
	}
	if n.wild == nil {
		return
	}
	i := strings.IndexByte(rest, '/')
	if i < 0 {
		i = len(rest)
	}
	if w.fits(rest[:i]) {
		for _, c := range n.wild.checked {
			if c.check.allows(w.value(rest, i)) {
				w.leaves(c.node, rest[i:], f)
			}
		}
		if n.wild.any != nil {
			w.leaves(n.wild.any, rest[i:], f)
		}
	}
	if n.wild.multi != nil {
		f(n.wild.multi)
	}
}
