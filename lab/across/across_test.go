package across_test

import (
	"testing"

	"github.com/tarehq/tare/lab/across"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats"
)

// TestUnfinishedRuns holds that a change from or to a run which has not ended has an interval that
// holds whenever one looks.
func TestUnfinishedRuns(t *testing.T) {
	for _, tt := range []struct {
		outcome string // of the second run
		blocks  int
		want    stats.Verdict
		called  string
	}{
		{"decided", 8, stats.Slower, "99 % interval"}, {"interrupted", 8, stats.Inconclusive, "99 % anytime interval"}, {"interrupted", 12, stats.Slower, "99 % anytime interval"},
	} {
		first, second := ended(t, "decided", tt.blocks, 1.02), ended(t, tt.outcome, tt.blocks, 1.10)
		changes, err := across.Between(first, second)
		if err != nil {
			t.Fatal(err)
		}
		if x := changes[0]; x.Effect.Verdict != tt.want || x.Called() != tt.called {
			t.Errorf("%s after %d blocks: %s by %s, a %s, want %s by a %s", tt.outcome, tt.blocks, x.Effect.Verdict, x.Range(), x.Called(), tt.want, tt.called)
		}
	}
}

// TestNoChangeWithoutFloor holds that a change is open where a run has too few trials of the
// control's twin for a noise floor, as the run's own differences are.
func TestNoChangeWithoutFloor(t *testing.T) {
	for pairs, want := range map[int]stats.Verdict{5: stats.Inconclusive, 6: stats.Slower} {
		first, second := made("first", 8, 1.02), made("second", 8, 1.10)
		for _, run := range []*record.Run{first, second} {
			run.Manifest.Study.Twin = true
			for block := range pairs {
				run.Trials = append(run.Trials, record.Trial{Block: block, Arm: "plain", Twin: true, Workload: "half", Steady: true,
					Metrics: map[string]float64{"cpu_per_request": 30_000 + float64(block)}})
			}
		}
		changes, err := across.Between(analyse(t, first), analyse(t, second))
		if err != nil {
			t.Fatal(err)
		}
		if x := changes[0]; x.Effect.Verdict != want {
			t.Errorf("%d pairs of control and twin: %s (%s, floor %g), want %s", pairs, x.Effect.Verdict, x.Range(), x.Floor, want)
		}
	}
}

// ended is a run of two arms, the second of which costs so many times the first.
func ended(t *testing.T, outcome string, blocks int, cost float64) *verdict.Analysis {
	t.Helper()
	return analyse(t, made(outcome, blocks, cost))
}

func made(outcome string, blocks int, cost float64) *record.Run {
	run := &record.Run{Manifest: record.Manifest{
		ID: outcome, Outcome: outcome, Programs: map[string]record.Program{"plain": {BuildID: "a1"}},
		Study: study.Study{
			Name: "api", Control: "plain", Threshold: 0.01, Arms: []study.Arm{{Name: "plain"}, {Name: "api"}},
			Workloads: []study.Workload{{Name: "half"}}, Primary: study.Primary{Metric: "cpu_per_request", Workload: "half"},
		},
	}}
	for block := range blocks {
		for arm, times := range map[string]float64{"plain": 1, "api": cost + 0.0001*float64(block)} {
			run.Trials = append(run.Trials, record.Trial{Block: block, Arm: arm, Workload: "half", Steady: true,
				Metrics: map[string]float64{"cpu_per_request": 30_000 * times}})
		}
	}
	return run
}

func analyse(t *testing.T, run *record.Run) *verdict.Analysis {
	t.Helper()
	a, err := verdict.Analyse(run)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
