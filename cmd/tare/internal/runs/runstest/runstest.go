// Package runstest makes runs for tests.
package runstest

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/studies"
)

// Interrupted is a run of study null that was interrupted after its first trial.
func Interrupted(t *testing.T) *record.Run {
	t.Helper()
	s, err := studies.Named("null")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "run")
	w, err := record.Create(dir, record.Manifest{ID: "run", Study: *s})
	if err != nil {
		t.Fatal(err)
	}
	err = w.Append(record.Trial{Arm: s.Control, Workload: s.Primary.Workload, Requests: 20_000, Metrics: map[string]float64{s.Primary.Metric: 1000}}, nil)
	if err := errors.Join(err, w.Finish("interrupted")); err != nil {
		t.Fatal(err)
	}
	run, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return run
}
