package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/runs"
	"github.com/tarehq/tare/cmd/tare/internal/runs/runstest"
	"github.com/tarehq/tare/lab/study"
)

// Runs that begin in one second have folders of their own.
func TestRunsInOneSecond(t *testing.T) {
	t.Chdir(t.TempDir())
	s := twice("tare-arm")
	c, quiet := &runs.Session{StudyFlags: runs.StudyFlags{Blocks: 1, HomeFlag: runs.HomeFlag{Dir: "runs"}}}, &cli.Terminal{Out: io.Discard, Err: io.Discard}
	taken := c.NewFolder(s)
	if err := os.MkdirAll(taken, 0o755); err != nil {
		t.Fatal(err)
	}
	run, err := c.Measure(t.Context(), quiet, s, taken)
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
	c, quiet := &runs.Session{StudyFlags: runs.StudyFlags{Blocks: 1, HomeFlag: runs.HomeFlag{Dir: "runs"}}}, &cli.Terminal{Out: io.Discard, Err: io.Discard}
	for i, want := range []string{"", "is another program by now"} {
		if err := os.WriteFile("tare-arm", append(program, make([]byte, i)...), 0o755); err != nil {
			t.Fatal(err)
		}
		run, err := c.Measure(t.Context(), quiet, s, fmt.Sprintf("runs/%d", i))
		if got := fmt.Sprint(err); (err == nil) != (want == "") || !strings.Contains(got, want) && want != "" {
			t.Errorf("run %d: got %v and %v, want %q", i, run, err, want)
		}
	}
}

// A name that is empty, as a variable's may be, stands for no run and no study.
func TestGateNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.CopyFS("runs/run", os.DirFS(runstest.Interrupted(t).Dir)); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"gate", ""}, {"gate", "--resume", ""}, {"run", "--plan", "--resume", ""}} {
		if status, out, said := tare(t, args...); status != cli.ExitUsage || !strings.Contains(said, "name is empty") {
			t.Errorf("tare %q: got exit status %d, %q and %q, want %d", args, status, out, said, cli.ExitUsage)
		}
	}
}
