package main

import (
	"net/http/httptest"
	"testing"

	"github.com/tarehq/tare/arms/routes"
)

func TestAnswersEveryRoute(t *testing.T) {
	for _, name := range []string{"ping", "ten", "github", "service:200", "static:20", "parameter:20", "regexp:20", "wildcard:20"} {
		var table routes.Table
		if err := table.Set(name); err != nil {
			t.Fatal(err)
		}
		h := handler(table)
		for _, r := range table {
			want := r.Example()
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(want.Method, want.Path, nil))
			if w.Code != 200 || w.Body.String() != want.Body || w.Header().Get("Content-Type") != want.ContentType {
				t.Errorf("%s: %s %s: got %d %q of %q, want 200 %q of %q", name, want.Method, want.Path,
					w.Code, w.Body, w.Header().Get("Content-Type"), want.Body, want.ContentType)
			}
		}
		for _, path := range []string{"/no/such/route", "/orders/nothing/42"} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
			if w.Code != 404 || w.Body.String() != routes.NotFound {
				t.Errorf("%s: %s: got %d %q, want 404 %q", name, path, w.Code, w.Body, routes.NotFound)
			}
		}
	}
}
