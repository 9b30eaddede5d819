package routes_test

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/tarehq/tare/arms/routes"
)

func TestTables(t *testing.T) {
	tests := []struct {
		name          string
		table         routes.Table
		routes, fixed int
	}{
		{"ping", routes.Ping(), 1, 1},
		{"ten", routes.Ten(), 10, 7},
		{"github", routes.GitHub(), 203, 36},
	}
	for _, tt := range tests {
		fixed, seen := 0, map[routes.Route]bool{}
		for _, r := range tt.table {
			if seen[r] {
				t.Errorf("%s: %v stands there twice", tt.name, r)
			}
			seen[r] = true
			if r.Params() == nil {
				fixed++
			}
		}
		if len(tt.table) != tt.routes || fixed != tt.fixed {
			t.Errorf("%s: got %d routes, %d without parameters, want %d and %d", tt.name, len(tt.table), fixed, tt.routes, tt.fixed)
		}
	}
}

func TestSyntax(t *testing.T) {
	tests := []struct {
		pattern, path, colon string
		params               []string
	}{
		{"/{$}", "/", "/", nil},
		{"/users", "/users", "/users", nil},
		{"/users/{id}", "/users/{id}", "/users/:id", []string{"id"}},
		{"/repos/{owner}/{repo}/keys/{id}", "/repos/{owner}/{repo}/keys/{id}", "/repos/:owner/:repo/keys/:id", []string{"owner", "repo", "id"}},
	}
	for _, tt := range tests {
		r := routes.Route{Method: http.MethodGet, Pattern: tt.pattern}
		if r.Path() != tt.path || r.Colon() != tt.colon || !slices.Equal(r.Params(), tt.params) {
			t.Errorf("%s: got %q, %q, %q, want %q, %q, %q", tt.pattern, r.Path(), r.Colon(), r.Params(), tt.path, tt.colon, tt.params)
		}
	}
}

func TestExample(t *testing.T) {
	tests := []struct {
		route routes.Route
		want  routes.Example
	}{
		{routes.Route{Method: "GET", Pattern: "/ping"}, routes.Example{Method: "GET", Path: "/ping", ContentType: routes.JSON, Body: `{"message":"pong"}`}},
		{routes.Route{Method: "GET", Pattern: "/{$}"}, routes.Example{Method: "GET", Path: "/", ContentType: routes.Text, Body: "/"}},
		{routes.Route{Method: "POST", Pattern: "/users"}, routes.Example{Method: "POST", Path: "/users", ContentType: routes.Text, Body: "/users"}},
		{
			routes.Route{Method: "PUT", Pattern: "/teams/{id}/members/{user}"},
			routes.Example{Method: "PUT", Path: "/teams/id-1/members/user-1", ContentType: routes.Text, Body: "id-1,user-1"},
		},
	}
	for _, tt := range tests {
		if got := tt.route.Example(); got != tt.want {
			t.Errorf("%v: got %v, want %v", tt.route, got, tt.want)
		}
	}
}

func TestNotFoundIsTheStandardLibrarys(t *testing.T) {
	w := httptest.NewRecorder()
	http.NotFound(w, nil)
	if got := w.Body.String(); got != routes.NotFound || w.Header().Get("Content-Type") != routes.Text {
		t.Errorf("http.NotFound: got %q of %q, want %q of %q", got, w.Header().Get("Content-Type"), routes.NotFound, routes.Text)
	}
}

func TestAnswerAllocatesTheBodyAlone(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.SetPathValue("owner", "tarehq")
	r.SetPathValue("repo", "tare")
	for pattern, want := range map[string]struct {
		body   string
		allocs float64
	}{
		"/repos/{owner}/{repo}": {"tarehq,tare", 1},
		"/repos":                {"/repos", 0},
	} {
		answer := routes.Route{Method: http.MethodGet, Pattern: pattern}.Answer()
		var body []byte
		allocs := testing.AllocsPerRun(100, func() { _, body = answer.Make(r.PathValue) })
		if string(body) != want.body || allocs > want.allocs {
			t.Errorf("%s: got %q with %v allocations, want %q with %v", pattern, body, allocs, want.body, want.allocs)
		}
	}
}

func TestTableIsAFlag(t *testing.T) {
	for name, want := range map[string]string{"ping": "1 routes", "ten": "10 routes", "github": "203 routes"} {
		var table routes.Table
		if err := table.Set(name); err != nil || table.String() != want {
			t.Errorf("Set(%q): got %v, %v, want %s", name, &table, err, want)
		}
	}
	var table routes.Table
	f := flag.NewFlagSet("", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.Var(&table, "routes", "")
	if err := f.Parse([]string{"-routes", "eleven"}); err == nil || !strings.Contains(err.Error(), "github, ping, ten") {
		t.Errorf("-routes eleven: got %v, want the known names", err)
	}
}

// A table serves any framework: here the standard library's.
func Example() {
	mux := http.NewServeMux()
	for _, r := range routes.Ten() {
		answer := r.Answer()
		mux.HandleFunc(r.Method+" "+r.Pattern, func(w http.ResponseWriter, req *http.Request) {
			answer.Write(w, req.PathValue)
		})
	}
	for _, path := range []string{"/ping", "/users/7/posts", "/nowhere"} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		fmt.Println(path, w.Code, strings.TrimSpace(w.Body.String()))
	}
	// Output:
	// /ping 200 {"message":"pong"}
	// /users/7/posts 200 7
	// /nowhere 404 404 page not found
}
