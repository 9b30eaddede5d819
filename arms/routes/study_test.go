package routes_test

import (
	"cmp"
	"net/http"
	"testing"

	"github.com/tarehq/tare/arms/routes"
	"github.com/tarehq/tare/studies"
)

// The study of the GitHub table asks for each of its routes once, and for what the
// route answers.
func TestGitHubStudy(t *testing.T) {
	s, err := studies.Named("github")
	if err != nil {
		t.Fatal(err)
	}
	table, targets := routes.GitHub(), s.Workloads[0].Targets
	if len(targets) != len(table) {
		t.Fatalf("got %d targets, want one for each of %d routes", len(targets), len(table))
	}
	for i, r := range table {
		e, g := r.Example(), targets[i]
		method := cmp.Or(g.Method, http.MethodGet)
		v := g.Verify
		if method != e.Method || g.Path != e.Path || v.Status != http.StatusOK || v.Header["Content-Type"] != e.ContentType || *v.Length != int64(len(e.Body)) || v.Contains != e.Body {
			t.Errorf("target %d: got %s %s and %+v, want %+v", i, method, g.Path, v, e)
		}
	}
}
