package verdict_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats/bound"
)

// TestPeekingAtARun holds that a run which has not ended shows intervals that hold
// whenever one looks, except where it looks itself: its last block, and those that make up for
// lost trials, may be under way.
func TestPeekingAtARun(t *testing.T) {
	for _, tc := range []struct {
		outcome string
		blocks  int
		anytime bool
	}{
		{"", 10, true}, {"interrupted", 10, true}, {"", 8, true}, {"interrupted", 12, true}, {record.AtLook, 8, false}, {"budget", 10, false}, {"cap", 10, false},
	} {
		u := base()
		u.blocks, u.noise = tc.blocks, 0.01
		u.effect("three", "cpu_per_request", 1.05)
		r := u.run()
		r.Manifest.Outcome = tc.outcome
		a := analyse(t, r)
		c := compared(t, a, "half", "cpu_per_request", "three")
		warned := slices.ContainsFunc(texts(a.Warnings), func(w string) bool { return strings.Contains(w, "hold whenever one looks") })
		if c.Anytime != tc.anytime || warned != tc.anytime || c.Deciding().Anytime != tc.anytime {
			t.Errorf("outcome %q after %d blocks: anytime %v, warned %v, want %v", tc.outcome, tc.blocks, c.Anytime, warned, tc.anytime)
		}
		r.Manifest.Outcome = "cap"
		if planned := compared(t, analyse(t, r), "half", "cpu_per_request", "three"); tc.anytime && planned.Effect.Interval == c.Effect.Interval {
			t.Errorf("outcome %q: the interval %v is that of the run that has ended", tc.outcome, c.Effect.Interval)
		}
	}
}

// TestInterruptedRunNeedsItsNextLook holds that a run which was interrupted early, with an effect
// far beyond its spread, wants the blocks up to its next look, and not that no number would do.
func TestInterruptedRunNeedsItsNextLook(t *testing.T) {
	for blocks := 2; blocks < 8; blocks++ {
		u := base()
		u.blocks, u.noise = blocks, 0.002
		u.effect("three", "cpu_per_request", 1.6)
		r := u.run()
		r.Manifest.Outcome = "interrupted"
		a := analyse(t, r)
		if c := compared(t, a, "half", "cpu_per_request", "three"); c.Verdict == "inconclusive" && c.Needs != 8-blocks {
			t.Errorf("after %d blocks: %d more, want the %d up to the look at 8 (%s)", blocks, c.Needs, 8-blocks, c.Range())
		}
		if all := texts(a.Warnings); slices.ContainsFunc(all, func(w string) bool { return strings.Contains(w, "deciding would take") }) {
			t.Errorf("after %d blocks, warnings %q", blocks, all)
		}
	}
}

// TestEarlyLookIsSpent holds that a look which a budget took early is not taken again: a run
// that was gone on with is judged by what the others have left of the error rate.
func TestEarlyLookIsSpent(t *testing.T) {
	for _, tc := range []struct {
		blocks  int
		outcome string
		early   []int
		alpha   float64
		anytime bool
	}{
		{10, "budget", nil, 0.010, false}, {10, "budget", []int{10}, 0.010, false}, {12, "budget", nil, 0.010, false},
		{12, "budget", []int{10}, 0.012, false}, {12, "", []int{10}, 0.05, true}, {18, record.AtLook, []int{10}, 0.012, false},
		{18, "budget", []int{10, 12}, 0.018, false},
	} {
		u := base()
		u.blocks = tc.blocks
		r := u.run()
		r.Manifest.Outcome, r.Manifest.Early = tc.outcome, tc.early
		if w := analyse(t, r).Workload("half"); w.Alpha != tc.alpha || w.Anytime != tc.anytime {
			t.Errorf("%d blocks, outcome %q, looks taken after %v: alpha %v, anytime %v, want %v, %v", tc.blocks, tc.outcome, tc.early, w.Alpha, w.Anytime, tc.alpha, tc.anytime)
		}
	}
}

// TestPeekingAtCaptures holds that captures which are not all taken, so that a run may go on with
// them, give intervals that hold whenever one looks.
func TestPeekingAtCaptures(t *testing.T) {
	for _, tc := range []struct {
		outcome string
		taken   int // of 10 rounds
		anytime bool
	}{
		{"cap", 10, false}, {"budget", 7, true}, {"interrupted", 7, true}, {"interrupted", 10, true}, {record.AtLook, 10, false},
	} {
		r := base().run()
		profiled(r, study.Pprof, tc.taken, 0.1, layers())
		r.Manifest.Outcome, r.Manifest.Study.Attribute.Repeat = tc.outcome, 10
		c := compared(t, analyse(t, r), "half", "handlers_cpu", "three")
		if c.Anytime != tc.anytime || c.N != tc.taken {
			t.Errorf("outcome %q, %d of 10 rounds: %d pairs, anytime %v, want %v", tc.outcome, tc.taken, c.N, c.Anytime, tc.anytime)
		}
	}
}

// TestFewTwinsMakeNoFloor holds that fewer than six pairs of control and twin leave
// the floor unknown.
func TestFewTwinsMakeNoFloor(t *testing.T) {
	for blocks, known := range map[int]bool{5: false, 6: true} {
		u := base()
		u.blocks = blocks
		if m := analyse(t, u.run()).Primary(); (m.FloorBy != "") != known {
			t.Errorf("%d twin pairs: floor %v by %q, want it known: %v", blocks, m.Floor, m.FloorBy, known)
		}
	}
}

// TestNoisyMachineFindsNothing holds what a machine too noisy for the threshold says:
// neither a difference nor none, what keeps it from that, and what would decide.
func TestNoisyMachineFindsNothing(t *testing.T) {
	u := base()
	u.noise, u.blocks = 0.15, 8
	a := analyse(t, u.run())
	c := compared(t, a, "half", "cpu_per_request", "three")
	if c.Word() != "undecided" || !c.Undecidable() || a.Decided() {
		t.Fatalf("got %s, floor %v, threshold %v", c.Word(), c.Floor, c.Threshold)
	}
	if !strings.Contains(a.Headline, "would decide") {
		t.Errorf("headline %q does not say what would decide", a.Headline)
	}
	u.blocks = 5
	for _, m := range analyse(t, u.run()).Workloads[0].Metrics {
		for _, c := range m.Compared {
			if c.Verdict != "inconclusive" && m.Name == "cpu_per_request" {
				t.Errorf("%s of 5 blocks, interval %s: %s", m.Name, c.Range(), c.Verdict)
			}
		}
	}
}

// TestTwoHeapsAreWarnedOf holds that an arm which is slower in a quarter of its trials
// is shown as that, not as one that is slower by some middle.
func TestTwoHeapsAreWarnedOf(t *testing.T) {
	for _, mixed := range []bool{false, true} {
		u := base()
		u.blocks = 12
		r := u.run()
		for i := range r.Trials {
			if t := &r.Trials[i]; mixed && t.Arm == "three" && t.Block%4 == 3 {
				t.Metrics["cpu_per_request"] *= 1.10
			}
		}
		a := analyse(t, r)
		c := compared(t, a, "half", "cpu_per_request", "three")
		warned := slices.ContainsFunc(texts(a.Warnings), func(w string) bool { return strings.Contains(w, "two heaps, 9 blocks around") })
		if (c.Heaps != "") != mixed || warned != mixed {
			t.Errorf("a quarter slower %v: heaps %q, warned %v", mixed, c.Heaps, warned)
		}
	}
}

// TestMakeUpBlocksTakeNoLook holds that blocks which make up for lost trials take neither the
// level of a later look nor a warning.
func TestMakeUpBlocksTakeNoLook(t *testing.T) {
	u := base()
	u.blocks = 14
	r := u.run()
	for i := range r.Trials {
		if r.Trials[i].Block >= 12 {
			r.Trials[i].Attempt = 1
		}
	}
	a := analyse(t, r)
	if w := a.Workload("half"); w.Alpha != 0.010 || w.Blocks != 14 {
		t.Errorf("12 planned blocks of %d: alpha %v, want that of the look at 12, 0.010", w.Blocks, w.Alpha)
	}
	if all := texts(a.Warnings); slices.ContainsFunc(all, func(w string) bool { return strings.Contains(w, "no look is planned") }) {
		t.Errorf("warnings %q", all)
	}
}

// TestNoFloorNoVerdict holds that a twin with too few valid trials decides nothing, and not more
// easily than one with enough.
func TestNoFloorNoVerdict(t *testing.T) {
	for _, valid := range []int{5, 6} {
		u := base()
		u.noise = 0.001
		u.effect("three", "cpu_per_request", 1.05)
		r := u.run()
		for i := range r.Trials {
			if r.Trials[i].Twin && r.Trials[i].Block >= valid {
				r.Trials[i].Invalid = []string{"it froze"}
			}
		}
		c := compared(t, analyse(t, r), "half", "cpu_per_request", "three")
		if c.Told() != (valid == 6) || (c.Note == "") != (valid == 6) || c.Verdict == "inconclusive" && c.Needs != 1 {
			t.Errorf("%d pairs of control and twin: %s, note %q, needs %d", valid, c.Verdict, c.Note, c.Needs)
		}
	}
}

// TestNoFloorNoClaim holds that without a noise floor neither a direction, nor an interaction, nor
// a published size is judged, whichever it would be, and that the headline does not say so. A
// bound has no part in it.
func TestNoFloorNoClaim(t *testing.T) {
	sum := study.Check{Kind: study.Interaction, Metric: "cpu_per_request", Workload: "half", Arm: "a3", Plus: []string{"a1", "a2"}, Direction: "more"}
	less, apart, far := sum, differing("cpu_per_request", 6_000), sized("more", 3)
	less.Direction, apart.Arm, far.Arm = "less", "a3", "a3"
	sum.PublishedDifference = ptr(3_000)
	bound := study.Check{Kind: study.Bound, Metric: "cpu_per_request", Workload: "half", Arm: "a3", Op: "<=", Bound: ptr(60_000)}
	for _, valid := range []int{3, 6} {
		u := base()
		u.noise, u.drift = 0.0005, 0.01
		u.arms(4)
		u.effect("a1", "cpu_per_request", 1.05)
		u.effect("a2", "cpu_per_request", 1.05)
		u.effect("a3", "cpu_per_request", 1.2)
		u.study.Claims = []study.Claim{{ID: "c", Checks: []study.Check{sum, less, apart, far, bound}}}
		u.study.Primary.Arm = "a3"
		r := u.run()
		for i := range r.Trials {
			if r.Trials[i].Twin && r.Trials[i].Block >= valid {
				r.Trials[i].Invalid = []string{"it froze"}
			}
		}
		a := analyse(t, r)
		checks := a.Claims[0].Checks
		if checks[4].Holds.Verdict != verdict.Confirmed {
			t.Errorf("%d pairs: the bound is %s", valid, checks[4].Holds.Verdict)
		}
		for i, f := range []verdict.Finding{checks[0].Direction, checks[0].Difference, checks[1].Direction, checks[2].Direction, checks[2].Difference, checks[3].Ratio} {
			open := f.Verdict == verdict.Inconclusive
			if open != (valid == 3) || strings.Contains(f.Reason, "noise floor") != open || open && f.Needs != 3 {
				t.Errorf("%d pairs, finding %d: %+v", valid, i, f)
			}
		}
		if told := strings.Contains(a.Headline, "is confirmed"); told != (valid == 6) || a.Claims[0].Verdict.Settled() != told {
			t.Errorf("%d pairs: headline %q, claim %s", valid, a.Headline, a.Claims[0].Sentence)
		}
	}
}

// TestLagVoidsWhateverATrialTook holds that which response times count does not follow from
// how long they are.
func TestLagVoidsWhateverATrialTook(t *testing.T) {
	u := base()
	r := u.run()
	for i := range r.Trials {
		took := float64(100_000 + 30_000*r.Trials[i].Block) // 100 to 310 µs, 205 in the middle
		lag := 15_000.0
		if r.Trials[i].Block == 7 {
			lag = 25_000
		}
		r.Trials[i].Readings = &record.Readings{Times: map[string]record.Lagged{"response_p95": {Response: took, Lag: lag}}}
		if lag <= took/10 {
			r.Trials[i].Metrics["response_p95"] = took // as a trial by itself has it
		}
	}
	l := analyse(t, r).Workload("half").Metric("response_p95").Level("none")
	if l.N != 7 || l.Points[0].Value != 100_000 || l.Points[6].Block != 6 {
		t.Errorf("got %+v, want all trials but that of block 7, whose lag is more than a tenth of the median", l)
	}
}

// TestGateOfAnUnfinishedRun holds that a gate of a run which has not ended rests on the interval
// that holds whenever one looks: else whoever stops a run when it looks well passes what is harmful.
func TestGateOfAnUnfinishedRun(t *testing.T) {
	for _, tt := range []struct {
		outcome string
		blocks  int
		effect  float64
		want    bound.Outcome
	}{
		{"interrupted", 6, 1.08, bound.Inconclusive}, {"interrupted", 6, 1.02, bound.Inconclusive}, {"", 6, 1.08, bound.Inconclusive},
		{"interrupted", 12, 1.08, bound.Failed}, {"interrupted", 12, 1.02, bound.Held}, {"cap", 8, 1.08, bound.Failed}, {"cap", 8, 1.02, bound.Held},
	} {
		u := base()
		u.blocks = tt.blocks
		u.effect("three", "cpu_per_request", tt.effect)
		r := u.run()
		r.Manifest.Outcome = tt.outcome
		if g := analyse(t, r).Gate([]verdict.Budget{{Metric: "cpu_per_request", Harm: 0.05}})[0]; g.Result != tt.want {
			t.Errorf("outcome %q, %d blocks, truth %g: %s by %s, want %s", tt.outcome, tt.blocks, tt.effect, g.Result, g.Range(), tt.want)
		}
	}
}

// TestUnfinishedRunRanksAndScales holds that ranks and slopes of a run which has not ended are those
// that hold whenever one looks, too.
func TestUnfinishedRunRanksAndScales(t *testing.T) {
	u := base()
	u.arms(4)
	for i, times := range []float64{1, 1.5, 2, 2.5} {
		u.study.Arms[i].X = ptr(float64(i))
		u.effect(u.study.Arms[i].Name, "cpu_per_request", times)
	}
	for blocks, wide := range map[int]bool{6: true, 8: true, 20: false} {
		u.blocks = blocks
		r := u.run()
		r.Manifest.Outcome = "interrupted"
		m := analyse(t, r).Workload("half").Metric("cpu_per_request")
		for i, rank := range m.Ranking.Ranks {
			if open := rank.Lo == 1 && rank.Hi == 4; open != wide {
				t.Errorf("%d blocks: arm %d has ranks %d to %d, want all open: %v", blocks, i, rank.Lo, rank.Hi, wide)
			}
		}
		if blocks != 8 && m.Slope.Interval.Bounded() == wide {
			t.Errorf("%d blocks: the slope is %v, want it unbounded: %v", blocks, m.Slope.Interval, wide)
		}
	}
}
