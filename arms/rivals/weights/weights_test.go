package main

import (
	"maps"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/tarehq/tare/arms/weights/plan"
)

// TestLayers has each layer answer the study's request.
func TestLayers(t *testing.T) {
	b, err := os.ReadFile("../../../studies/weights.yaml")
	if err != nil {
		t.Fatal(err)
	}
	token := regexp.MustCompile(`Authorization: (Bearer \S+)`).FindSubmatch(b)
	if token == nil {
		t.Fatal("studies/weights.yaml has no token")
	}
	t.Chdir(t.TempDir())
	for _, name := range append(slices.Sorted(maps.Keys(makers)), "none", "guards") {
		h, err := handler(name)
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest("GET", "/orders/7", nil)
		r.Header.Set("Authorization", string(token[1]))
		r.Header.Set("Origin", plan.Origin)
		r.Header.Set("X-Api-Key", plan.Key)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != 200 || w.Body.Len() != 1024 {
			t.Errorf("%s: %d, %d bytes: %.200s", name, w.Code, w.Body.Len(), w.Body)
		}
	}
}
