package calibrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/noise"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats"
)

// nulled is the analysis of an A/A study whose twin was compared in so many blocks.
func nulled(blocks int) *verdict.Analysis {
	m, _ := study.MetricNamed("cpu_per_request")
	metric := verdict.Metric{Metric: m}
	if blocks > 0 {
		d := make([]float64, blocks)
		for i := range d {
			d[i] = 0.01 * float64(1+i)
		}
		metric.Twin = &verdict.Comparison{Metric: m, N: blocks, Effect: stats.Compare(d, stats.Rule{})}
	}
	a := &verdict.Analysis{Workloads: []verdict.Workload{{Workload: study.Workload{Name: "half"}, Metrics: []verdict.Metric{metric}}}}
	a.Manifest.Study.Primary = study.Primary{Metric: m.Name, Workload: "half"}
	return a
}

// A study whose trials were lost could not have shown a false positive: to count it
// would make the share of them smaller than it is.
func TestSelfTestCountsWhatCouldTell(t *testing.T) {
	var s noise.SelfTest
	for _, blocks := range []int{0, 1, 5} {
		if err := countStudy(&s, nulled(blocks)); err == nil {
			t.Errorf("%d blocks: it is counted", blocks)
		}
	}
	if s.Studies != 0 || len(s.Effects) != 0 {
		t.Errorf("got %+v, want nothing counted", s)
	}
	for _, blocks := range []int{6, 8} {
		if err := countStudy(&s, nulled(blocks)); err != nil {
			t.Errorf("%d blocks: %v", blocks, err)
		}
	}
	if s.Studies != 2 || s.Excluding != 2 || len(s.Effects) != 2 {
		t.Errorf("got %+v, want two, both of which exclude no difference", s)
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
			return (&SelftestCmd{}).conclude(on, noise.SelfTest{Studies: 20, Excluding: 1}, gone, nil)
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
