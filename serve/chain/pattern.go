package chain

import (
	"errors"
	"slices"

	"github.com/tarehq/tare/serve/internal/pattern"
)

// parse reads a pattern of http.ServeMux, which takes an empty segment for a
// wildcard: it finds /a//b for /a/x/b.
func parse(text string) (*pattern.Pattern, error) {
	p, err := pattern.Parse(text, false)
	if err != nil {
		return nil, err
	}
	for i, s := range p.Segments {
		if s.Kind == pattern.Literal && s.Text == "" {
			p.Segments[i].Kind = pattern.Wild
		}
	}
	return p, nil
}

// parseUnder reads a path and returns patterns of what is at or below it.
func parseUnder(path string) ([]*pattern.Pattern, error) {
	p, err := parse(path)
	switch {
	case err != nil:
		return nil, err
	case p.Method != "" || p.Host != "":
		return nil, errors.New("a path has neither method nor host; see Route")
	case pattern.CleanPath(path) != path:
		return nil, errors.New("path is not clean, as the paths of requests are made")
	}
	at, below := *p, *p
	if last := p.Last(); last.Kind == pattern.Multi || last.Text == "/" { // a slash at the end changes nothing
		at.Segments = p.Segments[:len(p.Segments)-1]
	}
	below.Segments = append(slices.Clip(at.Segments), pattern.Segment{Kind: pattern.Multi})
	if len(at.Segments) == 0 { // all is below the root
		return []*pattern.Pattern{&below}, nil
	}
	return []*pattern.Pattern{&at, &below}, nil
}

// truthOfRelation tells what is known beforehand of requests if a condition's part
// relates so to their route's.
func truthOfRelation(r pattern.Relation) truth {
	return truthOf(r.Covers(), r != pattern.Disjoint)
}
