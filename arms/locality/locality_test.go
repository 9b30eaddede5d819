package main

import (
	"bytes"
	"net/http/httptest"
	"slices"
	"testing"
	"unsafe"

	"github.com/tarehq/tare/arms/layers/plan"
)

func TestAnswersAreTheSame(t *testing.T) {
	for _, order := range []string{"calls", "shuffled"} {
		h, err := routes(order)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/few", "/many"} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
			if w.Code != 200 || !bytes.Equal(w.Body.Bytes(), plan.Body()) {
				t.Errorf("%s %s: got %d and %q", order, path, w.Code, w.Body)
			}
		}
	}
	if h, err := routes("random"); err == nil {
		t.Errorf("order random: got %v, want an error", h)
	}
}

// All nodes are called, each once, in memory's order or not; each fills a line.
func TestLink(t *testing.T) {
	for name, places := range map[string][]int{"calls": inOrder(many), "shuffled": shuffled(many), "few": shuffled(few)} {
		memory := make([]node, many)
		var called []int
		for n := link(memory, places); n != nil; n = n.next {
			called = append(called, int(uintptr(unsafe.Pointer(n))-uintptr(unsafe.Pointer(&memory[0])))/64)
		}
		if !slices.Equal(called, places) {
			t.Errorf("%s: %d nodes are called, in another order than that of their places", name, len(called))
		}
		if sorted := slices.IsSorted(called); sorted != (name == "calls") {
			t.Errorf("%s: in memory's order is %t", name, sorted)
		}
	}
	if size := unsafe.Sizeof(node{}); size != 64 {
		t.Errorf("a node takes %d bytes, want 64", size)
	}
}
