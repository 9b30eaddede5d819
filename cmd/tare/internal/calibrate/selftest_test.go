package calibrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/noise"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/studies"
)

// nulled is an A/A study of so many blocks, in which the arm and the control's twin
// differ from the control by these shares, give or take a hundredth of them.
func nulled(t *testing.T, blocks int, arm, twin float64) *record.Run {
	t.Helper()
	null, err := studies.Named("null")
	if err != nil {
		t.Fatal(err)
	}
	s, err := selfTesting(null, leastMeasure)
	if err != nil {
		t.Fatal(err)
	}
	r := &record.Run{Manifest: record.Manifest{Study: *s, Seed: 1, Outcome: "cap"}}
	for block := range blocks {
		for i, share := range []float64{0, arm, twin} {
			value := 30_000 * (1 + share*(0.99+0.02*float64(block)/float64(blocks)))
			r.Trials = append(r.Trials, record.Trial{
				Seq: len(r.Trials), Block: block, Workload: s.Primary.Workload, Arm: []string{s.Control, again, s.Control}[i], Twin: i == 2,
				Requests: 20_000, Steady: true, Metrics: map[string]float64{s.Primary.Metric: value},
			})
		}
	}
	return r
}

func analyse(t *testing.T, r *record.Run) *verdict.Analysis {
	t.Helper()
	a, err := verdict.Analyse(r)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// An A/A study is planned as one of the user's own: all looks, a twin beside the arm
// that is judged.
func TestSelfTestIsPlannedAsOthers(t *testing.T) {
	s := nulled(t, 0, 0, 0).Manifest.Study
	if looks := s.LooksUpTo(0); !slices.Equal(looks, []int{8, 12, 18, 30}) || len(s.Arms) != 2 || !s.Twin || !s.AA || s.Primary.Arm != again || len(s.Workloads) != 1 {
		t.Errorf("got looks %v and %+v, want all looks and the control once more beside its twin", looks, s)
	}
}

// A study whose trials were lost could not have shown a false positive: to count it
// would make the share of them smaller than it is.
func TestSelfTestCountsWhatCouldTell(t *testing.T) {
	var s noise.SelfTest
	for _, blocks := range []int{0, 1, 5} {
		if err := countStudy(&s, analyse(t, nulled(t, blocks, 0.05, 0.001))); err == nil {
			t.Errorf("%d blocks: it is counted", blocks)
		}
	}
	if s.Studies != 0 || len(s.Effects) != 0 {
		t.Errorf("got %+v, want nothing counted", s)
	}
	for arm, verdicts := range map[float64]int{0.05: 1, 0.0001: 0} {
		s = noise.SelfTest{}
		if err := countStudy(&s, analyse(t, nulled(t, 8, arm, 0.001))); err != nil {
			t.Errorf("8 blocks: %v", err)
		}
		if s.Studies != 1 || s.Excluding != 1 || s.Verdicts != verdicts || len(s.Effects) != 1 {
			t.Errorf("difference %g: got %+v, want one study that excludes no difference, and %d verdicts", arm, s, verdicts)
		}
	}
}

// A study's own twin may be as far off as the arm, and hide it; the twins of others do
// not. Nor does a study have a part in its own floor where it is counted apart.
func TestSelfTestFloorOfOthers(t *testing.T) {
	hidden := nulled(t, 8, 0.05, 0.08)
	var s noise.SelfTest
	if err := countStudy(&s, analyse(t, hidden)); err != nil || s.Verdicts != 0 {
		t.Fatalf("got %d verdicts, %v; want the twin to hide the difference", s.Verdicts, err)
	}
	quiet := nulled(t, 8, 0.0001, 0.001)
	for _, tc := range []struct {
		name string
		runs []*record.Run
		want int
	}{
		{"alone", []*record.Run{hidden}, 0},
		{"among quiet ones", []*record.Run{hidden, quiet, quiet}, 1},
		{"among those that hide it", []*record.Run{hidden, nulled(t, 8, 0.0001, 0.08)}, 0},
	} {
		if got, err := countApart(tc.runs); err != nil || got != tc.want {
			t.Errorf("%s: got %d verdicts, %v; want %d", tc.name, got, err, tc.want)
		}
	}
}

// What stops the studies is told by the exit status, in whatever form the others are.
func TestSelfTestStopped(t *testing.T) {
	for stopped, want := range map[error]int{nil: 0, fmt.Errorf("running trial 5: %w", context.Canceled): cli.ExitInterrupted, errors.New("disk full"): cli.ExitFailed} {
		for _, json := range []bool{false, true} {
			quiet := &cli.Terminal{Out: io.Discard, Err: io.Discard, Width: 80}
			err := (&SelftestCmd{JSON: json}).conclude(quiet, noise.SelfTest{Studies: 1}, noise.Cache{Dir: t.TempDir(), File: "last.json"}, stopped)
			if got := cli.PrintError(quiet, err); got != want {
				t.Errorf("stopped by %v, JSON %t: got exit status %d, want %d", stopped, json, got, want)
			}
		}
	}
}

// An hour of measuring is shown though the cache takes nothing any more.
func TestUnkeptIsShown(t *testing.T) {
	gone := noise.Cache{Dir: filepath.Join(t.TempDir(), "gone"), File: "file.json"}
	cal := noise.Calibration{When: time.Now(), Blocks: 30, Floor: map[string]float64{"cpu_per_request": 0.01}}
	for want, conclude := range map[string]func(*cli.Terminal) error{
		"over 30 blocks, not kept:\nCPU per request": func(on *cli.Terminal) error { return (&Cmd{}).conclude(on, cal, gone) },
		"1 of 20 A/A studies": func(on *cli.Terminal) error {
			return (&SelftestCmd{}).conclude(on, noise.SelfTest{Studies: 20, Verdicts: 1}, gone, nil)
		},
	} {
		var out strings.Builder
		err := conclude(&cli.Terminal{Out: &out, Err: io.Discard, Width: 80})
		if got := cli.PrintError(&cli.Terminal{Err: io.Discard}, err); got != cli.ExitFailed || !strings.Contains(out.String(), want) {
			t.Errorf("got exit status %d and %q, want %d and %q", got, out.String(), cli.ExitFailed, want)
		}
	}
}

// A calibration that is cut short says where its trials are.
func TestExplain(t *testing.T) {
	run := &record.Run{Dir: "runs/cut", Trials: make([]record.Trial, 1)}
	var f *cli.Failure
	if err := explain(run, context.Canceled); !errors.As(err, &f) || f.Status != cli.ExitInterrupted || !strings.Contains(f.Hint, "tare report "+run.Dir) {
		t.Errorf("interrupted: got %v, want status %d and the run's folder", err, cli.ExitInterrupted)
	}
	full := errors.New("no space left on device")
	for _, kept := range []*record.Run{nil, {}, run} {
		if err := explain(kept, full); !errors.Is(err, full) {
			t.Errorf("got %v, want %v", err, full)
		}
	}
}
