// Package routing has the handlers that stand between a route and its upstreams.
package routing

import (
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Fields are header fields and cookies that a request must have, and the regions of which
// its client must be in one. The value "*" stands for any; no regions do so, too.
type Fields struct {
	Header, Cookie map[string]string
	Regions        []string
}

// none reports whether all requests have them.
func (f *Fields) none() bool { return len(f.Header) == 0 && len(f.Cookie) == 0 && len(f.Regions) == 0 }

// in reports whether a request has them. It finds the client's region if it must.
func (f *Fields) in(r *http.Request, region func(*http.Request) string) bool {
	if len(f.Regions) > 0 && !slices.Contains(f.Regions, region(r)) {
		return false
	}
	for name, want := range f.Header {
		if got := r.Header.Values(name); len(got) == 0 || want != "*" && got[0] != want {
			return false
		}
	}
	for name, want := range f.Cookie {
		if c, err := r.Cookie(name); err != nil || want != "*" && c.Value != want {
			return false
		}
	}
	return true
}

// Choices are handlers of which the first one whose fields a request has answers it. The
// zero value has none.
type Choices struct {
	// Region tells where a request's client is. It is to be set if fields have regions.
	Region func(*http.Request) string

	fields   []Fields
	handlers []http.Handler
}

// Settled reports whether one takes all requests that those before it leave.
func (c *Choices) Settled() bool {
	n := len(c.fields)
	return n > 0 && c.fields[n-1].none()
}

// Add adds a handler.
func (c *Choices) Add(f Fields, h http.Handler) {
	c.fields, c.handlers = append(c.fields, f), append(c.handlers, h)
}

// ServeHTTP refuses paths that a server may resolve to one of another route, whose guard the
// request has not passed.
func (c *Choices) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if hidesDots(r.URL.Path) {
		http.Error(w, "the path has . or .. as a segment, escaped or followed by a parameter", http.StatusBadRequest)
		return
	}
	for i := range c.fields {
		if c.fields[i].in(r, c.Region) {
			c.handlers[i].ServeHTTP(w, r)
			return
		}
	}
	http.NotFound(w, r)
}

// hidesDots reports whether a path, of which routes have resolved the plain dots, has some that
// other programs resolve: /a/%2e%2e/b, /a/..%2fb, /a/..;x/b (Tomcat), /a/..\b (browsers, Windows).
func hidesDots(path string) bool {
	if !strings.Contains(path, "/.") && !strings.Contains(path, `\`) {
		return false
	}
	for segment := range strings.FieldsFuncSeq(path, func(c rune) bool { return c == '/' || c == '\\' }) {
		if segment, _, _ = strings.Cut(segment, ";"); segment == "." || segment == ".." {
			return true
		}
	}
	return false
}

// Plain has its routes answer, but for requests whose path some servers take for one of another route:
// Java's know parameters of each segment (/admin;x/y is /admin/y to them), others take \ for /. Such a
// request would come to the server past the other route's guard.
type Plain struct{ Routes Routes }

// Routes are handlers by patterns, such as *http.ServeMux.
type Routes interface {
	http.Handler
	Handler(*http.Request) (h http.Handler, pattern string)
}

func (p *Plain) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if path := r.URL.Path; (strings.Contains(path, ";") || strings.Contains(path, `\`)) && p.disguised(r) {
		http.Error(w, "the path is another route's to servers that know parameters (;) or take \\ for /", http.StatusBadRequest)
		return
	}
	p.Routes.ServeHTTP(w, r)
}

// disguised reports whether such servers take the path for one of another route.
func (p *Plain) disguised(r *http.Request) bool {
	to, u := *r, *r.URL
	to.URL, u.RawPath = &u, withoutParameters(r.URL.EscapedPath())
	u.Path, _ = url.PathUnescape(u.RawPath) // it could be read before
	_, as := p.Routes.Handler(r)
	_, other := p.Routes.Handler(&to)
	return other != as
}

// withoutParameters returns an escaped path as they understand it.
func withoutParameters(path string) string {
	segments := strings.Split(slashes.Replace(path), "/")
	for i, s := range segments {
		segments[i], _, _ = strings.Cut(s, ";")
	}
	return strings.Join(segments, "/")
}

var slashes = strings.NewReplacer("%5c", "/", "%5C", "/")

// PlainHost returns a host as routes have it. A client may write it in capitals, or with the dot of the
// root behind it: then too it is not to pass by the guard of its route.
func PlainHost(host string) string {
	name, port := host, ""
	if i := strings.LastIndexByte(host, ':'); i >= 0 {
		name, port = host[:i], host[i:]
	}
	if plain := strings.ToLower(strings.TrimSuffix(name, ".")); plain != name {
		return plain + port
	}
	return host
}

// Split gives each handler its share, at random. The zero value has none.
type Split struct {
	below    []int
	total    int
	handlers []http.Handler
}

// Add adds a handler with a weight.
func (s *Split) Add(weight int, h http.Handler) {
	s.total += weight
	s.below, s.handlers = append(s.below, s.total), append(s.handlers, h)
}

// Handler returns the handler if there is one alone, else s.
func (s *Split) Handler() http.Handler {
	if len(s.handlers) == 1 {
		return s.handlers[0]
	}
	return s
}

func (s *Split) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := rand.IntN(s.total)
	for i, below := range s.below {
		if n < below {
			s.handlers[i].ServeHTTP(w, r)
			return
		}
	}
}

// Rewrite changes the beginning of the path. Empty: it takes nothing off, or adds nothing.
type Rewrite struct {
	Strip   string // must be there
	Prepend string // has nothing that is to be escaped
	Next    http.Handler
}

func (s *Rewrite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, plain := strings.CutPrefix(r.URL.Path, s.Strip)
	raw, escaped := strings.CutPrefix(r.URL.RawPath, s.Strip)
	if !plain || r.URL.RawPath != "" && !escaped {
		http.NotFound(w, r)
		return
	}
	to, u := *r, *r.URL
	u.Path = s.Prepend + rooted(path)
	if r.URL.RawPath != "" {
		u.RawPath = s.Prepend + rooted(raw)
	}
	to.URL = &u
	s.Next.ServeHTTP(w, &to)
}

// rooted has a path begin with one slash: with two it would name a host.
func rooted(path string) string { return "/" + strings.TrimLeft(path, "/") }

// Redirect sends requests elsewhere.
type Redirect struct {
	To     string // a URL or a path
	Status int
	Keep   bool // each request's path and query are added to To, which has none of its own
}

func (d *Redirect) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	to := d.To
	if d.Keep {
		to += rooted(r.URL.RequestURI())
	}
	http.Redirect(w, r, to, d.Status)
}

// Fallback answers in an upstream's place.
type Fallback struct {
	Status     int
	Type, Body string
}

func (f *Fallback) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if f.Type != "" {
		w.Header().Set("Content-Type", f.Type)
	}
	w.WriteHeader(f.Status)
	_, _ = w.Write([]byte(f.Body)) // fails when the client has gone
}
