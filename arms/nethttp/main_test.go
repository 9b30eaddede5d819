package main

import (
	"net/http/httptest"
	"testing"

	"github.com/tarehq/tare/arms/routes"
)

func TestAnswersEveryRoute(t *testing.T) {
	for name, table := range map[string]routes.Table{"ping": routes.Ping(), "ten": routes.Ten(), "user": routes.User(), "github": routes.GitHub(), "fprintf": routes.User()} {
		h := handler(table)
		if name == "fprintf" {
			h = fprintf(table)
		}
		for _, r := range table {
			want := r.Example()
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(want.Method, want.Path, nil))
			if w.Code != 200 || w.Body.String() != want.Body || w.Header().Get("Content-Type") != want.ContentType {
				t.Errorf("%s: %s %s: got %d %q of %q, want 200 %q of %q", name, want.Method, want.Path,
					w.Code, w.Body, w.Header().Get("Content-Type"), want.Body, want.ContentType)
			}
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/no/such/route", nil))
		if w.Code != 404 || w.Body.String() != routes.NotFound {
			t.Errorf("%s: a miss: got %d %q, want 404 %q", name, w.Code, w.Body, routes.NotFound)
		}
	}
}
