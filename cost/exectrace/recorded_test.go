package exectrace_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cost/exectrace"
)

// TestRecorded reads traces of frameworks that this module does not require: see
// testdata/record and testdata/recordrpc.
func TestRecorded(t *testing.T) {
	for _, tc := range []struct {
		name  string
		owner string
		cut   int
	}{
		{"chi", "record.serveChi", 0},
		{"gin", "record.serveGin", 0},
		{"echo", "record.serveEcho", 0},
		{"fiber", "record.serveFiber", 0},
		{"fasthttp", "record.serveFastHTTP", 0},
		{"grpc", "recordrpc.sleeps", 0},
		{"grpc-workers", "recordrpc.sleeps", 2}, // the first of either worker, which may have waited within it
		{"grpc-behind", "recordrpc.sleeps", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f, err := os.Open(filepath.Join("testdata", tc.name+".trace"))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			r, err := exectrace.ReadRequests(f, exectrace.Options{SlowerThan: 5 * time.Millisecond, Top: 2})
			if err != nil {
				t.Fatal(err)
			}
			adds(t, r)
			if r.Count != 8-tc.cut || r.Cut != tc.cut || r.Slow.Count != 2 || len(r.Warnings) > 0 {
				t.Errorf("%d requests, %d cut, %d slow, warnings %q, want %d, %d, 2 and none", r.Count, r.Cut, r.Slow.Count, r.Warnings, 8-tc.cut, tc.cut)
			}
			if p := r.Slow.Parts[0]; p.State != exectrace.Sleeping || p.Owner.Name != tc.owner || p.Time < 10*time.Millisecond || p.Requests != 2 {
				t.Errorf("slow requests spent their time on %s, want a sleep of %s", list(r.Slow.Parts), tc.owner)
			}
		})
	}
}

// TestNotFound reads traces of engines whose requests are not found, and wants that
// to be said.
func TestNotFound(t *testing.T) {
	for _, engine := range []string{"hertz", "nbio"} {
		f, err := os.Open(filepath.Join("testdata", engine+".trace"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		r, err := exectrace.ReadRequests(f, exectrace.Options{})
		if err != nil {
			t.Fatal(err)
		}
		named := slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, "that "+engine+" answers are not found") })
		if r.Count+r.Cut != 0 || !named {
			t.Errorf("%s: %d requests and %d cut, warnings %q; want none, and one that names it", engine, r.Count, r.Cut, r.Warnings)
		}
	}
}

// FuzzReadRequests damages traces: what is read of them still adds up, and nothing
// hangs or panics.
func FuzzReadRequests(f *testing.F) {
	files, err := filepath.Glob("testdata/*.trace")
	if err != nil || len(files) == 0 {
		f.Fatalf("traces to begin with: %v, %v", files, err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(b[:len(b)/2])
	}
	f.Add([]byte("go 1.22 trace\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := exectrace.ReadRequests(bytes.NewReader(b), exectrace.Options{})
		if err == nil {
			adds(t, r)
			r.Differences()
		}
		if tr, err := exectrace.Read(bytes.NewReader(b)); err == nil && tr.Duration < 0 {
			t.Errorf("a trace of %s", tr.Duration)
		}
	})
}
