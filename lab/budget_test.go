package lab_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/lab"
	"github.com/tarehq/tare/lab/study"
)

// A budget is for the whole run: blocks after the first look leave room for the captures
// that follow them. The first block is measured whatever the budget.
func TestBudgetLeavesRoomForCaptures(t *testing.T) {
	t.Parallel()
	s := small(t, "ok", "ok")
	s.Workloads = s.Workloads[:1]
	s.Looks = []int{8, 9}
	s.Attribute = study.Attribute{For: time.Hour, Repeat: 1} // which arms without a control socket refuse at once
	o := options(t, s)
	o.Blocks = 9
	for _, tt := range []struct {
		budget time.Duration
		blocks int
		want   string // outcome
		warned string // of captures
	}{
		{time.Hour, 8, "budget", "captures short: 0 of 2 were taken within 1h0m0s"},
		{24 * time.Hour, 9, "cap", ""},
	} {
		o.Budget, o.Dir = tt.budget, filepath.Join(t.TempDir(), "run")
		run, err := lab.Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		blocks := map[int]bool{}
		for _, tr := range run.Trials {
			if tr.Attempt == 0 {
				blocks[tr.Block] = true
			}
		}
		if len(blocks) != tt.blocks || run.Manifest.Outcome != tt.want {
			t.Errorf("budget %s: got %d blocks and outcome %q, want %d and %q", tt.budget, len(blocks), run.Manifest.Outcome, tt.blocks, tt.want)
		}
		warned := strings.Join(run.Manifest.Warnings, "\n")
		if !strings.Contains(warned, tt.warned) || (tt.warned == "") != (len(run.Captures) == 2) {
			t.Errorf("budget %s: got %d captures and warnings %q, want %q", tt.budget, len(run.Captures), warned, tt.warned)
		}
	}
}

// The trials to come, of which the time left is made, are those that the budget allows, not all
// that are planned.
func TestBudgetBoundsTheTimeLeft(t *testing.T) {
	s := small(t, "ok", "ok")
	s.Workloads = s.Workloads[:1]
	s.Looks = []int{1000}
	o := options(t, s)
	o.Blocks, o.Budget = 1000, 2*time.Second
	var began int
	o.Progress = func(e lab.Event) {
		if e.Stage != lab.Running {
			return
		}
		if began++; e.Trials >= 1000 {
			t.Errorf("block %d: %s left of a budget of %s, %d trials", e.Block, e.Left, o.Budget, e.Trials)
		}
	}
	if _, err := lab.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if began == 0 {
		t.Error("no trial began")
	}
}

// What a budget has left of the captures a later session takes, and no warning stays.
func TestCapturesAfterTheBudget(t *testing.T) {
	o := begunRun(t, 8, 1)
	o.Study.Attribute = study.Attribute{For: time.Hour, Repeat: 1}
	o.Blocks, o.Budget = 8, time.Hour
	for _, want := range []int{0, 2} {
		run, err := lab.Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		warned := strings.Contains(strings.Join(run.Manifest.Warnings, "\n"), "captures short")
		if len(run.Captures) != want || warned != (want == 0) {
			t.Errorf("budget %s: got %d captures, warned %v; want %d", o.Budget, len(run.Captures), warned, want)
		}
		o.Budget = 0
	}
}

// Nor are invalid cells run again once the time is up.
func TestBudgetEndsMakingUp(t *testing.T) {
	s := small(t, "ok", "dies:"+filepath.Join(t.TempDir(), "mark"))
	s.Workloads = s.Workloads[:1]
	o := options(t, s)
	o.Blocks, o.Budget = 1, time.Nanosecond
	run, err := lab.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := len(run.Trials), s.CellsPerBlock(); got != want {
		t.Errorf("%d trials after the budget, want the first block's %d", got, want)
	}
}

// Lost trials are made up for before any capture is taken: a decision comes before its
// explanation, though there is no time for both.
func TestMakingUpComesBeforeCaptures(t *testing.T) {
	s := small(t, "ok", "dies:"+filepath.Join(t.TempDir(), "mark"))
	s.Workloads = s.Workloads[:1]
	s.Attribute = study.Attribute{For: time.Hour, Repeat: 1}
	o := options(t, s)
	o.Blocks, o.Budget = 1, time.Hour
	run, err := lab.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	again := 0
	for _, tr := range run.Trials {
		if tr.Attempt > 0 && tr.Arm != s.Control {
			again++
		}
	}
	if again == 0 || len(run.Captures) != 0 {
		t.Errorf("ran lost trials again %d times and took %d captures, want 1 or more and 0", again, len(run.Captures))
	}
}

func TestBesides(t *testing.T) {
	s := small(t, "ok", "ok") // in two workloads
	pilot := 4 * (1250*time.Millisecond + lab.Overhead)
	if got := lab.Besides(s); got != pilot {
		t.Errorf("without captures: got %s, want %s", got, pilot)
	}
	s.Attribute = study.Attribute{For: 5 * time.Second, Repeat: 2}
	if got, want := lab.Besides(s), pilot+8*(5*time.Second+s.Trial.WarmUpOr()+lab.Overhead); got != want {
		t.Errorf("with captures: got %s, want %s", got, want)
	}
}
