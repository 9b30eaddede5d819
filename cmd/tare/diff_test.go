package main

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/pprof"
)

// save writes stacks as a profile to a file of a name.
func save(t *testing.T, name string, kind pprof.Kind, stacks ...cost.Stack) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := pprof.New(kind, time.Second, stacks).Write(f); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestDiffSampled checks that allocations are compared by how often they were
// sampled: one object of 64 bytes is in the profile as 8,192.
func TestDiffSampled(t *testing.T) {
	objects := cost.Stack{Frames: []cost.Frame{{Func: "main.work"}}, Count: 8192, Value: 8192 * 64}
	s := &sides{source: save(t, "allocs.pb.gz", pprof.Allocs, objects)}
	if _, err := s.read(); err != nil {
		t.Fatal(err)
	}
	if got := s.allocs[0].Stacks[0]; math.Abs(got.Count-1) > 0.001 || got.Value != objects.Value {
		t.Errorf("compared as %g stacks of %g bytes, want 1 of %g", got.Count, got.Value, objects.Value)
	}
}
