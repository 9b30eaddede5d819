package router

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/tarehq/tare/serve/internal/pattern"
)

// Group adds routes to a router whose patterns begin with a prefix and whose
// handlers are wrapped in middlewares. It is safe for concurrent use.
//
// In a group, the path of a pattern may be missing: "GET" is the prefix itself.
type Group struct {
	rt     *Router
	prefix string // without a last slash
	names  string // goes before the names of routes
	with   []func(http.Handler) http.Handler
}

// Group returns a group within the group. The prefix is [HOST]/PATH, where PATH may
// have wildcards, or empty. It panics if the prefix is invalid or a middleware nil.
//
// The middlewares are called once for each route, when it is added.
func (g *Group) Group(prefix string, with ...func(http.Handler) http.Handler) *Group {
	prefix, err := g.extend(prefix)
	if err != nil {
		panic(fmt.Errorf("making a group: %w", err))
	}
	for i, mw := range with {
		if mw == nil {
			panic(fmt.Errorf("making a group: middleware %d of %d is nil", i+1, len(with)))
		}
	}
	all := append(g.with[:len(g.with):len(g.with)], with...)
	return &Group{g.rt, prefix, g.names, all}
}

// Named returns the group with prefix before the names of its routes, behind that
// of the group itself. So a router whose routes have names can be mounted twice:
//
//	rt.Group("/v1").Named("v1.").Mount("/api", api)
//	rt.Group("/v2").Named("v2.").Mount("/api", api)
//	rt.URL("v2.user", "id", "7") // /v2/api/users/7
func (g *Group) Named(prefix string) *Group {
	return &Group{g.rt, g.prefix, g.names + prefix, g.with}
}

// Handle adds a route as [Router.Handle] does.
func (g *Group) Handle(pattern string, h http.Handler) {
	if err := g.Add(Route{Pattern: pattern, Handler: h}); err != nil {
		panic(err)
	}
}

// HandleFunc adds a route as [Router.Handle] does.
func (g *Group) HandleFunc(pattern string, h func(http.ResponseWriter, *http.Request)) {
	g.Handle(pattern, http.HandlerFunc(h))
}

// Add adds a route as [Router.Add] does.
func (g *Group) Add(r Route) error {
	r, err := g.complete(r)
	if err != nil {
		return err
	}
	return g.rt.add([]Route{r})
}

// complete returns a route as the router is to have it: with its whole pattern and
// name, its place, and its handler wrapped.
func (g *Group) complete(r Route) (Route, error) {
	pattern, err := join(g.prefix, r.Pattern)
	if err != nil {
		return r, err
	}
	r.Pattern = pattern
	if r.Name != "" {
		r.Name = g.names + r.Name
	}
	if r.Location == "" {
		r.Location = location()
	}
	if none(r.Handler) {
		return r, fmt.Errorf("adding %q: handler is nil", pattern)
	}
	for i := len(g.with) - 1; i >= 0; i-- {
		if r.Handler = g.with[i](r.Handler); none(r.Handler) {
			return r, fmt.Errorf("adding %q: middleware %d of %d returns no handler", pattern, i+1, len(g.with))
		}
	}
	return r, nil
}

// none reports whether h is nil, be it as a function.
func none(h http.Handler) bool {
	f, ok := h.(http.HandlerFunc)
	return h == nil || ok && f == nil
}

// Mount adds the routes that sub has at this moment, with prefix before their
// paths and wrapped in the group's middlewares. They become routes of this
// router: found at once, with the values of the prefix's wildcards and their
// own, and in conflict with others as any. What sub does with requests that no
// route matches is left behind, and so is its policy on case. Requests keep
// their whole path. Mount panics as Handle does, also if a name is there already
// (see Named); then none of sub's routes is added.
func (g *Group) Mount(prefix string, sub *Router) {
	under := g.Group(prefix)
	var routes []Route
	var err error
	for r := range sub.Routes() {
		if r, err = under.complete(r); err != nil {
			break
		}
		routes = append(routes, r)
	}
	if err == nil {
		err = g.rt.add(routes)
	}
	if err != nil {
		panic(fmt.Errorf("mounting at %q: %w", prefix, err))
	}
}

// extend returns the group's prefix with another behind it.
func (g *Group) extend(prefix string) (string, error) {
	if prefix == "" {
		return g.prefix, nil
	}
	p, err := pattern.Parse(prefix, false)
	if err != nil {
		return "", fmt.Errorf("prefix %q: %w", prefix, err)
	}
	switch last := p.Last(); {
	case p.Method != "":
		return "", fmt.Errorf("prefix %q has a method", prefix)
	case last.Kind == pattern.Multi && last.Text == "" && len(p.Segments) == 1: // "/" or "HOST/"
		joined, err := join(g.prefix, prefix) // with its slash: a host without one would be a method
		return strings.TrimSuffix(joined, "/"), err
	case last.Kind == pattern.Multi || last.Kind == pattern.Literal && last.Text == "/":
		return "", fmt.Errorf("prefix %q ends in %s, behind which no path can follow", prefix, prefix[strings.LastIndexByte(prefix, '/'):])
	}
	return join(g.prefix, prefix)
}

// join puts a prefix before the path of a pattern.
func join(prefix, pattern string) (string, error) {
	if prefix == "" {
		return pattern, nil
	}
	method, rest := "", pattern
	if i := strings.IndexAny(pattern, " \t"); i >= 0 {
		method, rest = pattern[:i], strings.TrimLeft(pattern[i:], " \t")
	} else if !strings.Contains(pattern, "/") {
		method, rest = pattern, ""
	}
	host, path := rest, ""
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		host, path = rest[:i], rest[i:]
	}
	if host != "" && prefix[0] != '/' {
		return "", fmt.Errorf("pattern %q has a host, and so has the prefix %q", pattern, prefix)
	}
	if method != "" {
		method += " "
	}
	if host == "" && path == "" && !strings.Contains(prefix, "/") {
		return "", errors.New("pattern has no path")
	}
	return method + host + prefix + path, nil
}
