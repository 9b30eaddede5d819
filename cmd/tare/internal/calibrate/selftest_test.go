package calibrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/noise"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/studies"
)

// named reads study null once, as reading it takes long.
var named = sync.OnceValues(func() (*study.Study, error) { return studies.Named("null") })

func readNull(t *testing.T) *study.Study {
	t.Helper()
	null, err := named()
	if err != nil {
		t.Fatal(err)
	}
	return null
}

// nulled is an A/A study of so many blocks, in which the arm and the control's twin
// differ from the control by these shares, give or take a hundredth of them.
func nulled(t *testing.T, blocks int, arm, twin float64) *record.Run {
	t.Helper()
	s, err := selfTesting(readNull(t), &SelftestCmd{Measure: leastMeasure})
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

// loaded is the run as if it had been under the workload of known differences.
func loaded(r *record.Run) *record.Run {
	s := &r.Manifest.Study
	s.Workloads, s.Primary.Workload = slices.Clone(s.Workloads), busy
	s.Workloads[0].Name = busy
	for i := range r.Trials {
		r.Trials[i].Workload = busy
	}
	return r
}

// counted is what a study's run says, which must count.
func counted(t *testing.T, r *record.Run, added time.Duration) noise.Study {
	t.Helper()
	made, err := sitting(t, noise.Cache{}, 1).count(r, added)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func summed(t *testing.T, all ...noise.Study) noise.SelfTest {
	t.Helper()
	sum, err := noise.Sum(all)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// begun is when the last sitting of the tests began: each at another time.
var begun atomic.Int64

// sitting is one that wants so many studies of each kind.
func sitting(t *testing.T, cache noise.Cache, studies int, spin ...time.Duration) *selfTest {
	t.Helper()
	st := &selfTest{SelftestCmd: &SelftestCmd{Studies: studies, Measure: leastMeasure, Spin: spin}, cache: cache}
	if err := st.prepare(readNull(t), time.Unix(begun.Add(1), 0)); err != nil {
		t.Fatal(err)
	}
	return st
}

func silent() *cli.Terminal { return &cli.Terminal{Out: io.Discard, Err: io.Discard, Width: 80} }

// An A/A study is planned as one of the user's own: all looks, a twin beside the arm
// that is judged.
func TestSelfTestIsPlannedAsOthers(t *testing.T) {
	s := nulled(t, 0, 0, 0).Manifest.Study
	if loop := s.Workloads[0].Loop; loop != 0 {
		t.Errorf("each trial runs the loop in process for %s, want none: the studies decide on CPU under load", loop)
	}
	if looks := s.LooksUpTo(0); !slices.Equal(looks, []int{8, 12, 18, 30}) || len(s.Arms) != 2 || !s.Twin || !s.AA || s.Primary.Arm != again || len(s.Workloads) != 1 {
		t.Errorf("got looks %v and %+v, want all looks and the control once more beside its twin", looks, s)
	}
}

// A short one has one look, and what is counted of it is not counted with others.
func TestSelfTestQuick(t *testing.T) {
	st := &selfTest{SelftestCmd: &SelftestCmd{Studies: 1, Quick: true, Measure: leastMeasure, Spin: []time.Duration{time.Microsecond}}, cache: noise.Cache{}}
	if err := st.prepare(readNull(t), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	for _, k := range st.kinds {
		if looks := k.study.LooksUpTo(0); !slices.Equal(looks, []int{8}) || !slices.Equal(st.setting.Looks, looks) || len(k.study.Arms) != 2 {
			t.Errorf("%s: looks %v, counted under %v, arms %v; want one look at 8 blocks, and two arms", &k, looks, st.setting.Looks, k.study.Arms)
		}
	}
}

// A study whose trials were lost could not have shown a false positive: to count it
// would make the share of them smaller than it is, as would leaving out verdicts of a little.
func TestSelfTestCountsWhatCouldTell(t *testing.T) {
	for _, blocks := range []int{0, 1, 5} {
		if _, err := sitting(t, noise.Cache{}, 1).count(nulled(t, blocks, 0.05, 0.001), 0); err == nil {
			t.Errorf("%d blocks: it is counted", blocks)
		}
	}
	for arm, verdicts := range map[float64]int{0.05: 1, 0.0001: 1, 0: 0} {
		s := summed(t, counted(t, nulled(t, 8, arm, 0.001), 0))
		if s.Studies != 1 || s.Excluding != verdicts || s.Verdicts != verdicts || len(s.Effects) != 1 {
			t.Errorf("difference %g: got %+v, want one study, and %d that excludes no difference and tells the arms apart", arm, s, verdicts)
		}
	}
}

// A study's own twin may be as far off as the arm, and hide it; the twins of others do
// not. Nor does a study have a part in its own floor where it is counted apart, nor does
// another machine.
func TestSelfTestFloorOfOthers(t *testing.T) {
	hidden, quiet := counted(t, nulled(t, 8, 0.05, 0.08), 0), counted(t, nulled(t, 8, 0, 0.001), 0)
	if s := summed(t, hidden); s.Verdicts != 0 {
		t.Fatalf("got %d verdicts, want the twin to hide the difference", s.Verdicts)
	}
	elsewhere := quiet
	elsewhere.Machine = "another"
	for _, tc := range []struct {
		name string
		all  []noise.Study
		want int
	}{
		{"alone", []noise.Study{hidden}, 0},
		{"among quiet ones", []noise.Study{hidden, quiet, quiet}, 1},
		{"among those that hide it", []noise.Study{hidden, counted(t, nulled(t, 8, 0.0001, 0.08), 0)}, 0},
		{"among those of another machine", []noise.Study{hidden, elsewhere, elsewhere}, 0},
	} {
		if got := summed(t, tc.all...).Apart; got != tc.want {
			t.Errorf("%s: got %d verdicts, want %d", tc.name, got, tc.want)
		}
	}
}

// Each study is kept when it ends, whatever ends the sitting, and the next goes on with the
// kind that has the fewest.
func TestSelfTestGoesOn(t *testing.T) {
	cache := noise.Cache{Dir: t.TempDir(), File: "studies.json"}
	measure := func(studies, most int) (ran []string, err error) {
		st := sitting(t, cache, studies, 3*time.Microsecond)
		st.run = func(_ context.Context, s *study.Study) (*record.Run, error) {
			if len(ran) == most {
				return nil, context.Canceled
			}
			ran = append(ran, s.Primary.Arm)
			if s.Primary.Arm == dearer {
				return loaded(nulled(t, 8, 0.1, 0.001)), nil
			}
			return nulled(t, 8, 0.05, 0.001), nil
		}
		return ran, st.measure(t.Context(), silent())
	}
	for i, tc := range []struct {
		studies, most int
		ran           []string
		stopped       bool
		have, spun    int
	}{
		{2, 3, []string{again, dearer, again}, true, 2, 1},
		{2, 9, []string{dearer}, false, 2, 2},
		{2, 9, nil, false, 2, 2},
		{3, 9, []string{again, dearer}, false, 3, 3},
	} {
		ran, err := measure(tc.studies, tc.most)
		if !slices.Equal(ran, tc.ran) || errors.Is(err, context.Canceled) != tc.stopped || !tc.stopped && err != nil {
			t.Errorf("sitting %d: ran %q, %v; want %q, stopped %t", i+1, ran, err, tc.ran, tc.stopped)
		}
		kept, err := noise.ReadStudies([]string{cache.Path()})
		if err != nil {
			t.Fatal(err)
		}
		if s := summed(t, kept...); s.Studies != tc.have || s.Verdicts != tc.have || s.Positive[0].Found != tc.spun {
			t.Errorf("sitting %d: got %+v, want %d and %d studies", i+1, s, tc.have, tc.spun)
		}
	}
	kept, err := noise.ReadStudies([]string{cache.Path()})
	if err != nil {
		t.Fatal(err)
	}
	if s := summed(t, kept...); s.Sittings != 3 || len(s.Machines) != 1 || !strings.Contains(s.String(), "3 of 3 A/A studies by cpu_per_request on this machine gave a false verdict") || !strings.Contains(s.String(), "; 3 sittings until ") {
		t.Errorf("got %+v: %s; want three sittings that ran something", s, s)
	}
	half := counted(t, nulled(t, 8, 0.1, 0.001), 3*time.Microsecond) // as an older tare made it
	unnamed := counted(t, nulled(t, 8, 0.05, 0.001), 0)
	unnamed.Workload = ""
	for _, old := range []noise.Study{half, unnamed} {
		if err := cache.Add(old); err != nil {
			t.Fatal(err)
		}
	}
	if st := sitting(t, cache, 3, 3*time.Microsecond); len(st.counted) != 6 || st.aside != 2 {
		t.Errorf("among them one under another workload and one under none that is named: %d count, %d are set aside, want 6 and 2", len(st.counted), st.aside)
	}
	other := sitting(t, cache, 1)
	other.setting.Measure++
	if mine, err := cache.Studies(other.setting); err != nil || len(mine) != 0 {
		t.Errorf("another measured part: got %d studies, %v, want none", len(mine), err)
	}
	if to, err := cache.SetAside(time.Now()); err != nil || to == "" {
		t.Errorf("set aside: got %q, %v", to, err)
	}
	if ran, err := measure(1, 9); err != nil || len(ran) != 2 {
		t.Errorf("begun anew: ran %q, %v, want one of each kind", ran, err)
	}
}

// Studies that cannot count do not go on for ever.
func TestSelfTestGivesUp(t *testing.T) {
	cache, ran := noise.Cache{Dir: t.TempDir(), File: "studies.json"}, 0
	st := sitting(t, cache, 20)
	st.run = func(context.Context, *study.Study) (*record.Run, error) {
		ran++
		return nulled(t, 1, 0, 0.001), nil
	}
	if err := st.measure(t.Context(), silent()); err == nil || ran != mostLost || cli.PrintError(silent(), err) != cli.ExitFailed {
		t.Errorf("got %v after %d studies, want it to fail after %d", err, ran, mostLost)
	}
}

// Files of several machines are summed up, a study that two of them hold once. Studies of
// different settings are not.
func TestSelfTestFrom(t *testing.T) {
	here, there := counted(t, nulled(t, 8, 0.05, 0.001), 0), counted(t, nulled(t, 8, 0, 0.001), 0)
	there.Machine, there.When = "another", here.When
	dear := counted(t, nulled(t, 8, 0.1, 0.001), 3*time.Microsecond)
	dear.Machine, dear.When = "another", here.When.Add(time.Minute)
	old, moved := here, there
	old.Workload, old.When = "", here.When.Add(2*time.Hour)
	moved.Workload, moved.When = "capacity", here.When.Add(3*time.Hour)
	longer := there
	longer.Measure, longer.When = longer.Measure+1, longer.When.Add(time.Hour)
	dir := t.TempDir()
	file := func(name string, content any) string {
		if err := (noise.Cache{Dir: dir, File: name}).Write(content); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, name)
	}
	a, b := file("a.json", []noise.Study{here}), file("b.json", []noise.Study{here, there, dear})
	for _, tc := range []struct {
		cmd  SelftestCmd
		want string
	}{
		{SelftestCmd{From: []string{a, b}}, "1 of 2 A/A studies by cpu_per_request on 2 machines gave a false verdict"},
		{SelftestCmd{From: []string{a, b}, Markdown: "-"}, "| none | – | 2 | 1, 50.0 % (1.3 % to 98.7 %) |"},
		{SelftestCmd{From: []string{a, b}, Markdown: "-"}, "| 3.00 µs | 10.0 % | 1 | 1, 100"},
		{SelftestCmd{From: []string{a, b}, JSON: true}, `"sittings": 3`},
		{SelftestCmd{From: []string{b, file("c.json", []noise.Study{longer})}}, "different settings"},
		{SelftestCmd{From: []string{b, file("g.json", []noise.Study{moved})}}, "different workloads are not counted together: half and capacity"},
		{SelftestCmd{From: []string{b, file("h.json", []noise.Study{old})}}, "1 of 2 A/A studies by cpu_per_request on 2 machines gave a false verdict"},
		{SelftestCmd{From: []string{b, file("i.json", []noise.Study{old})}, Markdown: "-"}, "not counted, since an older tare did not name their workload: 1."},
		{SelftestCmd{From: []string{file("j.json", []noise.Study{old})}}, "no study counts"},
		{SelftestCmd{From: []string{file("d.json", []noise.Study{{Machine: "x"}})}}, "element 0 is not a study"},
		{SelftestCmd{From: []string{file("e.json", "nothing")}}, "e.json"},
		{SelftestCmd{From: []string{file("f.json", []noise.Study{})}}, "no study is on record"},
		{SelftestCmd{From: []string{filepath.Join(dir, "none.json")}}, "no such file"},
	} {
		var out strings.Builder
		on := silent()
		on.Out = &out
		tc.cmd.Studies, tc.cmd.Measure = 20, leastMeasure
		if err := tc.cmd.Run(t.Context(), on); err != nil {
			out.WriteString(err.Error())
		}
		if !strings.Contains(out.String(), tc.want) {
			t.Errorf("%+v: got %s, want %q in it", tc.cmd, out.String(), tc.want)
		}
	}
}

// What stops the studies is told by the exit status, in whatever form the others are.
func TestSelfTestStopped(t *testing.T) {
	for stopped, want := range map[error]int{nil: 0, fmt.Errorf("running trial 5: %w", context.Canceled): cli.ExitInterrupted, errors.New("disk full"): cli.ExitFailed} {
		for _, json := range []bool{false, true} {
			st := sitting(t, noise.Cache{Dir: t.TempDir(), File: "studies.json"}, 1)
			st.JSON, st.counted = json, []noise.Study{counted(t, nulled(t, 8, 0.05, 0.001), 0)}
			if got := cli.PrintError(silent(), st.conclude(silent(), stopped)); got != want {
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
		"1 of 1 A/A studies": func(on *cli.Terminal) error {
			st := sitting(t, gone, 2)
			st.run = func(context.Context, *study.Study) (*record.Run, error) { return nulled(t, 8, 0.05, 0.001), nil }
			return st.conclude(on, st.measure(t.Context(), on))
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
