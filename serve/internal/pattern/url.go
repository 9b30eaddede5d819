package pattern

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// URL returns the URL that the pattern matches with these values: names and values by
// turns, unescaped. A value that a router would not read back is an error.
func (p *Pattern) URL(params []string) (*url.URL, error) {
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
		part, err := p.part(i, given)
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
func (p *Pattern) part(i int, given map[string]string) (string, error) {
	s := &p.Segments[i]
	switch {
	case s.Kind == Literal && s.Text == "/" && i == len(p.Segments)-1:
		return "", nil
	case s.Kind == Literal:
		return Escape(s.Spelt), nil
	case s.Text == "":
		return "", nil
	}
	value, ok := given[s.Text]
	switch {
	case !ok:
		return "", fmt.Errorf("%q is missing", s.Text)
	case s.Kind == Multi && !IsClean(value):
		return "", fmt.Errorf("value %q of %q has an empty or a dot segment", value, s.Text)
	case s.Kind == Multi:
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

// Respell returns a percent-encoded path that the pattern matches with the literals as
// they were written, or nil if that is what it is.
func (p *Pattern) Respell(path string) *url.URL {
	segs := strings.Split(path[1:], "/")
	changed := false
	for i, s := range p.Segments {
		if s.Kind == Literal && s.Text != "/" && Unescape(segs[i]) != s.Spelt {
			segs[i], changed = url.PathEscape(s.Spelt), true
		}
	}
	if !changed {
		return nil
	}
	return fromEscaped("/" + strings.Join(segs, "/"))
}

// fromEscaped returns the URL of a percent-encoded path.
func fromEscaped(path string) *url.URL {
	return &url.URL{Path: Unescape(path), RawPath: path}
}
