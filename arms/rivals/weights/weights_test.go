package main

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/tarehq/tare/arms/weights/plan"
)

// request is the study's.
func request(t *testing.T) *http.Request {
	t.Helper()
	b, err := os.ReadFile("../../../studies/weights.yaml")
	if err != nil {
		t.Fatal(err)
	}
	token := regexp.MustCompile(`Authorization: (Bearer \S+)`).FindSubmatch(b)
	if token == nil {
		t.Fatal("studies/weights.yaml has no token")
	}
	r := httptest.NewRequest("GET", "/orders/7", nil)
	r.Header.Set("Authorization", string(token[1]))
	r.Header.Set("Origin", plan.Origin)
	r.Header.Set("X-Api-Key", plan.Key)
	return r
}

// status is of the answer of layers to a request.
func status(t *testing.T, layers string, r *http.Request) int {
	t.Helper()
	h, err := handler(layers)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code
}

// TestLayers has each layer answer the study's request.
func TestLayers(t *testing.T) {
	asked := request(t)
	t.Chdir(t.TempDir())
	for _, name := range append(slices.Sorted(maps.Keys(makers)), "none", "guards") {
		h, err := handler(name)
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, asked.Clone(t.Context()))
		if w.Code != 200 || w.Body.Len() != 1024 {
			t.Errorf("%s: %d, %d bytes: %.200s", name, w.Code, w.Body.Len(), w.Body)
		}
	}
}

// TestRefusals has each layer that verifies a token refuse a forged one and none at all, and
// each list refuse an address that is denied.
func TestRefusals(t *testing.T) {
	none, forged, denied := request(t), request(t), request(t)
	none.Header.Del("Authorization")
	forged.Header.Set("Authorization", forged.Header.Get("Authorization")+"A")
	denied.RemoteAddr = plan.Denied()[0].Addr().String() + ":1"
	tried := 0
	for name := range makers {
		switch {
		case strings.HasPrefix(name, "jwt-"):
			for what, r := range map[string]*http.Request{"no token": none, "a forged one": forged} {
				if got := status(t, name, r.Clone(t.Context())); got != http.StatusUnauthorized {
					t.Errorf("%s: %s: got %d, want 401", name, what, got)
				}
			}
			tried++
		case strings.HasPrefix(name, "ipfilter-"):
			if got := status(t, name, denied.Clone(t.Context())); got != http.StatusForbidden {
				t.Errorf("%s: got %d, want 403", name, got)
			}
			tried++
		}
	}
	if tried < 7 {
		t.Errorf("%d layers were tried, want four of JWT and three lists", tried)
	}
}

// TestTraces has the handler behind each tracer see a span that is sampled where the layer's
// name says so.
func TestTraces(t *testing.T) {
	for name, layer := range makers {
		if !strings.HasPrefix(name, "tracing") {
			continue
		}
		var seen trace.SpanContext
		h := layer()(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = trace.SpanContextFromContext(r.Context()) }))
		h.ServeHTTP(httptest.NewRecorder(), request(t))
		if want := strings.Contains(name, "sampled"); seen.IsSampled() != want {
			t.Errorf("%s: got a span that is sampled: %t, want %t", name, seen.IsSampled(), want)
		}
	}
}

// TestBreakersOpen has a handler fail until the breaker keeps requests from it.
func TestBreakersOpen(t *testing.T) {
	for _, name := range []string{"breaker-gobreaker", "breaker-failsafe"} {
		h := makers[name]()(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }))
		var got []int
		for range 8 {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, request(t))
			got = append(got, w.Code)
		}
		if want := []int{500, 500, 500, 500, 500, 500, 503, 503}; !slices.Equal(got, want) {
			t.Errorf("%s: got %d, want %d", name, got, want)
		}
	}
}
