package main

import (
	"maps"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/tarehq/tare/arms/weights/plan"
)

// TestLayers has each layer answer the study's request, and no other layer be known.
func TestLayers(t *testing.T) {
	for _, name := range append(slices.Sorted(maps.Keys(makers)), "none", "recovery,accesslog") {
		h, err := handler(name)
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest("GET", "/orders/7", nil)
		r.Header.Set("Origin", plan.Origin)
		r.Header.Set("X-Api-Key", plan.Key)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != 200 || w.Body.Len() != 1024 {
			t.Errorf("%s: %d, %d bytes: %.200s", name, w.Code, w.Body.Len(), w.Body)
		}
	}
	if _, err := handler("magic"); err == nil {
		t.Error("a layer that is not there: got no error")
	}
}
