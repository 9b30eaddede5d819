package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/tarehq/tare/arms/routes"
)

func TestFindsEveryRoute(t *testing.T) {
	for _, name := range []string{"ping", "ten", "github", "service:200", "static:20", "parameter:20", "regexp:20", "wildcard:20", "constrained:20"} {
		var table routes.Table
		if err := table.Set(name); err != nil {
			t.Fatal(err)
		}
		for by, h := range map[string]http.Handler{"regexps": newList(table), "map": newExact(table)} {
			for _, r := range table {
				want, status := r.Example(), http.StatusOK
				if by == "map" && r.Params() != nil {
					status, want.Body, want.ContentType = http.StatusNotFound, routes.NotFound, routes.Text
				}
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest(want.Method, want.Path, nil))
				if w.Code != status || w.Body.String() != want.Body || w.Header().Get("Content-Type") != want.ContentType {
					t.Errorf("%s, %s: %s %s: got %d %q of %q, want %d %q of %q", name, by, want.Method, want.Path,
						w.Code, w.Body, w.Header().Get("Content-Type"), status, want.Body, want.ContentType)
				}
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("GET", "/orders/nothing/42", nil))
			if w.Code != 404 || w.Body.String() != routes.NotFound {
				t.Errorf("%s, %s: a miss: got %d %q, want 404 %q", name, by, w.Code, w.Body, routes.NotFound)
			}
		}
	}
}
