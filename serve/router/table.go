package router

import (
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/tarehq/tare/serve/internal/sys"
)

// table is a router's routes made ready to be served. It does not change.
type table struct {
	hosts map[string]*tree // nil: no pattern names a host
	any   *tree
	deep  int // the most wildcards of a route

	fold, percent bool // literals are folded; some may have a percent sign or slash
	caseRedirect  bool

	notFound, notAllowed http.Handler // notAllowed may be nil
	fields               sys.PathFields
	slabs                sync.Pool // of *slab
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
	t.any.seal()
	for _, tr := range t.hosts {
		tr.seal()
	}
	return t
}

// add adds a route to its host's tree. It shares lists of names, by the names.
func (t *table) add(e *entry, shared map[string]*sys.PathNames) {
	p := e.pattern
	names := p.names()
	key := strings.Join(names, "/")
	if shared[key] == nil {
		shared[key] = t.fields.Names(names)
	}
	t.deep = max(t.deep, p.wildcards())
	t.percent = t.percent || strings.Contains(p.text, "%")
	tr := t.any
	if p.host != "" {
		if t.hosts == nil {
			t.hosts = map[string]*tree{}
		}
		if t.hosts[p.host] == nil {
			t.hosts[p.host] = &tree{root: &node{}}
		}
		tr = t.hosts[p.host]
	}
	tr.add(p, &route{
		text: p.text, handler: e.Handler,
		names: shared[key], n: len(names),
		multi: p.last().kind == multi, unclean: p.unclean(),
		pattern: p,
	})
}

// find returns the handler of a request whose path can be matched as it is, with
// the request's pattern and values set, or nil for one that needs a closer look.
func (t *table) find(r *http.Request) http.Handler {
	path := r.URL.Path
	m := methodOf(r.Method)
	if r.URL.RawPath != "" || m == connect || r.RequestURI == "*" || t.guards(path) {
		return nil
	}
	w := walk{method: m, name: r.Method}
	if t.hosts != nil {
		if tr := t.hosts[hostname(r.Host)]; tr != nil {
			if h, done := t.in(tr, &w, r); done {
				return h
			}
		}
	}
	if h, done := t.in(t.any, &w, r); done {
		return h
	}
	if w.slash || w.refused || path == "" || path[0] != '/' || !isClean(path[1:]) {
		return nil
	}
	r.Pattern = ""
	t.fields.Clear(r)
	return t.notFound
}

// guards tells whether the path holds what the tree stores in another form.
func (t *table) guards(path string) bool {
	return t.percent && strings.IndexByte(path, '%') >= 0 || t.fold && hasUpper(path)
}

// in looks for a route in one tree. It is done if it found one, be it that the
// handler is nil because the path may be redirected instead.
func (t *table) in(tr *tree, w *walk, r *http.Request) (h http.Handler, done bool) {
	path := r.URL.Path
	if l := tr.static.find(path); l != nil {
		if rt := l.route(w.method, w.name); rt != nil && !rt.unclean {
			r.Pattern = rt.text
			t.fields.Clear(r)
			return rt.handler, true
		}
	}
	w.values = t.fields.Room(r, t.deep)
	if w.values != nil {
		rt := w.from(tr.root, path, 0)
		return t.take(rt, w, r)
	}
	s := t.slab()
	w.values = s.free[:t.deep]
	rt := w.from(tr.root, path, 0)
	if rt != nil {
		s.free = s.free[rt.n:]
	}
	t.slabs.Put(s)
	return t.take(rt, w, r)
}

// take hands the match to the request.
func (t *table) take(rt *route, w *walk, r *http.Request) (h http.Handler, done bool) {
	if rt == nil {
		return nil, false
	}
	path := r.URL.Path
	if rt.unclean || w.slash && rt.multi && path[len(path)-1] != '/' {
		return nil, true
	}
	r.Pattern = rt.text
	if rt.n == 0 {
		t.fields.Clear(r)
	} else {
		rt.names.Set(r, w.values[:rt.n:rt.n])
	}
	return rt.handler, true
}

// slab is memory for the values of several requests.
type slab struct {
	free []string
}

const slabSize = 32

func (t *table) slab() *slab {
	s, _ := t.slabs.Get().(*slab)
	if s == nil {
		s = &slab{}
	}
	if len(s.free) < t.deep {
		s.free = make([]string, max(slabSize, t.deep))
	}
	return s
}

// hostname returns a request's host without its port.
func hostname(host string) string {
	if strings.IndexByte(host, ':') < 0 {
		return host
	}
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		return host
	}
	return name
}
