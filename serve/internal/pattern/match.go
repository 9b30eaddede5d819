package pattern

import (
	"net/http"
	"strings"
)

// AnyMatches reports whether a ServeMux would find one of the patterns for r if it had
// no other, redirects aside. It does not fold case, and does not allocate unless the
// path is unclean or percent-encoded.
func AnyMatches(ps []*Pattern, r *http.Request) bool {
	host, path := r.Host, r.URL.EscapedPath()
	if r.Method != http.MethodConnect {
		host, path = Hostname(host), CleanPath(path)
	}
	for _, p := range ps {
		if CompareMethods(p.Method, r.Method).Covers() && compareHosts(p.Host, host).Covers() && p.matchesPath(path) {
			return true
		}
	}
	return false
}

func (p *Pattern) matchesPath(path string) bool {
	for i := range p.Segments {
		if path == "" {
			return false
		}
		s := &p.Segments[i]
		if s.Kind == Multi {
			return true
		}
		var seg string
		seg, path = cutSegment(path)
		seg = Unescape(seg)
		if s.Kind == Literal && seg != s.Text || s.Kind == Wild && (seg == "/" || !s.Check.Allows(seg)) {
			return false
		}
	}
	return path == ""
}

// Values returns the values of the wildcards in a percent-encoded path that the
// pattern matches.
func (p *Pattern) Values(path string) []string {
	var vs []string
	for _, s := range p.Segments {
		if s.Kind == Multi {
			if s.Text != "" {
				vs = append(vs, Unescape(path[1:]))
			}
			break
		}
		var seg string
		seg, path = cutSegment(path)
		if s.Kind == Wild {
			vs = append(vs, Unescape(seg))
		}
	}
	return vs
}

// cutSegment cuts the first segment off a path that begins with a slash. A slash
// alone is a segment, as {$} wants it.
func cutSegment(path string) (seg, rest string) {
	if path == "/" {
		return "/", ""
	}
	path = path[1:]
	if i := strings.IndexByte(path, '/'); i >= 0 {
		return path[:i], path[i:]
	}
	return path, ""
}
