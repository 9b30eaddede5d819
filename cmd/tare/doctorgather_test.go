package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/tarehq/tare/cost/doctor"
	"github.com/tarehq/tare/cost/pprof"
)

// TestLeaks asks services with and without the collector's word on goroutines
// that wait for ever: that there is none is no matter, that it fails is.
func TestLeaks(t *testing.T) {
	recorded, err := os.ReadFile("../../cost/pprof/testdata/goroutineleak.pb.gz")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		status int
		answer []byte
		stacks int
		warns  string
	}{
		{http.StatusOK, recorded, 2, ""},
		{http.StatusNotFound, []byte("Unknown profile"), 0, ""},
		{http.StatusForbidden, []byte("not you"), 0, "403 Forbidden"},
		{http.StatusOK, []byte("no profile"), 0, "goroutineleak: "},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(tc.status)
			w.Write(tc.answer)
		}))
		find, err := pprof.Find(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		g := &gathering{Evidence: &doctor.Evidence{}}
		g.leaks(t.Context(), find)
		s.Close()
		warned := strings.Join(g.Warnings, "; ")
		if len(g.Leaked) != tc.stacks || (warned == "") != (tc.warns == "") || !strings.Contains(warned, tc.warns) {
			t.Errorf("%d %.20q: %d stacks, warning %q, want %d and %q", tc.status, tc.answer, len(g.Leaked), warned, tc.stacks, tc.warns)
		}
	}
}
