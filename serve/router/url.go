package router

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/tarehq/tare/serve/internal/pattern"
)

// URL builds the URL of the route that was added under this name. The params are
// names of its wildcards and their values by turns: each of them, in any order,
// unescaped. A value of {name...} may hold slashes.
//
// The URL has a path, percent-encoded so that the router reads the same values
// back, and the host if the pattern has one. A value that could not come back is
// an error: one that is empty or dots only, that its constraint does not allow,
// or that is a slash alone.
//
// A more specific route may match the URL as well, and serve it: /users/{id} with
// the id new leads to /users/new.
func (rt *Router) URL(name string, params ...string) (*url.URL, error) {
	rt.mu.Lock()
	e := rt.named[name]
	rt.mu.Unlock()
	if e == nil {
		return nil, fmt.Errorf("building a URL: no route has the name %q", name)
	}
	u, err := urlOf(e.pattern, params)
	if err != nil {
		return nil, fmt.Errorf("building a URL of %q: %w", e.Pattern, err)
	}
	return u, nil
}

func urlOf(p *pattern.Pattern, params []string) (*url.URL, error) {
	if len(params)%2 != 0 {
		return nil, fmt.Errorf("%q has no value", params[len(params)-1])
	}
	given := map[string]string{}
	for pair := range slices.Chunk(params, 2) {
		if _, twice := given[pair[0]]; twice {
			return nil, fmt.Errorf("%q is given twice", pair[0])
		}
		given[pair[0]] = pair[1]
	}
	var path strings.Builder
	for i := range p.Segments {
		path.WriteByte('/')
		part, err := partOf(p, i, given)
		if err != nil {
			return nil, err
		}
		path.WriteString(part)
	}
	for name := range given {
		if !slices.Contains(p.Names(), name) {
			return nil, fmt.Errorf("%q is not one of its wildcards", name)
		}
	}
	u := fromEscaped(path.String())
	u.Host = p.Host
	return u, nil
}

// part returns the i-th segment of the path, percent-encoded.
func partOf(p *pattern.Pattern, i int, given map[string]string) (string, error) {
	s := &p.Segments[i]
	switch {
	case s.Kind == pattern.Literal && s.Text == "/" && i == len(p.Segments)-1:
		return "", nil
	case s.Kind == pattern.Literal:
		return pattern.Escape(s.Spelt), nil
	case s.Text == "":
		return "", nil
	}
	value, ok := given[s.Text]
	switch {
	case !ok:
		return "", fmt.Errorf("%q is missing", s.Text)
	case s.Kind == pattern.Multi && !pattern.IsClean(value):
		return "", fmt.Errorf("value %q of %q has an empty or a dot segment", value, s.Text)
	case s.Kind == pattern.Multi:
		segs := strings.Split(value, "/")
		for k := range segs {
			segs[k] = url.PathEscape(segs[k])
		}
		return strings.Join(segs, "/"), nil
	case value == "" || value == "." || value == ".." || value == "/":
		return "", fmt.Errorf("value %q of %q cannot be a segment of a path", value, s.Text)
	case !s.Check.Allows(value):
		return "", fmt.Errorf("value %q of %q is not %s", value, s.Text, s.Check.Spec)
	}
	return url.PathEscape(value), nil
}
