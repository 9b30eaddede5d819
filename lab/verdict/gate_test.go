package verdict_test

import (
	"testing"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats/bound"
)

func TestGate(t *testing.T) {
	u := base()
	u.effect("three", "cpu_per_request", 1.10)
	u.level["loop_allocs"] = 0
	u.study.Workloads[0] = study.Workload{Name: "half", Schedule: "closed"}
	r := u.run()
	for i := range r.Trials { // throughput falls by a tenth
		if tr := &r.Trials[i]; tr.Arm == "three" {
			tr.Metrics["throughput"] *= 0.9
		}
	}
	a := analyse(t, r)
	for _, tc := range []struct {
		metric string
		harm   float64
		want   bound.Outcome
	}{
		{"cpu_per_request", 0.05, bound.Failed},
		{"cpu_per_request", 0.20, bound.Held},
		{"cpu_per_request", 0.10, bound.Inconclusive},
		{"throughput", 0.05, bound.Failed},
		{"throughput", 0.11, bound.Held},
		{"loop_allocs", 0.05, bound.Held}, // none and none
	} {
		got := a.Gate([]verdict.Budget{{Metric: tc.metric, Harm: tc.harm}})
		if len(got) != 1 || got[0].Result != tc.want || got[0].Arm != "three" || got[0].Withheld != "" {
			t.Errorf("%s, budget %v: got %+v, want %s", tc.metric, tc.harm, got, tc.want)
		}
	}
}

// A budget is held against the workloads that compare by its metric: neither are response
// times of a closed loop undecided for ever, nor does the rate that is offered pass.
func TestGateByWorkload(t *testing.T) {
	u := base()
	u.level["response_p99"] = 5e6
	u.study.Workloads = append(u.study.Workloads, study.Workload{Name: "capacity", Schedule: "closed"})
	a := analyse(t, u.run())
	for metric, want := range map[string]string{"response_p99": "half", "throughput": "capacity"} {
		if got := a.Gate([]verdict.Budget{{Metric: metric, Harm: 0.5}}); len(got) != 1 || got[0].Workload != want {
			t.Errorf("%s: got %+v, want one gate, under %s", metric, got, want)
		}
	}
}

// What is shown of a gate is what it is judged by: the interval at the level of the
// look that the run reached.
func TestGateIsJudgedByTheIntervalShown(t *testing.T) {
	seen := map[bound.Outcome]int{}
	for seed := range uint64(60) {
		u := base()
		u.seed, u.noise = seed, 0.012
		u.effect("three", "cpu_per_request", 1.05)
		budget := 0.03 + 0.04*float64(seed%5)/4
		g := analyse(t, u.run()).Gate([]verdict.Budget{{Metric: "cpu_per_request", Harm: budget}})[0]
		e, ok := g.Relative()
		want := bound.Inconclusive
		switch {
		case e.Interval.Lo > budget:
			want = bound.Failed
		case e.Interval.Hi <= budget:
			want = bound.Held
		}
		if !ok || g.Result != want {
			t.Errorf("budget %v: %s, shown is %v, want %s", budget, g.Result, e.Interval, want)
		}
		seen[g.Result]++
	}
	if len(seen) != 3 {
		t.Errorf("results %v, want some of each", seen)
	}
}

func TestGateOfDifferences(t *testing.T) {
	for _, tc := range []struct {
		before, after float64
		harm          float64
		want          bound.Outcome
	}{
		{0, 1, 0.5, bound.Failed}, // beyond any share of nothing
		{1, 0, 0, bound.Held},
		{4, 5, 0.2, bound.Failed},
		{4, 5, 0.3, bound.Held},
	} {
		u := base()
		u.level["loop_allocs"] = 1
		r := u.run()
		for i := range r.Trials {
			tr := &r.Trials[i]
			tr.Metrics["loop_allocs"] = tc.before + 0.01*float64(tr.Block%3)
			if tr.Arm == "three" {
				tr.Metrics["loop_allocs"] = tc.after - 0.01*float64(tr.Block%2)
			}
		}
		r.Trials = append(r.Trials, r.Trials[0])
		last := &r.Trials[len(r.Trials)-1] // a block of its own, with none: not paired, yet no ratio any more
		last.Block, last.Metrics = 99, map[string]float64{"loop_allocs": 0}
		got := analyse(t, r).Gate([]verdict.Budget{{Metric: "loop_allocs", Harm: tc.harm}})
		if len(got) != 1 || got[0].Scale != verdict.Difference || got[0].Result != tc.want {
			t.Errorf("from %v to %v, budget %v: got %+v, want %s", tc.before, tc.after, tc.harm, got[0], tc.want)
		}
	}
}

// TestGateWithoutTrials holds arms against a budget of which it is not known
// whether they keep it: none may pass.
func TestGateWithoutTrials(t *testing.T) {
	const metric = "response_p99"
	for _, tc := range []struct {
		name   string
		lose   func(*record.Trial)
		metric string
		why    string
	}{
		{"all trials of the arm failed", func(tr *record.Trial) {
			if tr.Arm == "three" {
				tr.Invalid = []string{"it answered nothing"}
			}
		}, metric, "no valid trial of this arm measured it"},
		{"too slow to tell", func(tr *record.Trial) {
			if tr.Arm == "three" {
				delete(tr.Metrics, metric)
			}
		}, metric, "no valid trial of this arm measured it"},
		{"too slow in a trial", func(tr *record.Trial) {
			if tr.Arm == "three" && tr.Block == 2 {
				tr.Requests = 668
			}
		}, metric, "it takes 1,000 requests a trial; the least was 668"},
		{"all trials failed", func(tr *record.Trial) { tr.Invalid = []string{"stolen"} }, metric, "no trial of the workload counts"},
		{"never in one block", func(tr *record.Trial) {
			if (tr.Arm == "three") == (tr.Block < 4) {
				tr.Invalid = []string{"stolen"}
			}
		}, metric, "no block has both this arm and the control"},
		{"of the host", func(*record.Trial) {}, "host_withheld", "it describes the load generator or the host, not an arm"},
		{"of none", func(*record.Trial) {}, "pss", "no workload of the run measures it"},
	} {
		u := base()
		u.level[metric], u.level["host_withheld"] = 5e6, 0.01
		r := u.run()
		for i := range r.Trials {
			tc.lose(&r.Trials[i])
		}
		got := analyse(t, r).Gate([]verdict.Budget{{Metric: "cpu_per_request", Harm: 0.5}, {Metric: tc.metric, Harm: 0.5}})
		if g := got[len(got)-1]; len(got) != 2 || g.Result != bound.Inconclusive || g.Withheld != tc.why || g.Comparison.Metric.Name != tc.metric {
			t.Errorf("%s: got %d gates, the last %s, %q, want two, the last undecided: %q", tc.name, len(got), g.Result, g.Withheld, tc.why)
		}
	}
}

func TestFloors(t *testing.T) {
	a := analyse(t, base().run())
	floors, blocks := a.Floors()
	if blocks != 8 || floors["cpu_per_request"] != a.Primary().Floor {
		t.Errorf("got %v of %d blocks, want the primary metric's %v of 8", floors, blocks, a.Primary().Floor)
	}
	calibrated := base().run() // once before, when it was noisier
	calibrated.Manifest.Floor, calibrated.Manifest.FloorN = map[string]float64{"cpu_per_request": 0.5}, 30
	if again, blocks := analyse(t, calibrated).Floors(); blocks != 8 || again["cpu_per_request"] != floors["cpu_per_request"] {
		t.Errorf("calibrated before: got %v of %d blocks, want the run's own %v of 8", again, blocks, floors)
	}
	for lost, want := range map[int]int{2: 6, 3: 0} { // of 8; an interval takes 6
		r := base().run()
		for i := range r.Trials {
			if tr := &r.Trials[i]; tr.Twin && tr.Block < lost {
				tr.Invalid = []string{"stolen"}
			}
		}
		if floors, blocks := analyse(t, r).Floors(); blocks != want || (len(floors) == 0) != (want == 0) {
			t.Errorf("%d of 8 lost: got %v of %d blocks, want floors of %d", lost, floors, blocks, want)
		}
	}
}

// A floor holds for every workload: one of which too little is known leaves none.
func TestFloorsOfAllWorkloads(t *testing.T) {
	for lost, want := range map[int]int{0: 8, 3: 0, 8: 0} { // blocks of 8
		u := base()
		full := u.study.Workloads[0]
		full.Name = "full"
		u.study.Workloads = append(u.study.Workloads, full)
		r := u.run()
		for i := range r.Trials {
			if tr := &r.Trials[i]; tr.Workload == "full" && tr.Block < lost {
				tr.Invalid = []string{"stolen"}
			}
		}
		if floors, blocks := analyse(t, r).Floors(); blocks != want || (len(floors) == 0) != (want == 0) {
			t.Errorf("%d of 8 lost in one of two workloads: got %v of %d blocks, want floors of %d", lost, floors, blocks, want)
		}
	}
}

// TestGateOfPartOfARun holds runs against a budget that lack an arm, or the metric
// in one of their workloads.
func TestGateOfPartOfARun(t *testing.T) {
	const metric = "response_p99"
	for _, tc := range []struct {
		name string
		lose func(*record.Run)
		want verdict.Gated // the last of two or more
	}{
		{"an arm was left out", func(r *record.Run) {
			r.Manifest.LeftOut = map[string]string{"new": "no such version"}
		}, verdict.Gated{Comparison: &verdict.Comparison{Arm: "new", Withheld: "it took no part: no such version"}}},
		{"a workload too slow to tell", func(r *record.Run) {
			for i := range r.Trials {
				if tr := &r.Trials[i]; tr.Workload == "full" {
					tr.Requests = 668
					delete(tr.Metrics, metric)
				}
			}
		}, verdict.Gated{Comparison: &verdict.Comparison{Arm: "three", Workload: "full", Withheld: "no valid trial of the workload measured it"}}},
	} {
		u := base()
		u.level[metric] = 5e6
		full := u.study.Workloads[0]
		full.Name = "full"
		u.study.Workloads = append(u.study.Workloads, full)
		r := u.run()
		tc.lose(r)
		got := analyse(t, r).Gate([]verdict.Budget{{Metric: metric, Harm: 0.5}})
		g := got[len(got)-1]
		if g.Result != bound.Inconclusive || g.Withheld != tc.want.Withheld || g.Arm != tc.want.Arm || g.Workload != tc.want.Workload {
			t.Errorf("%s: got %s of %s in %q: %q, want %s of %s in %q: %q", tc.name,
				g.Result, g.Arm, g.Workload, g.Withheld, bound.Inconclusive, tc.want.Arm, tc.want.Workload, tc.want.Withheld)
		}
		if got[0].Result != bound.Held {
			t.Errorf("%s: the arm that was measured: got %s, want it to pass", tc.name, got[0].Result)
		}
	}
}

// A budget is of the size of what the control has, below 0 or above it: an arm that
// does no harm does not fail for a control that loses goroutines.
func TestGateBelowZero(t *testing.T) {
	for _, tc := range []struct {
		arm  float64
		want bound.Outcome
	}{{-0.5, bound.Held}, {-0.51, bound.Held}, {-0.4, bound.Failed}} {
		r := base().run()
		for i := range r.Trials {
			m := r.Trials[i].Metrics
			if m["goroutine_growth"] = -0.5; r.Trials[i].Arm == "three" {
				m["goroutine_growth"] = tc.arm
			}
		}
		got := analyse(t, r).Gate([]verdict.Budget{{Metric: "goroutine_growth", Harm: 0.05}})
		if len(got) != 1 || got[0].Result != tc.want {
			t.Errorf("%v against a control of -0.5: got %+v, want %s", tc.arm, got, tc.want)
		}
	}
}
