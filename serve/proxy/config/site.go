package config

import (
	"maps"
	"math/rand/v2"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tarehq/tare/serve/client/transport"
	"github.com/tarehq/tare/serve/proxy"
	"github.com/tarehq/tare/serve/router"
)

// Site serves what a file says, and then what the next one does. Requests that have begun
// are served by the one that was there. It is safe for concurrent use; its zero value
// answers 503.
type Site struct {
	router atomic.Pointer[router.Router]

	mu      sync.Mutex
	file    *File
	entries map[string]*entry
	former  []*proxy.Handler // of upstreams that are gone, as long as they have tunnels
}

// entry is an upstream that requests are passed on to.
type entry struct {
	u         Upstream
	pool      *proxy.Pool
	handler   *proxy.Handler
	transport *transport.Transport
}

// ServeHTTP serves a request by the file that was taken last.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rt := s.router.Load()
	if rt == nil {
		http.Error(w, http.StatusText(http.StatusServiceUnavailable), http.StatusServiceUnavailable)
		return
	}
	rt.ServeHTTP(w, r)
}

// Take has the site serve what a file says. Upstreams whose settings stay keep their
// connections and what is known of their servers, also if these change. With an error all
// stays as it was.
func (s *Site) Take(f *File) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := map[string]*entry{}
	var fresh []*entry
	for name, u := range f.Upstreams {
		if old := s.entries[name]; old != nil && s.keeps(old, u, f) {
			next[name] = &entry{u, old.pool, old.handler, old.transport}
			continue
		}
		e, err := newEntry(u, f)
		if err != nil {
			closeAll(fresh)
			return err
		}
		next[name] = e
		fresh = append(fresh, e)
	}
	rt, problem := f.router(func(r Route) http.Handler { return r.handler(next) })
	if problem != nil {
		closeAll(fresh)
		return problem
	}
	for _, e := range next {
		if err := e.pool.Set(e.u.Servers); err != nil { // Parse has looked at them
			closeAll(fresh)
			return err
		}
	}
	old := s.entries
	s.router.Store(rt)
	s.file, s.entries = f, next
	for name, e := range old {
		if next[name] == nil || next[name].pool != e.pool {
			closeAll([]*entry{e})
			s.former = append(s.former, e.handler)
		}
	}
	return nil
}

// keeps reports whether an upstream is the same but for its servers.
func (s *Site) keeps(old *entry, u Upstream, f *File) bool {
	was := old.u
	was.Servers, u.Servers = nil, nil
	return reflect.DeepEqual(was, u) && s.file.Name == f.Name && s.file.Forwarded == f.Forwarded && reflect.DeepEqual(s.file.Trusted, f.Trusted)
}

func newEntry(u Upstream, f *File) (*entry, error) {
	pool, err := proxy.NewPool(u.pool())
	if err != nil {
		return nil, err
	}
	o := u.handler(f, pool)
	t := proxy.NewTransport(u.Timeout)
	o.Transport = t
	h, err := proxy.New(o)
	if err != nil {
		pool.Close()
		return nil, err
	}
	return &entry{u, pool, h, t}, nil
}

// closeAll ends what upstreams that are gone do of themselves.
func closeAll(all []*entry) {
	for _, e := range all {
		e.pool.Close()
		e.transport.CloseIdleConnections()
	}
}

// Tunnels returns how many upgraded connections are open.
func (s *Site) Tunnels() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, e := range s.entries {
		n += e.handler.Tunnels()
	}
	var open []*proxy.Handler
	for _, h := range s.former {
		if h.Tunnels() > 0 {
			n += h.Tunnels()
			open = append(open, h)
		}
	}
	s.former = open
	return n
}

// Status returns what is known of the upstreams' servers, by upstream.
func (s *Site) Status() map[string][]proxy.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string][]proxy.Status{}
	for name, e := range s.entries {
		all[name] = e.pool.Status()
	}
	return all
}

// Close ends what the site does of itself.
func (s *Site) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := range maps.Values(s.entries) {
		closeAll([]*entry{e})
	}
}

// router returns the routes, each with its handler.
func (f *File) router(handler func(Route) http.Handler) (*router.Router, *Problem) {
	byPattern := map[string]*choices{}
	var order []string
	at := map[string]int{}
	for i, r := range f.Routes {
		h := handler(r)
		for _, pattern := range r.patterns() {
			c := byPattern[pattern]
			if c == nil {
				c = &choices{}
				byPattern[pattern], at[pattern] = c, i
				order = append(order, pattern)
			}
			if c.settled {
				return nil, problemAt(i, "an earlier route takes all requests for "+pattern)
			}
			c.add(r, h)
		}
	}
	rt := &router.Router{}
	for _, pattern := range order {
		if err := rt.Add(router.Route{Pattern: pattern, Handler: byPattern[pattern], Location: "routes[" + strconv.Itoa(at[pattern]) + "]"}); err != nil {
			return nil, problemAt(at[pattern], err.Error())
		}
	}
	return rt, nil
}

func problemAt(route int, text string) *Problem {
	return &Problem{Path: "routes[" + strconv.Itoa(route) + "].path", Text: text}
}

// patterns are the route's, as package router writes them.
func (r Route) patterns() []string {
	if len(r.Methods) == 0 {
		return []string{r.Host + r.Path}
	}
	var all []string
	for _, m := range r.Methods {
		all = append(all, m+" "+r.Host+r.Path)
	}
	return all
}

// choices are the routes with one pattern.
type choices struct {
	routes   []Route
	handlers []http.Handler
	settled  bool // the last one takes all requests
}

func (c *choices) add(r Route, h http.Handler) {
	c.routes, c.handlers = append(c.routes, r), append(c.handlers, h)
	c.settled = len(r.Header) == 0 && len(r.Cookie) == 0
}

func (c *choices) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for i := range c.routes {
		if c.routes[i].takes(r) {
			c.handlers[i].ServeHTTP(w, r)
			return
		}
	}
	http.NotFound(w, r)
}

// takes reports whether a request has the fields that the route wants.
func (r *Route) takes(req *http.Request) bool {
	for name, want := range r.Header {
		if got := req.Header.Values(name); len(got) == 0 || want != "*" && got[0] != want {
			return false
		}
	}
	for name, want := range r.Cookie {
		if c, err := req.Cookie(name); err != nil || want != "*" && c.Value != want {
			return false
		}
	}
	return true
}

// handler returns what becomes of the route's requests.
func (r Route) handler(entries map[string]*entry) http.Handler {
	if len(r.Split) == 0 {
		return http.RedirectHandler(r.Location, r.Status)
	}
	s := &split{}
	for _, share := range r.Split {
		s.total += share.Weight
		s.below = append(s.below, s.total)
		s.handlers = append(s.handlers, entries[share.Upstream].handler)
	}
	var h http.Handler = s
	if len(s.handlers) == 1 {
		h = s.handlers[0]
	}
	if r.Strip != "" {
		return &strip{r.Strip, h}
	}
	return h
}

// split gives each upstream its share, at random.
type split struct {
	below    []int
	total    int
	handlers []http.Handler
}

func (s *split) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := rand.IntN(s.total)
	for i, below := range s.below {
		if n < below {
			s.handlers[i].ServeHTTP(w, r)
			return
		}
	}
}

// strip takes a prefix off the path.
type strip struct {
	prefix string
	next   http.Handler
}

func (s *strip) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, raw := strings.TrimPrefix(r.URL.Path, s.prefix), strings.TrimPrefix(r.URL.RawPath, s.prefix)
	if len(path) == len(r.URL.Path) || r.URL.RawPath != "" && len(raw) == len(r.URL.RawPath) {
		http.NotFound(w, r)
		return
	}
	to, u := *r, *r.URL
	u.Path, u.RawPath = rooted(path), raw
	if raw != "" {
		u.RawPath = rooted(raw)
	}
	to.URL = &u
	s.next.ServeHTTP(w, &to)
}

// rooted has a path begin with one slash: with two it would name a host.
func rooted(path string) string { return "/" + strings.TrimLeft(path, "/") }
