package router

import (
	"net/http"
	"strings"

	"github.com/tarehq/tare/serve/internal/pattern"
	"github.com/tarehq/tare/serve/internal/sys"
)

// table is a router's routes made ready to be served. It does not change.
type table struct {
	hosts map[string]*tree // nil: no pattern names a host
	any   *tree
	deep  int // the most wildcards of a route

	fold, percent bool // literals are folded; some may have a percent sign or slash
	guarded       bool // one of them
	caseRedirect  bool

	notFound, notAllowed http.Handler // notAllowed may be nil
	fields               sys.PathFields
	memory               memory
}

func newTable(rt *Router) *table {
	t := &table{
		any:          &tree{root: &node{}},
		fold:         rt.Case != CaseExact,
		caseRedirect: rt.Case == CaseRedirect,
		notFound:     rt.NotFound,
		notAllowed:   rt.MethodNotAllowed,
		fields:       sys.FindPathFields(),
	}
	if t.notFound == nil {
		t.notFound = http.NotFoundHandler()
	}
	names := map[string]*sys.PathNames{}
	for _, e := range rt.entries {
		t.add(e, names)
	}
	t.guarded = t.fold || t.percent
	return t
}

// add adds a route to its host's tree. It shares lists of names, by the names.
func (t *table) add(e *entry, shared map[string]*sys.PathNames) {
	p := e.pattern
	names := p.Names()
	key := strings.Join(names, "/")
	if shared[key] == nil {
		shared[key] = t.fields.Names(names)
	}
	t.deep = max(t.deep, p.Wildcards())
	t.percent = t.percent || strings.Contains(p.Text, "%")
	tr := t.any
	if p.Host != "" {
		if t.hosts == nil {
			t.hosts = map[string]*tree{}
		}
		if t.hosts[p.Host] == nil {
			t.hosts[p.Host] = &tree{root: &node{}}
		}
		tr = t.hosts[p.Host]
	}
	tr.add(p, &route{
		text: p.Text, handler: e.Handler,
		names: *shared[key], n: len(names),
		multi: p.Last().Kind == pattern.Multi, slow: p.Unclean() || t.caseRedirect && p.HasUpper(),
		pattern: p,
	})
}

// find returns the handler of a request whose path can be matched as it is, with
// the request's pattern and values set, or nil for one that needs a closer look.
func (t *table) find(r *http.Request) http.Handler {
	path := r.URL.Path
	m := methodOf(r.Method)
	if path == "" || path[0] != '/' || r.URL.RawPath != "" || m == connect || r.RequestURI == "*" || t.guarded && t.guards(path) {
		return nil
	}
	if t.hosts == nil {
		// Before all that only values need: .75 of the time for the static table
		// (BenchmarkRoutersRatio of arms/rivals).
		if rt := t.any.static.route(path, m, r.Method); rt != nil && !rt.slow {
			r.Pattern = rt.text
			t.fields.Clear(r)
			return rt.handler
		}
	}
	var buf [onStack]string
	w := walk{method: m, name: r.Method}
	room := t.fields.Room(r, t.deep)
	switch {
	case room != nil:
		w.values = room
	case t.deep <= len(buf):
		w.values = buf[:]
	default:
		w.values = make([]string, t.deep)
	}
	var rt *route
	if t.hosts == nil {
		rt = w.from(t.any.root, path[1:], 0)
	} else {
		rt = t.matchByHost(&w, r)
	}
	if rt == nil {
		return t.miss(&w, r)
	}
	if rt.slow || w.slash && rt.multi && path[len(path)-1] != '/' {
		return nil
	}
	r.Pattern = rt.text
	if rt.n == 0 {
		t.fields.Clear(r)
		return rt.handler
	}
	if room == nil {
		room = t.keep(r, w.values[:rt.n])
	}
	rt.names.Set(r, room[:rt.n:rt.n])
	return rt.handler
}

// onStack is how many values a match holds on the stack.
const onStack = 8

// ask tells the server of r that its next requests want room for path values. No
// more is known of a server than that its context says it could. It is asked for each
// piece of memory, not for each request: that is .97 of the time of a route with values.
func (t *table) ask(r *http.Request) {
	if s, ok := r.Context().(interface{ WantPathRoom() }); ok && t.deep <= sys.PathRoom {
		s.WantPathRoom()
	}
}

// matchByHost looks for a route for the host, then for one for any.
func (t *table) matchByHost(w *walk, r *http.Request) *route {
	if tr := t.hosts[pattern.Hostname(r.Host)]; tr != nil {
		if rt := tr.match(w, r.URL.Path); rt != nil {
			return rt
		}
	}
	return t.any.match(w, r.URL.Path)
}

func (t *tree) match(w *walk, path string) *route {
	if rt := t.static.route(path, w.method, w.name); rt != nil {
		return rt
	}
	return w.from(t.root, path[1:], 0)
}

// miss returns what answers a request that no route matches as its path stands,
// or nil if a path near to it, or another method, may match.
func (t *table) miss(w *walk, r *http.Request) http.Handler {
	if w.slash || w.refused || !pattern.IsClean(r.URL.Path[1:]) {
		return nil
	}
	r.Pattern = ""
	t.fields.Clear(r)
	return t.notFound
}

// guards reports whether the path holds what the tree stores in another form.
func (t *table) guards(path string) bool {
	return t.percent && strings.IndexByte(path, '%') >= 0 || t.fold && pattern.HasUpper(path)
}
