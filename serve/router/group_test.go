package router_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tarehq/tare/serve/router"
)

// tag returns a middleware that puts its name into the header Through.
func tag(name string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Add("Through", name)
			next.ServeHTTP(w, r)
		})
	}
}

// patterns returns those of all routes.
func patterns(rt *router.Router) []string {
	var ps []string
	for r := range rt.Routes() {
		ps = append(ps, r.Pattern)
	}
	return ps
}

func TestGroupPatterns(t *testing.T) {
	tests := []struct{ prefix, pattern, want string }{
		{"/api", "GET /users", "GET /api/users"},
		{"/api", "/users/", "/api/users/"},
		{"/api", "GET /{$}", "GET /api/{$}"},
		{"/api", "GET \t/x", "GET /api/x"},
		{"/api", "", "/api"},
		{"/api", "GET", "GET /api"},
		{"/api", "h.com/x", "h.com/api/x"},
		{"h.com/api", "GET /x", "GET h.com/api/x"},
		{"h.com/", "/x", "h.com/x"},
		{"/", "GET /x", "GET /x"},
		{"", "GET h.com/x", "GET h.com/x"},
		{"/t/{x}", "/{y:int}/{r...}", "/t/{x}/{y:int}/{r...}"},
	}
	for _, tt := range tests {
		rt := new(router.Router)
		rt.Group(tt.prefix).Handle(tt.pattern, show(tt.want))
		if got := patterns(rt); len(got) != 1 || got[0] != tt.want {
			t.Errorf("%q in %q: got %q, want %q", tt.pattern, tt.prefix, got, tt.want)
		}
	}
}

// TestGroupWithinGroup has a group's prefix go behind that of the group that it is in,
// but for a host, which goes before.
func TestGroupWithinGroup(t *testing.T) {
	for _, tt := range []struct{ outer, inner, want string }{
		{"/api", "/v1", "GET /api/v1/x"},
		{"/api", "/", "GET /api/x"},
		{"/api", "h.com/v1", "GET h.com/api/v1/x"},
		{"/api", "h.com/", "GET h.com/api/x"},
		{"h.com/", "/v1", "GET h.com/v1/x"},
		{"h.com/", "/", "GET h.com/x"},
		{"", "h.com/", "GET h.com/x"},
	} {
		rt := new(router.Router)
		rt.Group(tt.outer).Group(tt.inner).Handle("GET /x", show(tt.want))
		if got := patterns(rt); len(got) != 1 || got[0] != tt.want {
			t.Errorf("%q in %q: got %q, want %q", tt.inner, tt.outer, got, tt.want)
		}
	}
}

func TestGroupRefuses(t *testing.T) {
	ok := show("")
	tests := []struct {
		why, want string
		do        func(rt *router.Router)
	}{
		{"prefix without slash", "no / where", func(rt *router.Router) { rt.Group("api") }},
		{"prefix with method", "has a method", func(rt *router.Router) { rt.Group("GET /api") }},
		{"prefix with last slash", "ends in /", func(rt *router.Router) { rt.Group("/api/") }},
		{"prefix with end", "ends in /{$}", func(rt *router.Router) { rt.Group("/api/{$}") }},
		{"prefix with multi", "ends in /{r...}", func(rt *router.Router) { rt.Group("/api/{r...}") }},
		{"two hosts, the second alone", "has a host, and so has", func(rt *router.Router) { rt.Group("a.com/x").Group("b.com/") }},
		{"two hosts", "has a host, and so has", func(rt *router.Router) { rt.Group("a.com/x").Handle("b.com/y", ok) }},
		{"no path", "has no path", func(rt *router.Router) { rt.Group("a.com/").Handle("GET", ok) }},
		{"name twice", `"x" is there twice`, func(rt *router.Router) { rt.Group("/{x}").Handle("/{x}", ok) }},
		{"nil handler", "handler is nil", func(rt *router.Router) { rt.Group("/a", tag("m")).Handle("/b", nil) }},
		{"nil function", "handler is nil", func(rt *router.Router) { rt.HandleFunc("/b", nil) }},
		{"nil middleware", "middleware 2 of 2 is nil", func(rt *router.Router) { rt.Group("/a", tag("m"), nil) }},
		{"middleware without handler", `adding "GET /a/b": middleware 2 of 2 returns no handler`, func(rt *router.Router) {
			rt.Group("/a", tag("m"), func(http.Handler) http.Handler { return nil }).Handle("GET /b", ok)
		}},
		{"middleware with a nil function", `adding "GET /a/b": middleware 1 of 1 returns no handler`, func(rt *router.Router) {
			rt.Group("/a", func(http.Handler) http.Handler { return http.HandlerFunc(nil) }).Handle("GET /b", ok)
		}},
		{"conflict by mount", "conflicts with", func(rt *router.Router) {
			sub := new(router.Router)
			sub.Handle("/{x}", ok)
			rt.Handle("/a/{y}", ok)
			rt.Mount("/a", sub)
		}},
		{"name of a route twice", `the name "n" is that of "/a"`, func(rt *router.Router) {
			for _, pattern := range []string{"/a", "/b"} {
				if err := rt.Add(router.Route{Pattern: pattern, Handler: ok, Name: "n"}); err != nil {
					panic(err)
				}
			}
		}},
	}
	for _, tt := range tests {
		got := func() (p any) {
			defer func() { p = recover() }()
			tt.do(new(router.Router))
			return nil
		}()
		if err, ok := got.(error); !ok || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got panic %v, want an error with %q", tt.why, got, tt.want)
		}
	}
}

func TestMiddlewares(t *testing.T) {
	rt := new(router.Router)
	api := rt.Group("/api", tag("a"), tag("b"))
	api.Handle("/plain", show("plain"))
	api.Group("/in", tag("c")).Handle("/x", show("in"))
	api.Group("", tag("d")).Handle("/y", show("same prefix"))
	sub := new(router.Router)
	sub.Group("/s", tag("e")).Handle("/z", show("sub"))
	api.Mount("/m", sub)
	sub.Handle("/late", show("late"))

	for path, want := range map[string]string{
		"/api/plain": "a b", "/api/in/x": "a b c", "/api/y": "a b d", "/api/m/s/z": "a b e", "/api/m/late": "",
	} {
		r := request("GET", "h.com", path)
		w := answer(rt, r)
		if got := strings.Join(w.Header().Values("Through"), " "); got != want {
			t.Errorf("%s: went through %q, want %q", path, got, want)
		}
		if wantStatus := map[bool]int{true: 200, false: 404}[want != ""]; w.Code != wantStatus {
			t.Errorf("%s: got status %d, want %d", path, w.Code, wantStatus)
		}
	}
}

// TestMiddlewaresAreCalledOnce counts how often they are applied.
func TestMiddlewaresAreCalledOnce(t *testing.T) {
	rt, calls := new(router.Router), 0
	g := rt.Group("", func(next http.Handler) http.Handler { calls++; return next })
	g.Handle("/a", show("a"))
	g.Handle("/b", show("b"))
	for range 3 {
		answer(rt, request("GET", "", "/a"))
	}
	if calls != 2 {
		t.Errorf("got %d calls, want one for each of 2 routes", calls)
	}
}

func TestMountKeepsValues(t *testing.T) {
	sub := new(router.Router)
	sub.Handle("GET /{y}/{r...}", show("sub"))
	rt := new(router.Router)
	rt.Mount("/t/{x}", sub)
	got := ask(rt, request("GET", "", "/t/1/2/3/4"))
	want := `handler sub, pattern GET /t/{x}/{y}/{r...}, x="1", y="2", z="", r="3/4"`
	if got.body != want {
		t.Errorf("got %s, want %s", got.body, want)
	}
}

func TestRoutes(t *testing.T) {
	rt := new(router.Router)
	rt.Handle("GET /b", show("b"))
	if err := rt.Add(router.Route{Pattern: "/a", Name: "first", Handler: show("a"), Location: "table.txt:7"}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for r := range rt.Routes() {
		got = append(got, fmt.Sprint(r.Pattern, " ", r.Name, " ", r.Location[strings.LastIndexByte(r.Location, '/')+1:]))
		if r.Handler == nil {
			t.Errorf("%s: got no handler", r.Pattern)
		}
	}
	if len(got) != 2 || !strings.HasPrefix(got[0], "GET /b  group_test.go:") || got[1] != "/a first table.txt:7" {
		t.Errorf("got %q, want GET /b at this file, then /a first table.txt:7", got)
	}
	for range rt.Routes() {
		break // must not go on
	}
	if !slices.Equal(patterns(rt), []string{"GET /b", "/a"}) {
		t.Errorf("got %q", patterns(rt))
	}
}

// TestMountTwice mounts a router with named routes in two places.
func TestMountTwice(t *testing.T) {
	api := new(router.Router)
	if err := api.Group("").Named("u.").Add(router.Route{Name: "one", Pattern: "GET /users/{id}", Handler: show("one")}); err != nil {
		t.Fatal(err)
	}
	api.Handle("/nameless", show("nameless"))
	rt := new(router.Router)
	rt.Group("/v1").Named("v1.").Mount("/api", api)
	rt.Group("/v2").Named("v2.").Group("", tag("m")).Mount("/api", api)
	for name, want := range map[string]string{"v1.u.one": "/v1/api/users/7", "v2.u.one": "/v2/api/users/7"} {
		if u, err := rt.URL(name, "id", "7"); err != nil || u.String() != want {
			t.Errorf("%s: got %v, %v, want %s", name, u, err, want)
		}
	}
	defer func() {
		if err, ok := recover().(error); !ok || !strings.Contains(err.Error(), "Group.Named") {
			t.Errorf("again under a name that is there: got %v, want an error with the remedy", err)
		}
	}()
	rt.Group("/v3").Named("v1.").Mount("/api", api)
}

// TestMountAllOrNothing mounts a router of which one route cannot be added, be it the
// last: the table is as before, and a mount that is in order finds nothing in its way.
func TestMountAllOrNothing(t *testing.T) {
	table := func(rows ...string) *router.Router { // of NAME PATTERN
		rt := new(router.Router)
		for _, row := range rows {
			name, pattern, _ := strings.Cut(row, " ")
			if err := rt.Add(router.Route{Name: name, Pattern: pattern, Handler: show(row)}); err != nil {
				t.Fatal(err)
			}
		}
		return rt
	}
	picky := func(next http.Handler) http.Handler {
		if strings.HasPrefix(answer(next, request("GET", "", "/")).Body.String(), "handler b /b,") {
			return nil
		}
		return next
	}
	tests := []struct {
		why, want string
		sub       *router.Router
		fold      bool
		with      []func(http.Handler) http.Handler
	}{
		{why: "conflict", want: "conflicts with", sub: table("a /a", "b h.com/b", "c /taken/{y}")},
		{why: "name", want: `the name "here" is that of "/m/taken/here"`, sub: table("a /a", "b /b", "here /c")},
		{why: "among themselves", want: "conflicts with", sub: table("a /a", "b /b", "c /B"), fold: true},
		{why: "middleware", want: "returns no handler", sub: table("a /a", "b /b"), with: []func(http.Handler) http.Handler{picky}},
	}
	for _, tt := range tests {
		rt := table("here /m/taken/here", "x /m/{x}/here")
		if tt.fold {
			rt = &router.Router{Case: router.CaseFold}
			rt.Handle("/m/taken/here", show("here"))
		}
		before := patterns(rt)
		got := func() (p any) {
			defer func() { p = recover() }()
			rt.Group("", tt.with...).Mount("/m", tt.sub)
			return nil
		}()
		if err, ok := got.(error); !ok || !strings.Contains(err.Error(), `mounting at "/m": `) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got panic %v, want an error with %q", tt.why, got, tt.want)
		}
		if after := patterns(rt); !slices.Equal(after, before) {
			t.Errorf("%s: the table is %q after the panic, want %q as before", tt.why, after, before)
		}
		for _, host := range []string{"", "h.com"} {
			if w := answer(rt, request("GET", host, "/m/a")); w.Code != http.StatusNotFound {
				t.Errorf("%s: %s/m/a answers %d after the panic, want 404", tt.why, host, w.Code)
			}
		}
		if _, err := rt.URL("a"); err == nil {
			t.Errorf("%s: the name of a route is left behind", tt.why)
		}
		if w := answer(rt, request("GET", "", "/m/taken/here")); w.Code != http.StatusOK {
			t.Errorf("%s: a route from before answers %d, want 200", tt.why, w.Code)
		}
		rt.Mount("/m", table("a /a", "b h.com/b"))
		if w := answer(rt, request("GET", "h.com", "/m/b")); w.Code != http.StatusOK {
			t.Errorf("%s: a route mounted afterwards answers %d, want 200", tt.why, w.Code)
		}
	}
}
