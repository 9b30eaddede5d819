package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime/trace"
	"testing"
	"time"

	"github.com/tarehq/tare/arms/injected/work"
	"github.com/tarehq/tare/cost/exectrace"
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

// A trace names the layers of a home-made chain, by the rules learned from itself.
func TestTraceOfOwnChain(t *testing.T) {
	h, err := handler("own", work.Amounts{Spin: 10 * time.Microsecond, Block: 2 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(h)
	defer srv.Close()
	var b bytes.Buffer
	if err := trace.Start(&b); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		res, err := http.Get(srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
	trace.Stop()
	whole, err := exectrace.Read(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	r, err := exectrace.ReadRequests(bytes.NewReader(b.Bytes()), exectrace.Options{SlowerThan: time.Millisecond, Rules: whole.Learn()})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range r.Slow.Parts {
		if p.State == exectrace.Sleeping && p.Owner.Name == "injected.block" {
			return
		}
	}
	t.Errorf("%d slow requests; no time asleep is injected.block's: %+v", r.Slow.Count, r.Slow.Parts)
}

func get(h http.Handler, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}
