package router

import (
	"fmt"
	"iter"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tarehq/tare/serve/internal/pattern"
)

// Router is a table of routes that serves requests. Its zero value has no
// routes and is ready to use.
//
// All methods are safe for concurrent use, also while requests are served: a
// request is matched against all the routes of one moment. The fields must be
// set before the first route is added. A Router must not be copied.
type Router struct {
	// NotFound answers requests that no route matches. Nil: http.NotFound.
	NotFound http.Handler

	// MethodNotAllowed answers requests whose path only routes for other
	// methods match; these methods are in the header Allow of the answer by
	// then. Nil: status 405 and a line of text, as a ServeMux answers.
	MethodNotAllowed http.Handler

	// Case says whether paths must be spelt as the routes are. Zero: yes.
	Case Case

	mu      sync.Mutex
	entries []*entry          // in the order in which they were added
	index   map[string]*index // by host
	named   map[string]*entry
	table   atomic.Pointer[table] // nil: to be made from entries
}

// Case is a policy on upper and lower case in the literal parts of paths. Only
// the letters A to Z are ever taken for their lower-case counterparts; values of
// wildcards always stay as the client spelt them, and so do hosts and methods.
type Case uint8

const (
	CaseExact    Case = iota // a path matches as it is spelt
	CaseFold                 // case does not matter
	CaseRedirect             // the client is sent, with status 307, to the spelling of the route
)

// Route is a row of a router's table.
type Route struct {
	Pattern string
	Handler http.Handler
	Name    string // for building URLs; empty: none. Unique in a router.

	// Location is where the route was added, as file:line, for messages about
	// conflicts. Empty in a route to be added: where Add is called from.
	Location string
}

// entry is a route that was added.
type entry struct {
	Route
	pattern *pattern.Pattern
}

// Handle adds a route. It panics if the pattern is invalid or conflicts with
// that of another route, or the handler is nil; Add returns that as an error.
func (rt *Router) Handle(pattern string, h http.Handler) { rt.all().Handle(pattern, h) }

// HandleFunc adds a route as Handle does.
func (rt *Router) HandleFunc(pattern string, h func(http.ResponseWriter, *http.Request)) {
	rt.all().HandleFunc(pattern, h)
}

// Add adds a route. If its pattern conflicts with another's, the error is a
// *ConflictError and the router stays as it was.
func (rt *Router) Add(r Route) error { return rt.all().Add(r) }

// Group returns a group of routes whose patterns begin with prefix and whose
// handlers are wrapped in the middlewares, the first being the outermost.
func (rt *Router) Group(prefix string, with ...func(http.Handler) http.Handler) *Group {
	return rt.all().Group(prefix, with...)
}

// Mount adds the routes that sub has at this moment, with prefix before their
// paths, or panics and adds none of them. See [Group.Mount].
func (rt *Router) Mount(prefix string, sub *Router) { rt.all().Mount(prefix, sub) }

// all returns the group of all routes.
func (rt *Router) all() *Group { return &Group{rt: rt} }

// Routes iterates over the routes in the order in which they were added. The
// patterns are complete and the handlers wrapped in the middlewares of their
// groups.
func (rt *Router) Routes() iter.Seq[Route] {
	return func(yield func(Route) bool) {
		for _, e := range rt.snapshot() {
			if !yield(e.Route) {
				return
			}
		}
	}
}

// snapshot returns the entries of this moment; there is only ever appended to
// them.
func (rt *Router) snapshot() []*entry {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return rt.entries
}

// ServeHTTP serves a request by the most specific route that matches it, with
// Request.Pattern and Request.PathValue set, and otherwise answers as a
// ServeMux does: by a redirect, status 405 or status 404.
func (rt *Router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	t := rt.table.Load()
	if t == nil {
		t = rt.compile()
	}
	if h := t.find(r); h != nil {
		h.ServeHTTP(w, r)
		return
	}
	t.serveSlowly(w, r)
}

// Handler returns the handler that would serve r, and the pattern of its route.
// A redirect comes with the pattern of the route that it leads to, status 404 and
// 405 with none. It does not change r.
func (rt *Router) Handler(r *http.Request) (h http.Handler, pattern string) {
	t := rt.table.Load()
	if t == nil {
		t = rt.compile()
	}
	a := t.resolve(r)
	return a.handler, a.pattern
}

// add adds routes whose patterns are complete: all of them or, with an error, none.
func (rt *Router) add(routes []Route) error {
	entries := make([]*entry, 0, len(routes))
	for _, r := range routes {
		p, err := pattern.Parse(r.Pattern, rt.Case != CaseExact)
		if err != nil {
			return fmt.Errorf("parsing %q: %w", r.Pattern, err)
		}
		entries = append(entries, &entry{r, p})
	}

	rt.mu.Lock()
	defer rt.mu.Unlock()
	before := rt.entries
	for _, e := range entries {
		if err := rt.againstLocked(e); err != nil {
			rt.restoreLocked(before)
			return err
		}
		rt.putLocked(e)
	}
	rt.table.Store(nil)
	return nil
}

// againstLocked returns what stands against adding e.
func (rt *Router) againstLocked(e *entry) error {
	if other := rt.named[e.Name]; other != nil {
		return fmt.Errorf("pattern %q (%s): the name %q is that of %q (%s); Group.Named puts a prefix before names", e.Pattern, e.Location, e.Name, other.Pattern, other.Location)
	}
	if x := rt.index[e.pattern.Host]; x != nil {
		if other := x.conflict(e); other != nil {
			return newConflict(e, other)
		}
	}
	return nil
}

func (rt *Router) putLocked(e *entry) {
	if rt.index == nil {
		rt.index, rt.named = map[string]*index{}, map[string]*entry{}
	}
	x := rt.index[e.pattern.Host]
	if x == nil {
		x = &index{}
		rt.index[e.pattern.Host] = x
	}
	x.add(e, len(rt.entries))
	if e.Name != "" {
		rt.named[e.Name] = e
	}
	rt.entries = append(rt.entries, e)
}

// restoreLocked has the router hold these entries and no others.
func (rt *Router) restoreLocked(entries []*entry) {
	rt.entries, rt.index, rt.named = nil, nil, nil
	for _, e := range entries {
		rt.putLocked(e)
	}
}

// compile makes the table from the entries.
func (rt *Router) compile() *table {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	t := rt.table.Load()
	if t == nil {
		t = newTable(rt)
		rt.table.Store(t)
	}
	return t
}

// location returns the file and line of the first caller outside this package.
func location() string {
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		if !strings.Contains(f.Function, "/serve/router.") {
			return fmt.Sprintf("%s:%d", f.File, f.Line)
		}
		if !more {
			return "unknown location"
		}
	}
}
