package pattern_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/tarehq/tare/serve/internal/pattern"
)

// FuzzCompare holds what Compare says of two patterns against one request. That patterns
// are valid where a ServeMux says so, and find what it finds, is tested by packages
// router and chain.
func FuzzCompare(f *testing.F) {
	for _, seed := range [][3]string{
		{"GET /u/{id}", "/u/", "/u/7"},
		{"/{a}/b", "a.org/a/{b}", "/a/b"},
		{"/u/{id:int}", "HEAD /u/{n:[0-9]+}", "/u/7"},
		{"/u/{id:alpha}", "/u/{n:int}", "/u/-1"},
		{"/a%2Fb/{$}", "/{x}/{y...}", "/a%2Fb/"},
		{"/{$}", "/", "/%2F"},
		{"/{x:.}/", "/{x:[^a]}/{y}", "/é/%2e"},
	} {
		f.Add(seed[0], seed[1], "GET", "a.org:80", seed[2])
	}
	f.Fuzz(func(t *testing.T, first, second, method, host, target string) {
		u, err := url.ParseRequestURI(target)
		p, err1 := pattern.Parse(first, false)
		q, err2 := pattern.Parse(second, false)
		if err != nil || err1 != nil || err2 != nil || len(first)+len(second) > 60 {
			return // a large repetition of repetitions takes its time
		}
		r := &http.Request{Method: method, Host: host, URL: u}
		byFirst, bySecond := pattern.AnyMatches([]*pattern.Pattern{p}, r), pattern.AnyMatches([]*pattern.Pattern{q}, r)
		rel := pattern.Compare(p, q)
		var ok bool
		switch rel {
		case pattern.Same:
			ok = byFirst == bySecond
		case pattern.Wider:
			ok = byFirst || !bySecond
		case pattern.Narrower:
			ok = bySecond || !byFirst
		case pattern.Disjoint:
			ok = !byFirst || !bySecond
		case pattern.Overlaps:
			ok = true
		}
		if !ok {
			t.Errorf("%q to %q is relation %d, but %s %s%s is matched by the first: %t, by the second: %t",
				first, second, rel, method, host, target, byFirst, bySecond)
		}
		if pattern.Compare(q, p) != map[pattern.Relation]pattern.Relation{
			pattern.Same: pattern.Same, pattern.Wider: pattern.Narrower, pattern.Narrower: pattern.Wider,
			pattern.Overlaps: pattern.Overlaps, pattern.Disjoint: pattern.Disjoint,
		}[rel] {
			t.Errorf("%q to %q is relation %d, the other way round %d", first, second, rel, pattern.Compare(q, p))
		}
	})
}
