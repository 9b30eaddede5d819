package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/tarehq/tare/arms/injected/work"
)

func TestHandler(t *testing.T) {
	for _, by := range []string{"nested", "chain", "own"} {
		h, err := handler(by, work.Amounts{Spin: time.Microsecond, Alloc: 1, Lock: time.Microsecond})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if got := get(h, "/"); got.Code != http.StatusOK || got.Body.String() != work.Body || got.Header().Get("Content-Type") != "text/plain" {
				t.Errorf("by %s: got %d %q", by, got.Code, got.Body)
			}
		}
		var truth map[string]struct{ Calls int }
		if err := json.Unmarshal(get(h, "/truth").Body.Bytes(), &truth); err != nil {
			t.Fatal(err)
		}
		for what, want := range map[string]int{"spin": 3, "alloc": 3, "lock": 3, "block": 0, "log": 0} {
			if truth[what].Calls != want {
				t.Errorf("by %s, %s: got %d calls, want %d", by, what, truth[what].Calls, want)
			}
		}
		if got := get(h, "/debug/pprof/cmdline"); got.Code != http.StatusOK {
			t.Errorf("by %s: profiles: got %d", by, got.Code)
		}
	}
	if _, err := handler("magic", work.Amounts{}); err == nil {
		t.Error("by magic: got no error")
	}
}

func get(h http.Handler, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}
