package initverb

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tarehq/tare/cmd/tare/internal/compose"
	"github.com/tarehq/tare/lab"
	"github.com/tarehq/tare/lab/answer"
	"github.com/tarehq/tare/lab/study"
)

// writeModule makes a module with programs in a folder of its own, and goes there.
func writeModule(t *testing.T, programs map[string]string) {
	t.Helper()
	t.Setenv("GOWORK", "off")
	t.Chdir(t.TempDir())
	programs["go.mod"] = "module example.com/shop\n\ngo 1.26\n"
	for path, content := range programs {
		if i := strings.LastIndexByte(path, '/'); i > 0 {
			if err := os.MkdirAll(path[:i], 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

const (
	server = "package main\n\nimport _ \"net/http\"\n\nfunc main() {}\n"
	tool   = "package main\n\nfunc main() {}\n"
)

func TestFindServer(t *testing.T) {
	for _, tt := range []struct {
		name      string
		files     map[string]string
		want, err string
	}{
		{"one of two", map[string]string{"cmd/api/main.go": server, "cmd/tool/main.go": tool}, "./cmd/api", ""},
		{"here first", map[string]string{"main.go": server, "cmd/api/main.go": server}, ".", ""},
		{"several", map[string]string{"cmd/a/main.go": server, "cmd/b/main.go": server}, "", "2 programs import an HTTP server: ./cmd/a, ./cmd/b"},
		{"none", map[string]string{"main.go": tool}, "", "no main package below this folder imports an HTTP server"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			writeModule(t, tt.files)
			got, err := findServer(t.Context())
			if got != tt.want || (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
				t.Errorf("got %q, %v, want %q, %q", got, err, tt.want, tt.err)
			}
		})
	}
}

func TestFindRoutes(t *testing.T) {
	writeModule(t, map[string]string{
		"main.go": `package main

import (
	"net/http"

	"example.com/shop/orders"
)

func main() {
	http.HandleFunc("GET /orders", orders.List)
	http.HandleFunc("GET /{$}", orders.List)
	http.HandleFunc("/orders/{id}", orders.List)
	http.HandleFunc("/shutdown", orders.List)
	http.Handle("/debug/vars", nil)
}
`,
		"orders/orders.go": `package orders

import "net/http"

type router struct{}

func (router) Get(string, http.HandlerFunc) {}
func (router) Post(string, http.HandlerFunc) {}

func List(w http.ResponseWriter, r *http.Request) {
	var g router
	g.Get("/items", List)
	g.Get("name", List)
	g.Post("/items/new", List)
	http.HandleFunc("POST /orders", List)
	http.HandleFunc("example.com/host", List)
	r.Header.Get("/x")
}
`,
	})
	got, err := findRoutes(t.Context(), ".")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	if want := (routes{"/debug/vars", "/items", "/orders/{id}", "/shutdown", "GET /orders", "GET /{$}", "POST /orders", "example.com/host"}); !slices.Equal(got, want) {
		t.Errorf("got routes %q, want %q", got, want)
	}
	if paths, want := got.candidates(), []string{"/", "/items", "/orders", "/host"}; !slices.Equal(paths, want) {
		t.Errorf("got candidates %q, want %q", paths, want)
	}
	if rest, want := got.without([]study.Target{{Path: "/"}, {Path: "/items"}, {Path: "/orders"}}), []string{"/debug/vars", "/orders/{id}", "/shutdown", "example.com/host"}; !slices.Equal(rest, want) {
		t.Errorf("got other routes %q, want %q", rest, want)
	}
}

func TestKeepSuccessful(t *testing.T) {
	for _, tt := range []struct {
		name     string
		statuses []int // of /, /healthz and /orders, by the one arm and by the other
		want     string
	}{
		{"work", []int{200, 200, 200, 200, 200, 200}, "/ /orders"},
		{"not on both", []int{200, 200, 200, 200, 200, 404}, "/"},
		{"monitoring alone", []int{404, 200, 500, 404, 200, 500}, "/healthz"},
		{"redirect", []int{302, 404, 404, 302, 404, 404}, ""},
	} {
		p := &compose.Plan{Targets: []study.Target{{Path: "/"}, {Path: "/healthz"}, {Path: "/orders"}}}
		var answers []lab.Answer
		for _, status := range tt.statuses {
			answers = append(answers, lab.Answer{Answer: answer.Answer{Status: status}})
		}
		kept, err := keepSuccessful(p, answers)
		var paths []string
		for _, one := range p.Targets {
			paths = append(paths, one.Path)
		}
		if tt.want == "" {
			if err == nil || !strings.Contains(err.Error(), "/ (status 302), /healthz (status 404)") {
				t.Errorf("%s: error %v, want one that lists the paths", tt.name, err)
			}
			continue
		}
		if got := strings.Join(paths, " "); err != nil || got != tt.want || len(kept) != 2*len(paths) {
			t.Errorf("%s: kept %q and %d answers, %v, want %q", tt.name, got, len(kept), err, tt.want)
		}
	}
}
