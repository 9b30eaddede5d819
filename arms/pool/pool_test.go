package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Whatever a buffer comes from, the answer is the same, again and again.
func TestAnswersAreTheSame(t *testing.T) {
	for path, size := range map[string]int{"/small": 1 << 10, "/large": 64 << 10, "/huge": 1 << 20} {
		var want []byte
		for _, buffers := range []string{"new", "pooled", "by-value", "unreturned", "hoarding"} {
			s := made(t, buffers)
			for i := range 2 {
				w := httptest.NewRecorder()
				s.routes().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
				got := w.Body.Bytes()
				if want == nil {
					want = bytes.Clone(got)
				}
				if !bytes.Equal(got, want) || w.Header().Get("Content-Length") != fmt.Sprint(len(got)) {
					t.Errorf("%s by %s, answer %d: %d bytes, want the %d that %q gave", path, buffers, i, len(got), len(want), "new")
				}
			}
		}
		if !json.Valid(want) || len(want) > size || len(want) < size*9/10 {
			t.Errorf("%s: %d bytes, want JSON of almost %d", path, len(want), size)
		}
	}
}

// Each way of using a pool has the misses and returns that make it what it is.
func TestCounts(t *testing.T) {
	const n = 16
	for _, c := range []struct {
		buffers, path          string
		returns                float64
		fewestMisses, mostMiss float64
	}{
		{"pooled", "/small", n, 1, n / 2},
		{"by-value", "/small", n, 1, n / 2},
		{"unreturned", "/small", 0, n, n},
		{"hoarding", "/huge", n, 1, n / 2},
		{"pooled", "/huge", 0, n, n},
		{"new", "/small", 0, 0, 0},
	} {
		s := made(t, c.buffers)
		h := s.routes()
		for range n {
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", c.path, nil))
		}
		m := s.counts.metrics()
		if m["pool/returns"] != c.returns {
			t.Errorf("%s %s: got %v returns, want %v", c.buffers, c.path, m["pool/returns"], c.returns)
		}
		if got := m["pool/misses"]; (got < c.fewestMisses || got > c.mostMiss) && !raced {
			t.Errorf("%s %s: got %v misses, want %v to %v", c.buffers, c.path, got, c.fewestMisses, c.mostMiss)
		}
	}
}

// A value that goes into the pool allocates, a pointer does not.
func TestByValueAllocates(t *testing.T) {
	if raced {
		t.Skip("with the race detector a pool drops what it likes")
	}
	w := &discard{http.Header{}}
	allocs := map[string]float64{}
	for _, buffers := range []string{"pooled", "by-value", "new"} {
		s := made(t, buffers)
		allocs[buffers] = testing.AllocsPerRun(100, func() { s.answer(w, fitting(1<<10)) })
	}
	if allocs["by-value"] <= allocs["pooled"] || allocs["new"] <= allocs["pooled"] {
		t.Errorf("allocations: got %v, want fewest with pooled", allocs)
	}
}

// The study names the lines at which a buffer is made beside the pool, and by a
// pool that nobody gives back to.
func TestStudyNamesLines(t *testing.T) {
	study, err := os.ReadFile(filepath.Join("..", "..", "studies", "pool.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("buffers.go")
	if err != nil {
		t.Fatal(err)
	}
	for name, above := range map[string]string{
		"answerNew":          "func answerNew(w http.ResponseWriter, items int) {\n",
		"(*unreturned).make": "func (p *unreturned) make() any {\n\tp.misses.Add(1)\n",
	} {
		head, _, found := strings.Cut(string(source), above)
		want := fmt.Sprintf("main.%s buffers.go:%d", name, strings.Count(head+above, "\n")+1)
		if !found || !strings.Contains(string(study), want) {
			t.Errorf("studies/pool.yaml does not say %q", want)
		}
	}
}

func TestUnknownBuffers(t *testing.T) {
	if _, err := newService("heap"); err == nil || !strings.Contains(err.Error(), names) {
		t.Errorf("buffers heap: got %v, want an error that names %s", err, names)
	}
}

func made(t *testing.T, buffers string) *service {
	t.Helper()
	s, err := newService(buffers)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// discard keeps nothing of an answer.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}
