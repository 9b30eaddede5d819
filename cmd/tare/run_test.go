package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/studies"
)

// cut is a run that was interrupted after its first trial.
func cut(t *testing.T) *record.Run {
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

// What stops a run that has trials is told with how to go on, also where no report
// can be written; not where there is nothing to go on with.
func TestRunStopped(t *testing.T) {
	run := cut(t)
	dir := run.Dir
	if err := os.Mkdir(filepath.Join(dir, "report.html"), 0o755); err != nil {
		t.Fatal(err)
	}
	full := errors.New("no space left on device")
	ends := func(stopped error) string {
		var said strings.Builder
		quiet := &terminal{out: io.Discard, err: &said, width: 80}
		if got := complain(quiet, (&runCmd{}).finish(quiet, run, stopped)); got != exitCould {
			t.Errorf("stopped by %v: got exit status %d, want %d", stopped, got, exitCould)
		}
		return said.String()
	}
	hint := "go on with `tare run --resume " + dir + "`"
	if said := ends(full); !strings.Contains(said, full.Error()) || !strings.Contains(said, "report.html") || !strings.Contains(said, hint) {
		t.Errorf("got %q, want why it stopped, that there is no report, and %q", said, hint)
	}
	if said := ends(nil); !strings.Contains(said, "report.html") || strings.Contains(said, hint) {
		t.Errorf("got %q of a run that has ended, want that there is no report and not %q", said, hint)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if said := ends(full); strings.Contains(said, hint) {
		t.Errorf("got %q of a run that is gone, want no %q", said, hint)
	}
}
