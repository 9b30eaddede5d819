package config

import (
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/middleware/metrics"
	"github.com/tarehq/tare/serve/proxy"
	"github.com/tarehq/tare/serve/proxy/internal/routing"
	"github.com/tarehq/tare/serve/proxy/shadow"
	"github.com/tarehq/tare/serve/proxy/tunnel"
	"github.com/tarehq/tare/serve/router"
)

// Site serves what a file says, and then what the next one does. Requests that have begun
// are served by the one that was there. It is safe for concurrent use; its zero value
// answers 503.
type Site struct {
	// Log gets what goes wrong where no request is to be told: servers that cannot be
	// found. Nil: nobody. It is to be set before the first file is taken.
	Log *slog.Logger
	// Regions opens databases of regions, see [Regions]. Nil: files that name one are
	// refused. It is to be set before the first file is taken.
	Regions func(Regions) (RegionFinder, error)
	// Metrics counts and times requests by their routes. Nil: nobody does. It is to be set
	// before the first file is taken.
	Metrics *metrics.Metrics
	// Journal logs the requests of files that name an access log. Nil: nobody does. It is to be
	// set before the first file is taken.
	Journal func(http.Handler) http.Handler
	// Served is [proxy.Options.Served] for files that name an access log.
	Served proxy.Served

	serving atomic.Pointer[serving]
	tunnels atomic.Int64 // of CONNECT

	mu      sync.Mutex
	file    *File
	entries map[string]*entry
	layers  map[string]chain.Layer    // of middlewares, by their keys
	shadows map[string]*shadow.Shadow // by the route's host and path
	former  []*proxy.Handler          // of upstreams that are gone, as long as they have tunnels
}

// serving is what answers requests.
type serving struct{ http.Handler }

// ServeHTTP serves a request by the file that was taken last.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now := s.serving.Load()
	if now == nil {
		http.Error(w, http.StatusText(http.StatusServiceUnavailable), http.StatusServiceUnavailable)
		return
	}
	r.Host = routing.PlainHost(r.Host)
	now.ServeHTTP(w, r)
}

// Take has the site serve what a file says. Upstreams whose settings stay keep their
// connections and what is known of their servers, also if these change; middlewares whose
// settings stay keep what they have counted. It waits 3 s at most for servers to be found.
// With an error all stays as it was.
func (s *Site) Take(f *File) error {
	find, err := f.OpenRegions(s.Regions)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f.find = find
	if f.AccessLog != "" {
		f.served = s.Served
	}
	next := map[string]*entry{}
	var fresh []*entry
	for name, u := range f.Upstreams {
		if old := s.entries[name]; old != nil && s.keeps(old, u, f) {
			next[name] = old
			continue
		}
		e, err := newEntry(u, f)
		if err != nil {
			closeAll(fresh)
			return err
		}
		next[name] = e
		fresh = append(fresh, e)
		e.find(name, s.Log)
	}
	layers, shadows := map[string]chain.Layer{}, map[string]*shadow.Shadow{}
	around := s.around(f, layers)
	h, err := f.handler(func(r Route) (http.Handler, error) {
		r.guards = s.share(r.guards, layers)
		return r.handler(next, shadows)
	}, around, &s.tunnels)
	if err != nil {
		closeAll(fresh)
		return err
	}
	if s.Metrics != nil && len(around) == 0 {
		h = s.Metrics.Middleware(h)
	}
	for name, e := range next {
		if e.finder != nil {
			continue
		}
		if err := e.set(f.Upstreams[name].Servers); err != nil { // Parse has looked at them
			closeAll(fresh)
			return err
		}
	}
	await(fresh)
	old := s.entries
	s.forgetLocked() // of the files before
	s.serving.Store(&serving{h})
	s.file, s.entries, s.layers, s.shadows = f, next, layers, shadows
	for name, e := range old {
		if next[name] != e {
			closeAll([]*entry{e})
			s.former = append(s.former, e.handler)
		}
	}
	return nil
}

// keeps reports whether an upstream is the same but for its servers.
func (s *Site) keeps(old *entry, u Upstream, f *File) bool {
	u.Servers = nil
	return reflect.DeepEqual(old.u, u) && s.file.Name == f.Name && s.file.Forwarded == f.Forwarded && (s.file.AccessLog == "") == (f.AccessLog == "") && reflect.DeepEqual(s.file.Trusted, f.Trusted)
}

// around are the middlewares before all routes of a file. Requests are counted and logged within
// their chain, which hides routes and its values from what stands before it on net/http. The log
// stands behind what knows the client and the request's identifier.
func (s *Site) around(f *File, noted map[string]chain.Layer) []Guard {
	all := s.share(f.guards, noted)
	if s.Journal != nil && f.AccessLog != "" {
		n := min(len(f.Trusted), 1)
		if n < len(all) && strings.HasPrefix(all[n].key, "middlewares requestid ") {
			n++
		}
		all = slices.Insert(all, n, Guard{layer: chain.Layer{Wrap: s.Journal}})
	}
	if s.Metrics != nil && len(all) > 0 {
		all = slices.Insert(all, 0, Guard{layer: chain.Layer{Wrap: s.Metrics.Middleware}})
	}
	return all
}

// share returns middlewares of which those that were there are the same, and notes them
// all.
func (s *Site) share(guards []Guard, noted map[string]chain.Layer) []Guard {
	shared := make([]Guard, len(guards))
	for i, g := range guards {
		if was, ok := noted[g.key]; ok {
			g.layer = was
		} else if was, ok := s.layers[g.key]; ok {
			g.layer = was
		}
		if g.key != "" {
			noted[g.key] = g.layer
		}
		shared[i] = g
	}
	return shared
}

// Tunnels returns how many upgraded connections are open, and tunnels of CONNECT.
func (s *Site) Tunnels() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := int(s.tunnels.Load())
	for _, e := range s.entries {
		n += e.handler.Tunnels()
	}
	s.forgetLocked()
	for _, h := range s.former {
		n += h.Tunnels()
	}
	return n
}

// forgetLocked lets upstreams go that have no tunnels any more.
func (s *Site) forgetLocked() {
	s.former = slices.DeleteFunc(s.former, func(h *proxy.Handler) bool { return h.Tunnels() == 0 })
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

// Counts returns what was done for each upstream.
func (s *Site) Counts() map[string]proxy.Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]proxy.Counts{}
	for name, e := range s.entries {
		all[name] = e.handler.Counts()
	}
	return all
}

// Copies are how many requests of a route were copied, and how many were to be and not.
type Copies struct {
	Sent    uint64 `json:"sent"`
	Dropped uint64 `json:"dropped"`
}

// Copies returns what was copied, by the route's host and path.
func (s *Site) Copies() map[string]Copies {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]Copies{}
	for route, c := range s.shadows {
		all[route] = Copies{c.Sent(), c.Dropped()}
	}
	return all
}

// Region returns the region that an address is in by the file's database; the empty one if
// none is known.
func (s *Site) Region(at netip.Addr) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil || s.file.find == nil {
		return ""
	}
	return s.file.find.Region(at)
}

// Problems returns why the servers of an upstream could not be found the last time, by
// upstream.
func (s *Site) Problems() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]string{}
	for name, e := range s.entries {
		if err := e.problem(); err != nil {
			all[name] = err.Error()
		}
	}
	return all
}

// Drain has a server of an upstream get no new requests, or get them again. It holds until
// it is called again, also over files that are taken, as long as the upstream's settings
// stay.
func (s *Site) Drain(upstream, address string, drain bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[upstream]
	if e == nil {
		return fmt.Errorf("there is no upstream %q", upstream)
	}
	return e.drain(address, drain)
}

// CloseIdleConnections closes connections to servers that no request uses, as for want of
// descriptors.
func (s *Site) CloseIdleConnections() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := range maps.Values(s.entries) {
		e.transport.CloseIdleConnections()
	}
}

// Close ends what the site does of itself.
func (s *Site) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := range maps.Values(s.entries) {
		closeAll([]*entry{e})
	}
}

// handler returns the routes with what stands around them. Tunnels are counted.
func (f *File) handler(of func(Route) (http.Handler, error), around []Guard, tunnels *atomic.Int64) (http.Handler, error) {
	rt, err := f.router(of)
	if err != nil {
		return nil, err
	}
	h := &tunnel.Connect{To: f.Connect, Next: &routing.Plain{Routes: rt}, Open: tunnels}
	if len(around) == 0 {
		return h, nil
	}
	return chained(around).Then(h)
}

// router returns the routes, each with its handler.
func (f *File) router(handler func(Route) (http.Handler, error)) (*router.Router, error) {
	byPattern := map[string]*routing.Choices{}
	var order []string
	at := map[string]int{}
	for i, r := range f.Routes {
		h, err := handler(r)
		if err != nil {
			return nil, err
		}
		for _, pattern := range r.patterns() {
			c := byPattern[pattern]
			if c == nil {
				c = &routing.Choices{Region: func(r *http.Request) string { return regionOf(f.find, r) }}
				byPattern[pattern], at[pattern] = c, i
				order = append(order, pattern)
			}
			if c.Settled() {
				return nil, problemAt(i, "an earlier route takes all requests for "+pattern)
			}
			c.Add(r.Fields, h)
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

// handler returns what becomes of the route's requests.
func (r Route) handler(entries map[string]*entry, shadows map[string]*shadow.Shadow) (http.Handler, error) {
	var h http.Handler = &r.Redirect
	if len(r.Split) > 0 {
		s := &routing.Split{}
		for _, share := range r.Split {
			s.Add(share.Weight, entries[share.Upstream].handler)
		}
		h = s.Handler()
	}
	if r.Shadow != "" {
		copies, err := shadow.New(shadow.Options{To: entries[r.Shadow].handler, Share: r.Copied})
		if err != nil {
			return nil, err
		}
		shadows[r.Host+r.Path] = copies
		h = copies.Middleware(h)
	}
	if r.Strip != "" || r.Prepend != "" {
		h = &routing.Rewrite{Strip: r.Strip, Prepend: r.Prepend, Next: h}
	}
	if len(r.guards) == 0 {
		return h, nil
	}
	return chained(r.guards).Then(h)
}
