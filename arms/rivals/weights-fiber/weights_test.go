package main

import (
	"io"
	"maps"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/gofiber/fiber/v3"
	"go.opentelemetry.io/otel/trace"

	"github.com/tarehq/tare/arms/weights/plan"
)

// TestLayers has each layer answer the study's request, and no other layer be known.
func TestLayers(t *testing.T) {
	for _, name := range append(slices.Sorted(maps.Keys(makers)), "none", "recovery,accesslog") {
		app, err := newApp(name)
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest("GET", "/orders/7", nil)
		r.Header.Set("Authorization", "Bearer of another layer")
		r.Header.Set("Origin", plan.Origin)
		r.Header.Set("X-Api-Key", plan.Key)
		res, err := app.Test(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != 200 || len(body) != 1024 {
			t.Errorf("%s: %d, %d bytes, %v: %.200s", name, res.StatusCode, len(body), err, body)
		}
	}
	if _, err := newApp("magic"); err == nil {
		t.Error("a layer that is not there: got no error")
	}
}

// TestRefusals has a wrong key refused.
func TestRefusals(t *testing.T) {
	app, err := newApp("apikey")
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("GET", "/orders/7", nil)
	r.Header.Set("X-Api-Key", "another")
	res, err := app.Test(r)
	if err != nil || res.StatusCode != 401 {
		t.Errorf("got %+v, %v, want 401", res, err)
	}
}

// TestTraces has the handler behind a tracer see a span that is sampled, or not.
func TestTraces(t *testing.T) {
	for layer, want := range map[string]bool{"tracing": false, "tracing-sampled": true} {
		app, sampled := fiber.New(), false
		app.Use(makers[layer]())
		app.Get("/", func(c fiber.Ctx) error {
			sampled = trace.SpanContextFromContext(c.Context()).IsSampled()
			return nil
		})
		if _, err := app.Test(httptest.NewRequest("GET", "/", nil)); err != nil || sampled != want {
			t.Errorf("%s: sampled: got %t, want %t; %v", layer, sampled, want, err)
		}
	}
}
