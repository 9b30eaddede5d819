package router_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tarehq/tare/serve/router"
)

// TestEncodedPaths fixes what slashes and dots do that come percent-encoded.
// TestAsServeMux holds the same against a ServeMux.
func TestEncodedPaths(t *testing.T) {
	rt := new(router.Router)
	for _, pattern := range []string{
		"/u/{x}", "/u/{x}/p", "/f/{r...}", "/a/b", "/a%2Fb", "/d/{$}", "/per%25cent", "/per%25cent/{x}",
	} {
		rt.Handle(pattern, show(pattern))
	}
	tests := []struct {
		target, pattern, value string // pattern "" = 404
		location               string
	}{
		{"/u/a%2Fp", "/u/{x}", "a/p", ""},
		{"/u/a%2fp/p", "/u/{x}/p", "a/p", ""},
		{"/u/..%2F..%2Fetc", "/u/{x}", "../../etc", ""},
		{"/u/%2e%2e", "/u/{x}", "..", ""},
		{"/u/%2E", "/u/{x}", ".", ""},
		{"/u/%252F", "/u/{x}", "%2F", ""},
		{"/u/%2F", "", "", ""},
		{"/u/%2F/p", "", "", ""},
		{"/u/%00", "/u/{x}", "\x00", ""},
		{"/f/a%2Fb/c", "/f/{r...}", "a/b/c", ""},
		{"/f/%2e%2e/%2e%2e/x", "/f/{r...}", "../../x", ""},
		{"/f/../u/x", "/u/{x}", "", "/u/x"},
		{"/u/./x", "/u/{x}", "", "/u/x"},
		{"/u//x", "/u/{x}", "", "/u/x"},
		{"/a%2Fb", "/a%2Fb", "", ""},
		{"/a/b", "/a/b", "", ""},
		{"/%61/b", "/a/b", "", ""},
		{"/a/..%2Fa/b", "", "", ""},
		{"/d/%2F", "/d/{$}", "", ""},
		{"/d", "/d/{$}", "", "/d/"},
		{"/per%25cent", "/per%25cent", "", ""},
		{"/per%25cent/100%25", "/per%25cent/{x}", "100%", ""},
		{"/per%2525cent", "", "", ""},
	}
	for _, tt := range tests {
		got := ask(rt, request("GET", "", tt.target))
		want := seen{status: 200, pattern: tt.pattern, asked: tt.pattern}
		switch {
		case tt.location != "":
			want.status, want.location = 307, tt.location
		case tt.pattern == "":
			want.status = 404
		}
		body := got.body
		got.body = ""
		if got != want {
			t.Errorf("%s: got %+v, want %+v", tt.target, got, want)
		}
		if want.status == 200 && !strings.Contains(body, fmt.Sprintf("=%q", tt.value)) {
			t.Errorf("%s: got %s, want a value %q", tt.target, body, tt.value)
		}
	}
}

func TestCase(t *testing.T) {
	tests := []struct {
		policy         router.Case
		target         string
		status         int
		pattern, value string
		location       string
	}{
		{router.CaseExact, "/Users/Ann", 200, "/Users/{x}", "Ann", ""},
		{router.CaseExact, "/users/Ann", 404, "", "", ""},
		{router.CaseFold, "/users/Ann", 200, "/Users/{x}", "Ann", ""},
		{router.CaseFold, "/USERS/%41nn", 200, "/Users/{x}", "Ann", ""},
		{router.CaseFold, "/USERS/ann", 200, "/Users/{x}", "ann", ""},
		{router.CaseFold, "/k/ABC", 200, "/K/{x:[A-Z]+}", "ABC", ""},
		{router.CaseFold, "/k/abc", 404, "", "", ""},
		{router.CaseFold, "/É", 404, "", "", ""},
		{router.CaseFold, "/Files/A/B", 200, "/files/{r...}", "A/B", ""},
		{router.CaseFold, "/DIR", 307, "/dir/", "", "/DIR/"},
		{router.CaseRedirect, "/Users/Ann", 200, "/Users/{x}", "Ann", ""},
		{router.CaseRedirect, "/users/ann", 307, "/Users/{x}", "", "/Users/ann"},
		{router.CaseRedirect, "/Users/ann", 200, "/Users/{x}", "ann", ""},
		{router.CaseRedirect, "/users/A%2Fnn?q=A", 307, "/Users/{x}", "", "/Users/A%2Fnn?q=A"},
		{router.CaseRedirect, "/FILES/A/B/", 307, "/files/{r...}", "", "/files/A/B/"},
		{router.CaseRedirect, "/FILES/..//DIR/", 307, "/dir/", "", "/DIR/"},
		{router.CaseRedirect, "/nowhere/A", 404, "", "", ""},
		{router.CaseExact, "/A%2Fb/Z", 200, "/A%2Fb/Z", "", ""},
		{router.CaseFold, "/A%2Fb/Z", 200, "/A%2Fb/Z", "", ""},
		{router.CaseFold, "/a%2fB/z", 200, "/A%2Fb/Z", "", ""},
		{router.CaseRedirect, "/A%2Fb/Z", 200, "/A%2Fb/Z", "", ""},
		{router.CaseRedirect, "/a%2fb/z", 307, "/A%2Fb/Z", "", "/A%2Fb/Z"},
		{router.CaseExact, "/v/%2F/end", 404, "", "", ""},
		{router.CaseFold, "/v/%2F/end", 404, "", "", ""},
		{router.CaseRedirect, "/v/%2f/end", 404, "", "", ""},
	}
	for _, tt := range tests {
		rt := &router.Router{Case: tt.policy}
		for _, pattern := range []string{"/A%2Fb/Z", "/v/{x}/end", "/Users/{x}", "/K/{x:[A-Z]+}", "/é", "/files/{r...}", "/dir/"} {
			rt.Handle(pattern, show(pattern))
		}
		r := request("GET", "", tt.target)
		got := ask(rt, r)
		if got.status != tt.status || got.pattern != tt.pattern || got.location != tt.location || r.PathValue("x")+r.PathValue("r") != tt.value {
			t.Errorf("policy %d, %s: got %+v, want status %d, pattern %q, value %q, location %q", tt.policy, tt.target, got, tt.status, tt.pattern, tt.value, tt.location)
		}
	}
	rt := &router.Router{Case: router.CaseFold}
	rt.Handle("/a", show("a"))
	if err := rt.Add(router.Route{Pattern: "/A", Handler: show("A")}); err == nil {
		t.Errorf("adding /A to /a: got no error, want a conflict")
	}
}

func TestHooks(t *testing.T) {
	rt := &router.Router{
		NotFound: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "no "+r.URL.Path+r.Pattern, http.StatusNotFound)
		}),
		MethodNotAllowed: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "only "+w.Header().Get("Allow"), http.StatusMethodNotAllowed)
		}),
	}
	rt.Handle("GET /a", show("a"))
	rt.Handle("PURGE /a", show("a"))
	rt.Handle("POST /b/{x}", show("b"))
	rt.Handle("POST /c/{r...}", show("c"))
	rt.Handle("POST /d/{x:int}", show("d"))
	rt.Handle("PUT /d/{x:int}/e", show("e"))
	rt.Handle("POST /f/{x:int}", show("f"))
	rt.Handle("PUT /f/{x}", show("f"))
	tests := []struct {
		method, target, body string
		status               int
	}{
		{"GET", "/x", "no /x\n", 404},
		{"GET", "/a%20/x", "no /a /x\n", 404},
		{"POST", "/a", "only GET, HEAD, PURGE\n", 405},
		{"GET", "/b/1", "only POST\n", 405},
		{"GET", "/b/1/2", "no /b/1/2\n", 404},
		{"GET", "/c", "only POST\n", 405},
		{"GET", "/c/d", "only POST\n", 405},
		{"OPTIONS", "/c/d", "only POST\n", 405},
		{"GET", "/d/7", "only POST\n", 405},
		{"GET", "/d/7/e", "only PUT\n", 405},
		{"GET", "/d/x", "no /d/x\n", 404},
		{"GET", "/d/x/e", "no /d/x/e\n", 404},
		{"GET", "/f/7", "only POST, PUT\n", 405},
		{"GET", "/f/x", "only PUT\n", 405},
	}
	for _, tt := range tests {
		if got := ask(rt, request(tt.method, "", tt.target)); got.status != tt.status || got.body != tt.body {
			t.Errorf("%s %s: got %d %q, want %d %q", tt.method, tt.target, got.status, got.body, tt.status, tt.body)
		}
	}
}

// TestAllowOfHosts: for a host that routes name, those for any host count, too.
func TestAllowOfHosts(t *testing.T) {
	mux, rt := http.NewServeMux(), new(router.Router)
	for _, h := range []handlers{mux, rt} {
		h.Handle("DELETE h.com/a", show("host"))
		h.Handle("GET /a", show("any"))
	}
	for host, want := range map[string]string{"h.com": "DELETE, GET, HEAD", "i.com": "GET, HEAD"} {
		for _, h := range []http.Handler{mux, rt} {
			if got := answer(h, request("POST", host, "/a")); got.Code != 405 || got.Header().Get("Allow") != want {
				t.Errorf("%T, %s: got %d, Allow %q, want 405, %q", h, host, got.Code, got.Header().Get("Allow"), want)
			}
		}
	}
}

// TestWithinAnother serves within a ServeMux: handlers see the pattern and the values
// of the router alone, and none where it has no route, as in a ServeMux.
func TestWithinAnother(t *testing.T) {
	mux, rt := http.NewServeMux(), &router.Router{NotFound: show("none")}
	for _, h := range []handlers{mux, rt} {
		h.Handle("/o/s", show("s"))
		h.Handle("/o/{y}", show("y"))
	}
	within := func(h http.Handler, target string) string {
		outer := http.NewServeMux()
		outer.Handle("/{x}/", h)
		return answer(outer, request("GET", "", target)).Body.String()
	}
	for _, target := range []string{"/o/s", "/o/%73", "/o/a", "/o/%61"} {
		if got, want := within(rt, target), within(mux, target); got != want || strings.Contains(got, `x="o"`) {
			t.Errorf("%s: got %s, want %s", target, got, want)
		}
	}
	for _, target := range []string{"/o/a/b", "/o/%61/b"} {
		if got, want := within(rt, target), `handler none, pattern , x="", y="", z="", r=""`; got != want {
			t.Errorf("%s: got %s, want %s", target, got, want)
		}
	}
}

func TestConflictError(t *testing.T) {
	rt := new(router.Router)
	rt.Handle("GET h.com/a/{x}", show("first"))
	err := rt.Add(router.Route{Pattern: "h.com/{y}/b", Handler: show("second")})
	var c *router.ConflictError
	if !errors.As(err, &c) {
		t.Fatalf("got %v, want a conflict", err)
	}
	for name, loc := range map[string]string{"location": c.Location, "other location": c.OtherLocation} {
		if file, line, ok := strings.Cut(loc[strings.LastIndexByte(loc, '/')+1:], ":"); file != "dispatch_test.go" || !ok || line == "" {
			t.Errorf("%s: got %q, want a line of this file", name, loc)
		}
	}
	c.Location, c.OtherLocation = "two.go:2", "one.go:1"
	want := `pattern "h.com/{y}/b" (two.go:2) conflicts with "GET h.com/a/{x}" (one.go:1): both match GET h.com/a/b, and neither is more specific`
	if c.Error() != want {
		t.Errorf("got  %s\nwant %s", c, want)
	}
	if got := patterns(rt); len(got) != 1 {
		t.Errorf("after the conflict: got routes %q, want the first alone", got)
	}
	same := rt.Add(router.Route{Pattern: "GET h.com/a/{z}", Handler: show("third")})
	if !errors.As(same, &c) || !c.Same || !strings.Contains(same.Error(), "the one matches what the other does") {
		t.Errorf("got %v, want a conflict of patterns that match the same", same)
	}
}

// TestConflictNamesTheFirst adds a pattern that conflicts with many.
func TestConflictNamesTheFirst(t *testing.T) {
	for range 20 { // what is found must not hang on the order of a map
		rt := new(router.Router)
		for i := range 20 {
			rt.Handle(fmt.Sprintf("/a%d/{x}", i), show(""))
		}
		err := rt.Add(router.Route{Pattern: "/{y}/b", Handler: show("")})
		var c *router.ConflictError
		if !errors.As(err, &c) || c.Other != "/a0/{x}" {
			t.Fatalf("got %v, want a conflict with /a0/{x}", err)
		}
	}
}

func TestServerWide(t *testing.T) {
	rt := new(router.Router)
	rt.Handle("/", show("/"))
	r := request("OPTIONS", "", "/")
	r.RequestURI = "*"
	w := httptest.NewRecorder()
	rt.ServeHTTP(w, r)
	if w.Code != http.StatusBadRequest || w.Header().Get("Connection") != "close" {
		t.Errorf("got %d and %v, want 400 and Connection: close", w.Code, w.Header())
	}
}

// TestEmptySegments fixes the deliberate difference to a ServeMux, which takes an
// empty segment of a pattern for a wildcard.
func TestEmptySegments(t *testing.T) {
	rt := new(router.Router)
	rt.Handle("/a//b", show("empty"))
	rt.Handle("CONNECT /c/{x}/d", show("connect"))
	tests := []struct {
		method, path string
		status       int
	}{
		{"GET", "/a/x/b", 404},
		{"GET", "/a//b", 307},
		{"CONNECT", "/a//b", 200},
		{"CONNECT", "/c/x/d", 200},
		{"CONNECT", "/c//d", 404},
	}
	for _, tt := range tests {
		r := request(tt.method, "h.com:443", "/")
		r.URL.Path = tt.path
		if got := ask(rt, r); got.status != tt.status {
			t.Errorf("%s %s: got %+v, want status %d", tt.method, tt.path, got, tt.status)
		}
	}
}

// TestEmpty asks a router without routes.
func TestEmpty(t *testing.T) {
	if got := ask(new(router.Router), request("GET", "h.com", "/a")); got.status != 404 || got.pattern != "" {
		t.Errorf("got %+v, want 404", got)
	}
}

// TestManyRoutes asks for each of five thousand routes, of wide and deep nodes.
func TestManyRoutes(t *testing.T) {
	rt := new(router.Router)
	add := func(pattern string) { rt.Handle(pattern, show(pattern)) }
	for i := range 1250 {
		add(fmt.Sprintf("GET /static/%d/end", i))
		add(fmt.Sprintf("GET /r%d/{x}", i))
		add(fmt.Sprintf("POST /{x}/r%d/{y}", i))
		add(fmt.Sprintf("/deep/{x}/%d/{r...}", i))
	}
	for i := range 1250 {
		for _, tt := range [][3]string{
			{"GET", fmt.Sprintf("/static/%d/end", i), fmt.Sprintf("GET /static/%d/end", i)},
			{"HEAD", fmt.Sprintf("/r%d/a", i), fmt.Sprintf("GET /r%d/{x}", i)},
			{"POST", fmt.Sprintf("/a/r%d/b", i), fmt.Sprintf("POST /{x}/r%d/{y}", i)},
			{"PUT", fmt.Sprintf("/deep/a/%d/b/c", i), fmt.Sprintf("/deep/{x}/%d/{r...}", i)},
		} {
			if got := ask(rt, request(tt[0], "", tt[1])); got.pattern != tt[2] {
				t.Fatalf("%s %s: got %q, want %q", tt[0], tt[1], got.pattern, tt[2])
			}
		}
	}
}
