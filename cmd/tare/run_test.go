package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
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

// The command on record repeats the run from the same folder, where tare's source need
// not be.
func TestCommandRepeats(t *testing.T) {
	c := &runCmd{Seed: 7, Quick: true, Arms: []string{"a", "b"}, Blocks: 8, Module: "/src/tare"}
	want := "tare run --seed 7 --quick --arms a,b --blocks 8 --module /src/tare nesting"
	if got := strings.Join(c.command(&study.Study{Name: "nesting"}), " "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Runs that begin in one second have folders of their own.
func TestRunsInOneSecond(t *testing.T) {
	t.Chdir(t.TempDir())
	s := twice("tare-arm")
	c, quiet := &runCmd{Blocks: 1, Dir: "runs"}, &cli.Terminal{Out: io.Discard, Err: io.Discard}
	taken := c.folder(s)
	if err := os.MkdirAll(taken, 0o755); err != nil {
		t.Fatal(err)
	}
	run, err := c.measure(t.Context(), quiet, s, taken)
	if err != nil {
		t.Fatal(err)
	}
	if run.Dir == taken || run.Manifest.ID != filepath.Base(run.Dir) || len(run.Trials) == 0 {
		t.Errorf("got run %s with %d trials in %s, want some, in a folder beside %s", run.Manifest.ID, len(run.Trials), run.Dir, taken)
	}
}

// twice is a study of a command beside itself.
func twice(command string) *study.Study {
	return &study.Study{
		Name: "twice", Control: "a", AA: true, Looks: []int{6}, Primary: study.Primary{Metric: "cpu_per_request", Workload: "closed"},
		Arms:      []study.Arm{{Name: "a", Command: []string{command}}, {Name: "b", Command: []string{command}}},
		Workloads: []study.Workload{{Name: "closed", Schedule: "closed", Connections: 1, Targets: []study.Target{{Path: "/"}}}},
		Trial:     study.Trial{WarmUp: time.Millisecond, Measure: 20 * time.Millisecond, Slice: 2 * time.Millisecond},
	}
}

// The second run of a gate says of what it measures that it fails, or not, once more: it
// measures no other program that has taken the place of an arm's since.
func TestRunsMeasureOneProgram(t *testing.T) {
	t.Chdir(t.TempDir())
	arm, err := exec.LookPath("tare-arm")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(arm)
	if err != nil {
		t.Fatal(err)
	}
	s := twice("./tare-arm")
	c, quiet := &runCmd{Blocks: 1}, &cli.Terminal{Out: io.Discard, Err: io.Discard}
	for i, want := range []string{"", "is another program by now"} {
		if err := os.WriteFile("tare-arm", append(program, make([]byte, i)...), 0o755); err != nil {
			t.Fatal(err)
		}
		run, err := c.measure(t.Context(), quiet, s, fmt.Sprintf("runs/%d", i))
		if got := fmt.Sprint(err); (err == nil) != (want == "") || !strings.Contains(got, want) && want != "" {
			t.Errorf("run %d: got %v and %v, want %q", i, run, err, want)
		}
	}
}

// A calibration that is cut short tells where its trials are.
func TestUncalibrated(t *testing.T) {
	run := cut(t)
	var f *cli.Failure
	if err := uncalibrated(run, context.Canceled); !errors.As(err, &f) || f.Status != cli.ExitInterrupted || !strings.Contains(f.Hint, "tare report "+run.Dir) {
		t.Errorf("interrupted: got %v, want status %d and the run's folder", err, cli.ExitInterrupted)
	}
	full := errors.New("no space left on device")
	for _, kept := range []*record.Run{nil, {}, run} {
		if err := uncalibrated(kept, full); !errors.Is(err, full) {
			t.Errorf("got %v, want %v", err, full)
		}
	}
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
	var asked runCmd
	ends := func(stopped error) string {
		var said strings.Builder
		quiet := &cli.Terminal{Out: io.Discard, Err: &said, Width: 80}
		if got := complain(quiet, asked.finish(quiet, run, stopped)); got != cli.ExitFailed {
			t.Errorf("stopped by %v: got exit status %d, want %d", stopped, got, cli.ExitFailed)
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
	asked = runCmd{Seed: 7, Blocks: 3, Budget: 10 * time.Minute, Module: "tare"}
	hint = "go on with `tare run --resume " + dir + " --blocks 3 --budget 10m0s --module tare`"
	if said := ends(full); !strings.Contains(said, hint) {
		t.Errorf("got %q of a run with bounds, want %q", said, hint)
	}
	if f := asked.interrupted(run, nil); f.Hint != hint {
		t.Errorf("interrupted: got the hint %q, want %q", f.Hint, hint)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if said := ends(full); strings.Contains(said, hint) {
		t.Errorf("got %q of a run that is gone, want no %q", said, hint)
	}
}
