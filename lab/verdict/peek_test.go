package verdict_test

import (
	"slices"
	"strings"
	"testing"
)

// TestPeekingAtARun holds that a run which has not ended shows intervals that hold
// whenever one looks, except where it looks itself.
func TestPeekingAtARun(t *testing.T) {
	for _, tc := range []struct {
		outcome string
		blocks  int
		anytime bool
	}{
		{"", 10, true}, {"interrupted", 10, true}, {"", 8, false}, {"interrupted", 12, false}, {"budget", 10, false}, {"cap", 10, false},
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
		{12, "budget", []int{10}, 0.012, false}, {12, "", []int{10}, 0.05, true}, {18, "", []int{10}, 0.012, false},
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
