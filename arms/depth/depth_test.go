package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"

	"github.com/tarehq/tare/arms/layers/plan"
)

func TestAnswersAreTheSame(t *testing.T) {
	for _, depth := range []plan.Depth{0, 1, 5, 50} {
		for _, path := range []string{"/now", "/goroutine", "/held"} {
			w := httptest.NewRecorder()
			routes(depth, 0).ServeHTTP(w, httptest.NewRequest("GET", path, nil))
			if w.Code != 200 || !bytes.Equal(w.Body.Bytes(), plan.Body()) {
				t.Errorf("depth %d, %s: got %d and %d bytes", depth, path, w.Code, w.Body.Len())
			}
		}
	}
}

// There are as many layers on the stack as were asked for.
func TestNested(t *testing.T) {
	frames := map[plan.Depth]int{}
	for _, depth := range []plan.Depth{0, 7, 50} {
		nested(depth, func(http.ResponseWriter, *http.Request) {
			frames[depth] = runtime.Callers(0, make([]uintptr, 1000))
		}).ServeHTTP(nil, nil)
	}
	each := (frames[50] - frames[0]) / 50
	if each < 1 || frames[7]-frames[0] != 7*each || frames[50]-frames[0] != 50*each {
		t.Errorf("frames by depth: got %v, want as many more for each layer", frames)
	}
}
