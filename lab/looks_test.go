package lab_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tarehq/tare/lab"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats"
)

// A run looks where stats.LooksAt keeps a look, and nowhere else: what a look that
// cannot reject would spend is spent by the next.
func TestLooks(t *testing.T) {
	for _, tt := range []struct {
		looks []int
		cap   int
		want  string
	}{
		{nil, 0, "[8 12 18 30]"},
		{nil, 12, "[8 12]"},
		{nil, 72, "[12 18 30 72]"},
		{nil, 2, "[2]"},
		{[]int{6, 12}, 0, "[12]"},
		{[]int{6, 30}, 0, "[30]"},
		{[]int{6, 12}, 6, "[6]"},
	} {
		var got []int
		spent := 0.0
		for _, l := range lab.Looks(&study.Study{Looks: tt.looks}, tt.cap) {
			got = append(got, l.Blocks)
			spent += l.Alpha
		}
		if fmt.Sprint(got) != tt.want || math.Abs(spent-stats.StudyAlpha) > 1e-12 {
			t.Errorf("looks %v up to %d: got %v spending %v, want %s and %v", tt.looks, tt.cap, got, spent, tt.want, stats.StudyAlpha)
		}
	}
}

// Going on with a run changes nothing of the looks that it has planned.
func TestLooksOfRunOnRecord(t *testing.T) {
	for _, tt := range []struct {
		looks []int
		cap   int
		want  string
	}{
		{[]int{6, 12}, 0, "[12]"},
		{[]int{6, 7, 30}, 7, "[7]"},
		{[]int{8}, 8, "[8]"},
		{nil, 2, "[2]"},
	} {
		if got := lab.LooksOf(record.Manifest{Study: study.Study{Looks: tt.looks}}, tt.cap); fmt.Sprint(got) != tt.want {
			t.Errorf("looks %v up to %d: got %v, want %s", tt.looks, tt.cap, got, tt.want)
		}
	}
}

func TestWithinPlan(t *testing.T) {
	for _, tt := range []struct {
		looks  []int
		blocks int
		want   string // in the error
	}{
		{nil, 0, ""},
		{nil, 30, ""},
		{nil, 31, "after 8, 12, 18, 30 blocks"},
		{nil, 12, ""},
		{nil, 13, "none is left for a look at 13"},
		{nil, 5, ""}, // tells nothing apart
		{[]int{8}, 30, "after 8 blocks"},
	} {
		err := lab.WithinPlan(&study.Study{Looks: tt.looks}, tt.blocks)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%d blocks of a run with looks %v: got %v, want %q", tt.blocks, tt.looks, err, tt.want)
		}
	}
}

// begunRun is a run on record of so many blocks, in which b costs so many times
// what a does, give or take next to nothing.
func begunRun(t *testing.T, blocks int, ratio float64) lab.Options {
	t.Helper()
	s := small(t, "ok", "ok")
	s.Workloads, s.Twin = s.Workloads[:1], false
	o := options(t, s)
	m := record.Manifest{ID: "begun", Study: *s, Seed: o.Seed, Pinning: lab.Arrange(), Programs: map[string]record.Program{}}
	for _, a := range s.Arms {
		p, err := o.Builder.Build(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		m.Programs[a.Name] = record.Program{BuildID: p.BuildID}
	}
	w, err := record.Create(o.Dir, m)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 * blocks {
		trial := record.Trial{Seq: i, Block: i / 2, Arm: "a", Workload: "closed", Requests: 20_000, Metrics: map[string]float64{}}
		cpu := 1e5 + float64((i+i/2)%2) // now the one is slower, now the other
		if i%2 == 1 {
			trial.Arm = "b"
			cpu *= ratio
		}
		trial.Metrics["cpu_per_request"] = cpu
		if err := w.Append(trial, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	o.Resume, o.Blocks = true, 0
	return o
}

// A look that an earlier session has passed is not taken again with the blocks that
// came after it.
func TestResumeDoesNotLookAgain(t *testing.T) {
	o := begunRun(t, 9, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o.Progress = func(e lab.Event) {
		switch e.Stage {
		case lab.Looking:
			t.Errorf("after 9 blocks: %s", e.Text)
		case lab.Running:
			cancel()
		}
	}
	if _, err := lab.Run(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want a run that goes on with its tenth block", err)
	}
}

// A budget that ended a run between two looks had it judged at the level of the next. That
// look is not taken again when the run is gone on with.
func TestResumeTakesNoLookTwice(t *testing.T) {
	for _, tt := range []struct {
		blocks  int
		outcome string
		early   []int  // on record afterwards
		looks   string // that are left, with those before
		said    string
	}{
		{10, "budget", []int{10}, "[8 10 18 30]", "the look at 12 blocks was taken after 10, where the run had ended; the next is at 18"},
		{20, "refused", []int{20}, "[8 12 18 20]", "none is left, and more blocks need a new run"},
		{7, "budget", []int{7}, "[7 12 18 30]", "the look at 8 blocks was taken after 7"},
		{6, "budget", nil, "[8 12 18 30]", ""}, // too few to have told anything
		{12, "budget", nil, "[8 12 18 30]", ""},
		{10, "interrupted", nil, "[8 12 18 30]", ""}, // shown by intervals that hold at any time
	} {
		o := begunRun(t, tt.blocks, 1)
		w, _, err := record.Resume(o.Dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Finish(tt.outcome); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		said := ""
		o.Progress = func(e lab.Event) {
			switch {
			case e.Stage == lab.Running:
				cancel()
			case strings.Contains(e.Text, "where the run had ended"):
				said = e.Text
			}
		}
		run, err := lab.Run(ctx, o)
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		m := run.Manifest
		if got := fmt.Sprint(lab.LooksOf(m, 0)); !slices.Equal(m.Early, tt.early) || got != tt.looks || !strings.Contains(said, tt.said) || tt.said == "" && said != "" {
			t.Errorf("%d blocks, %s: early looks %v, looks at %s, said %q; want %v, %s and %q", tt.blocks, tt.outcome, m.Early, got, said, tt.early, tt.looks, tt.said)
		}
		if err := lab.WithinPlan(&m.Study, 12, m.Early...); (err == nil) != strings.Contains(tt.looks, "12") {
			t.Errorf("%d blocks, %s: 12 blocks at most: got %v", tt.blocks, tt.outcome, err)
		}
	}
}

// A run stops when what it was started for is decided, be it more or less than its
// primary comparison.
func TestDecided(t *testing.T) {
	for _, tt := range []struct {
		name    string
		ratio   float64
		decided func(*verdict.Analysis) bool
		stops   bool
	}{
		{"primary decided", 2, nil, true},
		{"primary open", 1, nil, false},
		{"more to decide", 2, func(*verdict.Analysis) bool { return false }, false},
		{"less to decide", 1, func(*verdict.Analysis) bool { return true }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := begunRun(t, 8, tt.ratio)
			o.Decided = tt.decided
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			looks := 0
			o.Progress = func(e lab.Event) {
				switch e.Stage {
				case lab.Looking:
					looks++
				case lab.Running:
					cancel()
				}
			}
			_, err := lab.Run(ctx, o)
			if looks != 1 || tt.stops != (err == nil) || err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("%d looks, then %v; want one look, and that it stops: %v", looks, err, tt.stops)
			}
		})
	}
}

// A run on record does not get more blocks than its looks were planned for.
func TestResumeKeepsToThePlan(t *testing.T) {
	o := begunRun(t, 1, 1)
	o.Blocks = 31
	if _, err := lab.Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "none is left for a look at 31") {
		t.Errorf("got %v, want a refusal", err)
	}
}

// A run is not gone on with on other CPUs: its record would tell of the former for
// all trials.
func TestResumeOnOtherCPUs(t *testing.T) {
	o := begunRun(t, 8, 1)
	w, _, err := record.Resume(o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Update(func(m *record.Manifest) { m.Pinning.Specimen = []int{1000} }), w.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := lab.Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "had CPUs") {
		t.Errorf("got %v, want that the CPUs are other ones", err)
	}
}
