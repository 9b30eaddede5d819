package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Whatever they leave behind, all answer the same.
func TestAnswersAreTheSame(t *testing.T) {
	for _, kind := range []string{"none", "select", "channel", "client", "shared-client", "escape", "stack"} {
		w := httptest.NewRecorder()
		made(t, kind).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		if w.Code != 200 || w.Body.String() != body {
			t.Errorf("%s: got %d %q, want %q", kind, w.Code, w.Body, body)
		}
	}
	if h, err := handler("memory"); err == nil || !strings.Contains(err.Error(), names) {
		t.Errorf("leak memory: got %v, %v, want an error that names %s", h, err, names)
	}
}

// Each leak leaves as many goroutines as it says, and the others none.
func TestGoroutinesLeft(t *testing.T) {
	const n = 20
	for kind, each := range map[string]int{"none": 0, "shared-client": 0, "escape": 0, "select": 1, "channel": 1, "client": 3} {
		h := made(t, kind)
		get(h) // a shared client's connection is there from the first request on
		before := settled()
		for range n {
			get(h)
		}
		// What stays stays; what ends may take a while to.
		got := settled() - before
		for i := 0; i < 100 && got > each*n; i++ {
			time.Sleep(10 * time.Millisecond)
			got = settled() - before
		}
		if got != each*n {
			t.Errorf("%s: %d requests left %d goroutines, want %d each", kind, n, got, each)
		}
	}
}

// settled is the number of goroutines once it no longer changes.
func settled() int {
	last, same := runtime.NumGoroutine(), 0
	for i := 0; i < 200 && same < 5; i++ {
		time.Sleep(5 * time.Millisecond)
		if n := runtime.NumGoroutine(); n == last {
			same++
		} else {
			last, same = n, 0
		}
	}
	return last
}

func TestEscape(t *testing.T) {
	w, r := &discard{http.Header{}}, httptest.NewRequest("GET", "/", nil)
	allocs := func(h http.HandlerFunc) float64 { return testing.AllocsPerRun(100, func() { h(w, r) }) }
	if escaping, staying := allocs(escapes), allocs(stays); escaping != staying+1 {
		t.Errorf("allocations: %v where the scratch escapes and %v where it stays, want one more", escaping, staying)
	}
}

// The study names the lines that leak as they are numbered here.
func TestStudyNamesTheLines(t *testing.T) {
	yaml, err := os.ReadFile(filepath.Join("..", "..", "studies", "leaks.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for mark, file := range map[string]string{"select": "goroutines.go", "channel": "goroutines.go", "escape": "escape.go"} {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		before, _, found := strings.Cut(string(source), "// leaks: "+mark)
		want := fmt.Sprintf(" %s:%d", file, strings.Count(before, "\n")+1)
		if !found || !strings.Contains(string(yaml), want) {
			t.Errorf("studies/leaks.yaml does not say %q for the leak %s", want, mark)
		}
	}
}

func made(t *testing.T, kind string) http.Handler {
	t.Helper()
	h, err := handler(kind)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func get(h http.Handler) {
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
}

// discard keeps nothing of an answer.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}
