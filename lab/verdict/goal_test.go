package verdict_test

import (
	"math"
	"strings"
	"testing"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats/bound"
)

// TestRatioBounds: of true ratio 0.6, measured to a percent or two.
func TestRatioBounds(t *testing.T) {
	for _, tc := range []struct {
		name  string
		op    string
		bound float64
		want  verdict.Word
	}{
		{"below, as claimed", "<=", 0.7, verdict.Confirmed},
		{"above what is claimed", "<=", 0.5, verdict.Contradicted},
		{"at the bound", "<=", 0.6, verdict.Inconclusive},
		{"above, as claimed", ">=", 0.5, verdict.Confirmed},
		{"below what is claimed", ">=", 0.7, verdict.Contradicted},
		{"inside the band, yet beyond", "<=", 0.57, verdict.Contradicted},
	} {
		u := base()
		u.noise, u.study.Threshold = 0.01, 0.2
		u.effect("three", "cpu_per_request", 0.6)
		c := judge(t, u, nil, study.Check{Kind: study.Bound, Metric: "cpu_per_request", Workload: "half", Arm: "three", Op: tc.op, BoundRatio: &tc.bound})
		r := c.Checks[0]
		if c.Verdict != tc.want || r.Measured == nil {
			t.Errorf("%s: ratio %s %v: got %q (%s), want %q", tc.name, tc.op, tc.bound, c.Verdict, c.Sentence, tc.want)
			continue
		}
		if i := r.Measured.Interval; !(i.Lo > 0.57 && i.Lo < 0.6 && i.Hi > 0.6 && i.Hi < 0.64) || math.Abs(r.Measured.Value-0.6) > 0.02 {
			t.Errorf("%s: measured %+v, want 0.6 amid a narrow interval", tc.name, r.Measured)
		}
		if !strings.Contains(r.Holds.Reason, "× that of none") || tc.want == verdict.Inconclusive && r.Holds.Needs <= 0 {
			t.Errorf("%s: reason %q, needs %d", tc.name, r.Holds.Reason, r.Holds.Needs)
		}
	}
}

// TestBoundOfDifference bounds what an arm of true ratio 0.6 takes more than another, in the metric's
// unit.
func TestBoundOfDifference(t *testing.T) {
	level := base().level["cpu_per_request"]
	for _, tc := range []struct {
		name    string
		op      string
		bound   float64 // of the control's level
		against string
		want    verdict.Word
	}{
		{"less by more than asked for", "<=", -0.3, "none", verdict.Confirmed},
		{"less by too little", "<=", -0.5, "none", verdict.Contradicted},
		{"at the bound", "<=", -0.4, "none", verdict.Inconclusive},
		{"not so much less", ">=", -0.5, "none", verdict.Confirmed},
		{"what the arm itself takes", "<=", -0.3, "", verdict.Contradicted},
		{"an arm that is not there", "<=", -0.3, "gone", verdict.NotComparable},
	} {
		u := base()
		u.noise, u.drift = 0.01, 0.01
		u.effect("three", "cpu_per_request", 0.6)
		limit := tc.bound * level
		r := judge(t, u, func(r *record.Run) { r.Manifest.LeftOut = map[string]string{"gone": "needs nginx"} }, study.Check{
			Kind: study.Bound, Metric: "cpu_per_request", Workload: "half", Arm: "three", Against: tc.against, Op: tc.op, Bound: &limit}).Checks[0]
		if r.Holds.Verdict != tc.want {
			t.Errorf("%s: got %q (%s), want %q", tc.name, r.Holds.Verdict, r.Holds.Reason, tc.want)
			continue
		}
		if tc.against != "none" {
			continue
		}
		if e := r.Measured; e == nil || !(e.Interval.Lo < -0.4*level && -0.4*level < e.Interval.Hi) || e.Interval.Width() > 0.06*level {
			t.Errorf("%s: measured %+v, want %v amid a narrow interval", tc.name, e, -0.4*level)
		}
		if !strings.Contains(r.Holds.Reason, "of three less that of none is ") || tc.want == verdict.Inconclusive && r.Holds.Needs <= 0 {
			t.Errorf("%s: reason %q, needs %d", tc.name, r.Holds.Reason, r.Holds.Needs)
		}
	}
}

func TestRatiosThatCannotBeBounded(t *testing.T) {
	ratio := func(metric, arm, against string) study.Check {
		return study.Check{Kind: study.Bound, Metric: metric, Workload: "half", Arm: arm, Against: against, Op: "<=", BoundRatio: ptr(1)}
	}
	for _, tc := range []struct {
		name   string
		blocks int
		check  study.Check
		want   bound.Outcome
		says   string
	}{
		{"zeros", 8, ratio("loop_allocs", "three", ""), verdict.NotJudged, "has no ratio"},
		{"left out", 8, ratio("cpu_per_request", "three", "gone"), verdict.NotJudged, "needs nginx"},
		{"not measured", 8, ratio("pss", "three", ""), verdict.NotJudged, "was not measured"},
		{"too few blocks", 2, ratio("cpu_per_request", "three", ""), bound.Inconclusive, "unbounded"},
	} {
		u := base()
		u.blocks = tc.blocks
		u.level["loop_allocs"] = 0
		r := judge(t, u, func(r *record.Run) { r.Manifest.LeftOut = map[string]string{"gone": "needs nginx"} }, tc.check).Checks[0]
		if r.Outcome() != tc.want || !strings.Contains(r.Holds.Reason, tc.says) {
			t.Errorf("%s: got %q: %q, want %q: %q", tc.name, r.Outcome(), r.Holds.Reason, tc.want, tc.says)
		}
	}
}

// A ratio of too few blocks is not bounded by 0 either: that it cannot be less says
// nothing of what was measured.
func TestRatioOfFewBlocks(t *testing.T) {
	u := base()
	u.blocks = 2
	r := judge(t, u, nil, study.Check{Kind: study.Bound, Metric: "cpu_per_request", Workload: "half", Arm: "three", Op: "<=", BoundRatio: ptr(1)}).Checks[0]
	if r.Measured == nil || !math.IsInf(r.Measured.Interval.Lo, -1) || !math.IsInf(r.Measured.Interval.Hi, 1) {
		t.Errorf("measured %+v, want an interval without ends", r.Measured)
	}
}

func TestGoals(t *testing.T) {
	cpu := func(ratio float64, workloads ...string) study.Goal {
		return study.Goal{Says: "less", Metrics: []string{"cpu_per_request"}, Workloads: workloads, Arms: []string{"three"}, Against: []string{"none"}, Op: "<=", BoundRatio: ptr(ratio)}
	}
	both := cpu(0.7, "half")
	both.Arms = []string{"three", "two"}
	allocs := study.Goal{Metrics: []string{"loop_allocs"}, Workloads: []string{"half"}, Arms: []string{"three"}, Op: "<=", Bound: ptr(0)}
	for _, tc := range []struct {
		name string
		goal study.Goal
		want bound.Outcome
		says string
	}{
		{"reached", cpu(0.7, "half"), bound.Held, "1 of 1 check held"},
		{"missed", cpu(0.5, "half"), bound.Failed, "0 of 1 check held, 1 failed"},
		{"undecided", cpu(0.6, "half"), bound.Inconclusive, "0 of 1 check held, 1 inconclusive"},
		{"one of two missed", both, bound.Failed, "1 of 2 checks held, 1 failed"},
		{"one of two not judged", cpu(0.7, "half", "full"), bound.Inconclusive, "1 of 2 checks held, 1 not judged"},
		{"not judged", cpu(0.7, "full"), verdict.NotJudged, "0 of 1 check held, 1 not judged"},
		{"nothing allocated", allocs, bound.Held, "1 of 1 check held"},
	} {
		u := base()
		u.noise = 0.01
		u.level["loop_allocs"] = 0
		u.study.Arms = append(u.study.Arms, study.Arm{Name: "two"})
		u.effect("three", "cpu_per_request", 0.6)
		u.study.Goals = []study.Goal{tc.goal}
		g := analyse(t, u.run()).Goals[0]
		if g.Outcome != tc.want || g.Tally() != tc.says || g.Says != tc.goal.Says {
			t.Errorf("%s: got %q, %q, want %q, %q", tc.name, g.Outcome, g.Tally(), tc.want, tc.says)
		}
	}
}
