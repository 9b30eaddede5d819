package chain

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
)

// pattern is a pattern of http.ServeMux: [METHOD ][HOST]/[PATH].
type pattern struct {
	text         string
	method, host string // "" is any
	segs         []segment
}

// segment is what a pattern wants between two slashes.
type segment struct {
	kind kind
	text string // of a literal; "/" is the end after a slash, as {$} wants it
}

type kind uint8

const (
	literal kind = iota
	one          // {name}: any segment
	rest         // {name...} or a slash at the end: all that follows
	below        // the end, or a slash and all that follows
)

// parse reads a pattern. What is one is said by http.ServeMux itself, which
// takes no other.
func parse(text string) (p *pattern, err error) {
	defer func() {
		if v := recover(); v != nil {
			p, err = nil, fmt.Errorf("%v", v)
		}
	}()
	http.NewServeMux().Handle(text, http.NotFoundHandler())
	p = &pattern{text: text}
	where := text
	if i := strings.IndexAny(text, " \t"); i >= 0 {
		p.method, where = text[:i], strings.TrimLeft(text[i:], " \t")
	}
	slash := strings.IndexByte(where, '/')
	p.host, where = where[:slash], where[slash:]
	for where != "" {
		var seg string
		seg, where = cut(where)
		p.segs = append(p.segs, segmentOf(seg))
	}
	return p, nil
}

// cut cuts the first segment off a path that begins with a slash. A slash alone
// is a segment.
func cut(path string) (seg, more string) {
	if path == "/" {
		return "/", ""
	}
	path = path[1:]
	if i := strings.IndexByte(path, '/'); i >= 0 {
		return path[:i], path[i:]
	}
	return path, ""
}

func segmentOf(s string) segment {
	wild := strings.HasPrefix(s, "{")
	switch {
	case s == "/", wild && strings.HasSuffix(s, "...}"):
		return segment{kind: rest}
	case s == "{$}":
		return segment{text: "/"}
	case s == "", wild:
		return segment{kind: one} // http.ServeMux finds /a//b for /a/x/b, too
	}
	return segment{text: unescape(s)}
}

// unescape leaves alone what is not escaped rightly, as http.ServeMux does.
func unescape(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	u, err := url.PathUnescape(s)
	if err != nil {
		return s
	}
	return u
}

// under makes of a pattern's path all that is at or below it.
func (p *pattern) under() error {
	if p.method != "" || p.host != "" {
		return errors.New("a path has neither method nor host; see Route")
	}
	if cleanPath(p.text) != p.text {
		return errors.New("path is not clean, as the paths of requests are made")
	}
	last := len(p.segs) - 1
	if s := p.segs[last]; s.kind == rest || s == (segment{text: "/"}) {
		p.segs = p.segs[:last] // a slash at the end changes nothing
	}
	p.segs = append(p.segs, segment{kind: below})
	return nil
}

// matches reports whether http.ServeMux would find the pattern for r if it had
// no other, redirects aside. It allocates only for a path that needs cleaning
// or unescaping.
func (p *pattern) matches(r *http.Request) bool {
	if p.method != "" && !covers(p.method, r.Method) {
		return false
	}
	if p.host != "" && p.host != hostname(r) {
		return false
	}
	return p.matchesPath(pathOf(r))
}

func (p *pattern) matchesPath(path string) bool {
	for _, s := range p.segs {
		if s.kind == below {
			return true
		}
		if path == "" {
			return false
		}
		if s.kind == rest {
			return true
		}
		var seg string
		seg, path = cut(path)
		seg = unescape(seg)
		if s.kind == one && seg == "/" || s.kind == literal && seg != s.text {
			return false
		}
	}
	return path == ""
}

// covers reports whether a pattern's method stands for a request's.
func covers(pattern, method string) bool {
	return pattern == method || pattern == http.MethodGet && method == http.MethodHead
}

// pathOf returns the escaped path of r, as clean as http.ServeMux makes it:
// /x/../admin and //admin are /admin to a layer that guards it.
func pathOf(r *http.Request) string {
	p := r.URL.EscapedPath()
	if r.Method == http.MethodConnect {
		return p
	}
	return cleanPath(p)
}

// cleanPath returns p beginning with a slash, without empty and dot segments; a
// slash at the end stays.
func cleanPath(p string) string {
	if clean(p) {
		return p
	}
	if p == "" || p[0] != '/' {
		p = "/" + p
	}
	c := path.Clean(p)
	if c != "/" && p[len(p)-1] == '/' {
		c += "/"
	}
	return c
}

// clean reports whether path.Clean would surely leave p as it is but for a
// slash at the end.
func clean(p string) bool {
	return p != "" && p[0] == '/' && !strings.Contains(p, "//") && !strings.Contains(p, "/.")
}

// hostname returns the host that r asks for, without the port.
func hostname(r *http.Request) string {
	if r.Method == http.MethodConnect || !strings.Contains(r.Host, ":") {
		return r.Host
	}
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		return r.Host
	}
	return host
}

// over tells whether p matches what route does: yes, all of it; no, none.
func (p *pattern) over(route *pattern) truth {
	t := overPath(p.segs, route.segs)
	if p.host != "" && p.host != route.host {
		t = t.and(truthOf(false, route.host == ""))
	}
	return t.and(overMethod(p.method, route.method))
}

// overMethod compares methods, of which "" is any.
func overMethod(want, route string) truth {
	switch {
	case want == "" || route != "" && covers(want, route):
		return yes
	case route == "" || covers(route, want):
		return unknown
	}
	return no
}

// overPath compares the segments that are wanted with a route's.
func overPath(want, route []segment) truth {
	t := yes
	for i := 0; ; i++ {
		switch {
		case i < len(want) && want[i].kind == below:
			return t
		case i == len(route):
			return t.and(truthOf(i == len(want), false))
		case i < len(want) && want[i].kind == rest:
			return t
		case i == len(want):
			return no // routes go on
		case route[i].kind == rest:
			return unknown
		}
		t = t.and(overSegment(want[i], route[i]))
		if t == no {
			return no
		}
	}
}

func overSegment(want, route segment) truth {
	end := segment{text: "/"}
	switch {
	case want.kind == one:
		return truthOf(route != end, false)
	case route.kind == one:
		return truthOf(false, want != end)
	}
	return truthOf(want == route, false)
}
