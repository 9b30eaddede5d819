package router

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tarehq/tare/serve/internal/pattern"
)

// answer is what a request gets.
type answer struct {
	handler http.Handler
	pattern string
	route   *route   // nil: none matched
	values  []string // of its wildcards
}

// serveSlowly serves a request whose path needs a closer look: one that is
// percent-encoded, not clean, to be redirected, or that no route matches.
func (t *table) serveSlowly(w http.ResponseWriter, r *http.Request) {
	if r.RequestURI == "*" {
		if r.ProtoAtLeast(1, 1) {
			w.Header().Set("Connection", "close")
		}
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	a := t.resolve(r)
	r.Pattern = a.pattern
	t.fields.Clear(r)
	if len(a.values) > 0 {
		a.route.names.Set(r, a.values)
	}
	a.handler.ServeHTTP(w, r)
}

// resolve decides a request in the order in which a ServeMux does: a slash is
// missing, the path is not clean, a route matches, other methods match, nothing
// does.
func (t *table) resolve(r *http.Request) answer {
	escaped := r.URL.EscapedPath()
	if r.Method == http.MethodConnect {
		return t.resolveConnect(r, escaped)
	}
	q := query{pattern.Hostname(r.Host), r.Method, pattern.CleanPath(escaped)}
	rt := t.lookup(q)
	if slashed := t.missesSlash(rt, q); slashed != nil {
		return redirect(&url.URL{Path: pattern.CleanPath(r.URL.Path) + "/", RawQuery: r.URL.RawQuery}, slashed.text)
	}
	if q.path != escaped {
		a := redirect(&url.URL{Path: q.path, RawQuery: r.URL.RawQuery}, "")
		if rt != nil {
			a.pattern = rt.text
		}
		return a
	}
	if rt == nil {
		return t.refuse(q)
	}
	if t.caseRedirect {
		if u := rt.pattern.Respell(q.path); u != nil {
			u.RawQuery = r.URL.RawQuery
			return redirect(u, rt.text)
		}
	}
	return answer{rt.handler, rt.text, rt, rt.pattern.Values(q.path)}
}

// resolveConnect decides a CONNECT request, whose path is taken as it is and
// whose host keeps its port.
func (t *table) resolveConnect(r *http.Request, path string) answer {
	q := query{r.URL.Host, r.Method, path}
	if t.missesSlash(t.lookup(q), q) != nil {
		u := &url.URL{Path: pattern.CleanPath(r.URL.Path) + "/", RawQuery: r.URL.RawQuery}
		return redirect(u, u.Path)
	}
	if rt := t.lookup(query{r.Host, r.Method, path}); rt != nil {
		return answer{rt.handler, rt.text, rt, rt.pattern.Values(path)}
	}
	return t.refuse(q)
}

func redirect(to *url.URL, pattern string) answer {
	return answer{handler: http.RedirectHandler(to.String(), http.StatusTemporaryRedirect), pattern: pattern}
}

// query is what routes are matched with.
type query struct {
	host, method string
	path         string // percent-encoded
}

// lookup returns the most specific route, or nil.
func (t *table) lookup(q query) *route {
	var found *route
	t.walk(q, func(tr *tree, w *walk, path string) bool {
		found = w.from(tr.root, path[1:], 0)
		return found == nil
	})
	return found
}

// walk calls f with the trees that may hold a route for q, one by one, until it
// returns false.
func (t *table) walk(q query, f func(tr *tree, w *walk, path string) bool) {
	if !strings.HasPrefix(q.path, "/") {
		return
	}
	path := armored(q.path)
	w := walk{values: make([]string, t.deep), method: methodOf(q.method), name: q.method, raw: true, spelt: path}
	if t.fold {
		path = pattern.Fold(path)
	}
	if tr := t.hosts[q.host]; tr != nil && !f(tr, &w, path) {
		return
	}
	f(t.any, &w, path)
}

// armored returns a percent-encoded path as the trees store them. A last segment
// that is nothing but an encoded slash counts as the end of the path behind a
// slash, as in a ServeMux.
func armored(path string) string {
	if strings.IndexByte(path, '%') < 0 {
		return path
	}
	segs := strings.Split(path[1:], "/")
	for i, s := range segs {
		if s = pattern.Unescape(s); s == "/" && i == len(segs)-1 {
			s = ""
		}
		segs[i] = armor(s)
	}
	return "/" + strings.Join(segs, "/")
}

// missesSlash returns the route that ends where q with a slash added ends, if
// no route ends where q itself does.
func (t *table) missesSlash(rt *route, q query) *route {
	if endsAt(rt, q.path) || q.path == "" || strings.HasSuffix(q.path, "/") {
		return nil
	}
	q.path += "/"
	if rt = t.lookup(q); endsAt(rt, q.path) {
		return rt
	}
	return nil
}

// endsAt reports whether the route takes the path without a multi having to take
// more than nothing.
func endsAt(rt *route, path string) bool {
	if rt == nil || !rt.multi {
		return rt != nil
	}
	return strings.HasSuffix(path, "/") && strings.Count(path, "/") == len(rt.pattern.Segments)
}

// refuse answers a request that no route matches.
func (t *table) refuse(q query) answer {
	allow := map[string]bool{}
	t.allowed(q, allow)
	if !strings.HasSuffix(q.path, "/") {
		q.path += "/"
		t.allowed(q, allow)
	}
	if len(allow) == 0 {
		return answer{handler: t.notFound}
	}
	return answer{handler: &refusal{strings.Join(slices.Sorted(maps.Keys(allow)), ", "), t.notAllowed}}
}

// allowed adds to set the methods by which q's path matches a route.
func (t *table) allowed(q query, set map[string]bool) {
	t.walk(q, func(tr *tree, w *walk, path string) bool {
		w.leaves(tr.root, path[1:], func(l *leaf) {
			for name := range l.allowed() {
				set[name] = true
			}
		})
		return true
	})
}

// refusal answers requests by a method that their path does not take.
type refusal struct {
	allow string
	then  http.Handler // nil: the standard answer
}

func (f *refusal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Allow", f.allow)
	if f.then != nil {
		f.then.ServeHTTP(w, r)
		return
	}
	http.Error(w, http.StatusText(http.StatusMethodNotAllowed), http.StatusMethodNotAllowed)
}
