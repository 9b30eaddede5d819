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

func service(t *testing.T, n int) routes.Table {
	t.Helper()
	table, err := routes.Service(n)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func ofKind(t *testing.T, kind string, n int) routes.Table {
	t.Helper()
	table, err := routes.OfKind(kind, n)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestTables(t *testing.T) {
	tests := []struct {
		name          string
		table         routes.Table
		routes, fixed int
	}{
		{"ping", routes.Ping(), 1, 1},
		{"ten", routes.Ten(), 10, 7},
		{"user", routes.User(), 10, 10},
		{"github", routes.GitHub(), 203, 36},
		{"static", routes.Static(), 157, 157},
		{"gplus", routes.GPlus(), 13, 2},
		{"parse", routes.Parse(), 26, 10},
		{"service:10", service(t, 10), 10, 3},
		{"service:5000", service(t, 5000), 5000, 1500},
		{"static:5000", ofKind(t, "static", 5000), 5000, 5000},
		{"parameter:1", ofKind(t, "parameter", 1), 1, 0},
		{"regexp:100", ofKind(t, "regexp", 100), 100, 0},
		{"wildcard:100", ofKind(t, "wildcard", 100), 100, 0},
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
		pattern, path, colon, expr string
		params                     []string
	}{
		{"/{$}", "/", "/", "^/$", nil},
		{"/users", "/users", "/users", "^/users$", nil},
		{"/users/{id}", "/users/{id}", "/users/:id", "^/users/([^/]+)$", []string{"id"}},
		{"/repos/{owner}/{repo}/keys/{id}", "/repos/{owner}/{repo}/keys/{id}", "/repos/:owner/:repo/keys/:id", "^/repos/([^/]+)/([^/]+)/keys/([^/]+)$", []string{"owner", "repo", "id"}},
		{"/users/{id:[0-9]+}/posts", "/users/{id:[0-9]+}/posts", "/users/:id/posts", "^/users/([0-9]+)/posts$", []string{"id"}},
		{"/files/{path...}", "/files/*", "/files/*path", "^/files/(.*)$", []string{"path"}},
	}
	for _, tt := range tests {
		r := routes.Route{Method: http.MethodGet, Pattern: tt.pattern}
		if r.Path() != tt.path || r.Colon() != tt.colon || r.Expr() != tt.expr || !slices.Equal(r.Params(), tt.params) {
			t.Errorf("%s: got %q, %q, %q, %q, want %q, %q, %q, %q", tt.pattern,
				r.Path(), r.Colon(), r.Expr(), r.Params(), tt.path, tt.colon, tt.expr, tt.params)
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
		{routes.Route{Method: "GET", Pattern: "/users/{id:[0-9]+}"}, routes.Example{Method: "GET", Path: "/users/42", ContentType: routes.Text, Body: "42"}},
		{routes.Route{Method: "GET", Pattern: "/files/{path...}"}, routes.Example{Method: "GET", Path: "/files/path-1", ContentType: routes.Text, Body: "path-1"}},
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
	for name, want := range map[string]string{"ping": "1 routes", "ten": "10 routes", "github": "203 routes", "static": "157 routes", "parse": "26 routes", "service:200": "200 routes", "constrained:30": "30 routes", "wildcard:7": "7 routes"} {
		var table routes.Table
		if err := table.Set(name); err != nil || table.String() != want {
			t.Errorf("Set(%q): got %v, %v, want %s", name, &table, err, want)
		}
	}
	for name, want := range map[string]string{
		"eleven":         "github, gplus, parse, ping, static, ten, user, service:N, constrained:N and, of one kind, parameter:N, regexp:N, static:N, wildcard:N",
		"service":        `"" is no number of routes`,
		"static:many":    `"many" is no number of routes`,
		"static:0":       "want 1 to 5000",
		"regexp:5001":    "want 1 to 5000",
		"constrained:15": "want a multiple of 10 from 10 to 5000",
		"service:15":     "want a multiple of 10 from 10 to 5000",
		"service:5010":   "want a multiple of 10 from 10 to 5000",
		"service:-10":    "want a multiple of 10 from 10 to 5000",
	} {
		var table routes.Table
		f := flag.NewFlagSet("", flag.ContinueOnError)
		f.SetOutput(io.Discard)
		f.Var(&table, "routes", "")
		if err := f.Parse([]string{"-routes", name}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("-routes %s: got %v, want %q", name, err, want)
		}
	}
}

// What a framework says of the rest of a path, by which name and how, makes no
// difference to the answer.
func TestRestOfThePath(t *testing.T) {
	answer := routes.Route{Method: "GET", Pattern: "/files/{owner}/{path...}"}.Answer()
	for name, value := range map[string]map[string]string{
		"by its name":  {"owner": "tarehq", "path": "a/b.txt"},
		"with a slash": {"owner": "tarehq", "path": "/a/b.txt"},
		"as a star":    {"owner": "tarehq", "*": "a/b.txt"},
	} {
		if _, body := answer.Make(func(name string) string { return value[name] }); string(body) != "tarehq,a/b.txt" {
			t.Errorf("%s: got %q, want %q", name, body, "tarehq,a/b.txt")
		}
	}
	if _, body := answer.Make(func(name string) string { return map[string]string{"owner": "/tarehq"}[name] }); string(body) != "/tarehq," {
		t.Errorf("an empty rest: got %q, want %q", body, "/tarehq,")
	}
}

// Every table of a kind of study can be asked for the same.
func TestGeneratedTablesHoldTheSame(t *testing.T) {
	for n := 10; n <= 5000; n *= 5 {
		for pattern, at := range map[string]int{"/reports/orders/daily": 8, "/orders/{id}/history/{version}": 6, "/files/orders/{path...}": 9} {
			want := n/10/2*10 + at
			if got := slices.Index(service(t, n), routes.Route{Method: "GET", Pattern: pattern}); got != want {
				t.Errorf("%d routes: %s stands at %d, want %d", n, pattern, got, want)
			}
		}
		for kind, end := range map[string]string{"static": "42", "parameter": "{id}", "regexp": "{id:[0-9]+}", "wildcard": "{path...}"} {
			want := routes.Route{Method: "GET", Pattern: "/orders/items/" + end}
			if got := slices.Index(ofKind(t, kind, n), want); got != n/2 {
				t.Errorf("%d routes: %s stands at %d, want %d", n, want.Pattern, got, n/2)
			}
		}
	}
}

// What differs between a service and a constrained one is the expressions alone.
func TestConstrainedIsAServiceWithExpressions(t *testing.T) {
	plain := service(t, 1000)
	held, err := routes.Constrained(1000)
	if err != nil {
		t.Fatal(err)
	}
	expressions := 0
	for i, r := range held {
		expressions += strings.Count(r.Pattern, ":[0-9]+}")
		bare := routes.Route{Method: r.Method, Pattern: strings.ReplaceAll(r.Pattern, ":[0-9]+}", "}")}
		if bare != plain[i] {
			t.Errorf("route %d: got %v, want %v with expressions", i, r, plain[i])
		}
	}
	if want := 700; expressions != want {
		t.Errorf("got %d expressions, want %d", expressions, want)
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
