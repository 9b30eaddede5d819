package runs

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/runs/runstest"
	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/studies"
)

// The command on record repeats the run from the same folder, where tare's source need
// not be.
func TestCommandRepeats(t *testing.T) {
	c := &Session{StudyFlags: StudyFlags{Quick: true, Blocks: 8, TrialFlags: TrialFlags{Seed: 7, Module: "/src/tare"}}, Arms: []string{"a", "b"}}
	want := "tare run --seed 7 --quick --arms a,b --blocks 8 --module /src/tare nesting"
	if got := strings.Join(c.repeating(&study.Study{Name: "nesting"}), " "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// What stops a run that has trials is told with how to go on, also where no report
// can be written; not where there is nothing to continue with.
func TestRunStopped(t *testing.T) {
	run := runstest.Interrupted(t)
	dir := run.Dir
	if err := os.Mkdir(filepath.Join(dir, "report.html"), 0o755); err != nil {
		t.Fatal(err)
	}
	full := errors.New("no space left on device")
	var asked Session
	ends := func(stopped error) string {
		var said strings.Builder
		quiet := &cli.Terminal{Out: io.Discard, Err: &said, Width: 80}
		_, err := asked.Conclude(quiet, run, stopped, func(a *verdict.Analysis) ([]doc.Block, error) { return nil, PrintJSON(quiet, a) })
		if got := cli.PrintError(quiet, err); got != cli.ExitFailed {
			t.Errorf("stopped by %v: got exit status %d, want %d", stopped, got, cli.ExitFailed)
		}
		return said.String()
	}
	hint := "continue with `tare run --resume " + dir + "`"
	if said := ends(full); !strings.Contains(said, full.Error()) || !strings.Contains(said, "report.html") || !strings.Contains(said, hint) {
		t.Errorf("got %q, want why it stopped, that there is no report, and %q", said, hint)
	}
	if said := ends(nil); !strings.Contains(said, "report.html") || strings.Contains(said, hint) {
		t.Errorf("got %q of a run that has ended, want that there is no report and not %q", said, hint)
	}
	asked = Session{StudyFlags: StudyFlags{Blocks: 3, TrialFlags: TrialFlags{Seed: 7, Module: "tare"}}, Budget: 10 * time.Minute}
	hint = "continue with `tare run --resume " + dir + " --blocks 3 --budget 10m0s --module tare`"
	if said := ends(full); !strings.Contains(said, hint) {
		t.Errorf("got %q of a run with bounds, want %q", said, hint)
	}
	if f := asked.Interrupted(run, nil); f.Hint != hint {
		t.Errorf("interrupted: got the hint %q, want %q", f.Hint, hint)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if said := ends(full); strings.Contains(said, hint) {
		t.Errorf("got %q of a run that is gone, want no %q", said, hint)
	}
}

// Another run of a study is kept beside the one that is continued.
func TestTakeUpBeside(t *testing.T) {
	run := runstest.Interrupted(t)
	s := &Session{StudyFlags: StudyFlags{HomeFlag: HomeFlag{Dir: "runs"}}}
	_, st, err := s.TakeUp(run.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := filepath.Dir(s.NewFolder(st)); got != filepath.Dir(run.Dir) {
		t.Errorf("another run is kept in %s, want %s", got, filepath.Dir(run.Dir))
	}
}

// What fits into the budget of a resumed run comes on top of its blocks: it is not called too
// few to decide.
func TestAnnounceResumed(t *testing.T) {
	st, err := studies.Named("nesting")
	if err != nil {
		t.Fatal(err)
	}
	for resume, want := range map[string]bool{"": true, "runs/one": false} {
		var said strings.Builder
		s := &Session{Budget: time.Minute, Resume: resume}
		s.Announce(&cli.Terminal{Err: &said}, st)
		if got := strings.Contains(said.String(), "too few"); got != want {
			t.Errorf("resuming %q: said %q, want too few %t", resume, said.String(), want)
		}
	}
}
