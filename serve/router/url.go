package router

import (
	"fmt"
	"net/url"
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
	u, err := e.pattern.URL(params)
	if err != nil {
		return nil, fmt.Errorf("building a URL of %q: %w", e.Pattern, err)
	}
	return u, nil
}
