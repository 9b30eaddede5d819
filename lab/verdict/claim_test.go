package verdict_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
)

// judge analyses a run with one claim of these checks.
func judge(t *testing.T, u truth, change func(*record.Run), checks ...study.Check) verdict.Claim {
	t.Helper()
	u.study.Claims = []study.Claim{{ID: "c", Checks: checks}}
	r := u.run()
	if change != nil {
		change(r)
	}
	return analyse(t, r).Claims[0]
}

func cpu(published, against float64) study.Check {
	return study.Check{
		Kind: study.Effect, Metric: "cpu_per_request", Workload: "half", Arm: "three",
		PublishedArm: ptr(published), PublishedAgainst: ptr(against),
	}
}

func directed(direction string) study.Check {
	return study.Check{Kind: study.Effect, Metric: "cpu_per_request", Workload: "half", Arm: "three", Direction: direction}
}

// sized is a claim that gives a ratio and no figures.
func sized(direction string, ratio float64) study.Check {
	k := directed(direction)
	k.PublishedRatio = ptr(ratio)
	return k
}

// differing is a claim that gives a difference and no figures.
func differing(metric string, difference float64) study.Check {
	k := directed("more")
	k.Metric, k.PublishedDifference = metric, ptr(difference)
	return k
}

func TestEffectClaims(t *testing.T) {
	const none, ok, no, open, other = "", verdict.Confirmed, verdict.Contradicted, verdict.Inconclusive, verdict.NotComparable
	for _, tc := range []struct {
		name                         string
		ratio, noise                 float64
		check                        study.Check
		direction, ratioV, diff, all verdict.Word
		says                         string // in the claim's sentence
	}{
		{"as published", 1.05, 0.004, cpu(31_500, 30_000), ok, ok, ok, ok, "It holds here"},
		{"ratio holds on a slower machine", 1.05, 0.004, cpu(315_000, 300_000), ok, ok, no, verdict.DirectionOnly, "published +15.0 µs"},
		{"much smaller", 1.05, 0.004, cpu(67_200, 30_000), ok, no, no, verdict.DirectionOnly, "the published size does not"},
		{"the other way", 0.95, 0.004, cpu(31_500, 30_000), no, no, no, no, "less CPU"},
		{"nothing there", 1, 0.002, cpu(31_500, 30_000), no, no, no, no, "no effect of practical size"},
		{"too little to count", 1.006, 0.0005, cpu(31_500, 30_000), no, no, no, no, "within ±1.0 %"},
		{"too noisy for the size", 1, 0.05, cpu(30_900, 30_000), open, open, open, open, "shows no measurable difference"},
		{"too noisy, yet not for that size", 1, 0.02, cpu(67_200, 30_000), open, no, no, verdict.SizeExcluded, "The published size does not hold here"},
		{"too noisy, yet not for that ratio", 1, 0.02, sized("more", 2), open, no, none, verdict.SizeExcluded, "the direction is not settled"},
		{"too noisy, and only the difference excluded", 1, 0.02, cpu(3_060_000, 3_000_000), open, open, no, open, "shows no measurable difference"},
		{"published inside the band", 1.006, 0.0005, cpu(30_150, 30_000), open, ok, ok, open, "inside the study's threshold"},
		{"published difference inside the band", 1, 0.0005, differing("cpu_per_request", 100), open, none, open, open, "effect of +100 ns is inside the study's threshold of ±1.0 %"},
		{"published difference beyond the band", 1, 0.0005, differing("cpu_per_request", 1500), no, none, no, no, "no effect of practical size"},
		{"direction alone", 1.05, 0.004, directed("more"), ok, none, none, ok, "0 of 1 check contradicted"},
		{"wrong direction alone", 1.05, 0.004, directed("less"), no, none, none, no, "more CPU"},
		{"ratio alone", 1.05, 0.004, sized("more", 1.05), ok, ok, none, ok, "It holds here"},
		{"another ratio alone", 1.05, 0.004, sized("more", 2), ok, no, none, verdict.DirectionOnly, "the published size does not"},
		{"nothing claimed", 1.05, 0.004, directed(""), other, none, none, other, "no direction"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			u := base()
			u.noise = tc.noise
			u.study.Twin = tc.noise < 0.01 // else its floor hides what the case is about
			u.effect("three", "cpu_per_request", tc.ratio)
			c := judge(t, u, nil, tc.check)
			r := c.Checks[0]
			if r.Direction.Verdict != tc.direction || r.Ratio.Verdict != tc.ratioV || r.Difference.Verdict != tc.diff || c.Verdict != tc.all {
				t.Errorf("got direction %q, ratio %q, difference %q, claim %q; want %q, %q, %q, %q\n%+v", r.Direction.Verdict,
					r.Ratio.Verdict, r.Difference.Verdict, c.Verdict, tc.direction, tc.ratioV, tc.diff, tc.all, r)
			}
			if !strings.Contains(c.Sentence, tc.says) {
				t.Errorf("sentence %q lacks %q", c.Sentence, tc.says)
			}
			for _, f := range []verdict.Finding{r.Direction, r.Ratio, r.Difference} {
				if (f.Verdict == "") != (f.Reason == "") {
					t.Errorf("finding without verdict or reason: %+v", f)
				}
			}
			if by, level := r.Deciding(), map[bool]float64{true: 0.98, false: 0.99}[strings.Contains(r.Direction.Reason, "no effect")]; by.Level != level && r.Direction.Verdict != open {
				t.Errorf("shown beside it: an interval of level %g, want %g", by.Level, level)
			}
			if c.Verdict == open && tc.noise > 0.01 && c.Needs <= 0 {
				t.Errorf("inconclusive, but needs %d more blocks", c.Needs)
			}
		})
	}
}

// A share has no ratio; what was published of it is held against the band as a
// difference.
func TestClaimsOfShares(t *testing.T) {
	figures := func(arm, against float64) study.Check {
		return study.Check{Kind: study.Effect, Metric: "gc_cpu", Workload: "half", Arm: "three", PublishedArm: ptr(arm), PublishedAgainst: ptr(against)}
	}
	for _, tc := range []struct {
		name  string
		check study.Check
		want  verdict.Word
	}{
		{"inside the band", figures(0.1005, 0.100), verdict.Inconclusive},
		{"beyond it", figures(0.120, 0.100), verdict.Contradicted},
		{"a difference inside the band", differing("gc_cpu", 0.0005), verdict.Inconclusive},
		{"a difference beyond it, less than 1 %", differing("gc_cpu", 0.005), verdict.Contradicted},
		{"a difference beyond it", differing("gc_cpu", 0.02), verdict.Contradicted},
	} {
		u := base()
		u.noise, u.drift = 0.0005, 0
		u.level["gc_cpu"] = 0.10 // its band is 1 % of it
		c := judge(t, u, nil, tc.check)
		if got := c.Checks[0].Direction; got.Verdict != tc.want || c.Verdict != tc.want {
			t.Errorf("%s: got %s (%s), want %s", tc.name, c.Verdict, got.Reason, tc.want)
		}
	}
}

func TestAbsoluteFiguresAreNotJudged(t *testing.T) {
	u := base()
	u.effect("three", "cpu_per_request", 1.05)
	k := cpu(31_500, 30_000)
	k.Absolute = "16 cores are not available"
	c := judge(t, u, nil, k)
	r := c.Checks[0]
	if r.Levels.Verdict != verdict.NotComparable || r.Levels.Reason != k.Absolute {
		t.Errorf("levels: got %+v", r.Levels)
	}
	if c.Verdict != verdict.Confirmed {
		t.Errorf("claim: got %q, want its ratio and difference judged all the same", c.Verdict)
	}
}

// Where several checks decide together, the gravest verdict is the claim's, and they
// share the level of their intervals.
func TestDecidingTogether(t *testing.T) {
	fact := func(value string) study.Check {
		return study.Check{Kind: study.Fact, Arm: "three", Fact: "f", Value: value}
	}
	for _, tc := range []struct {
		name     string
		deciding int
		checks   []study.Check
		want     verdict.Word
		says     string
		alpha    float64 // share of the workload's, of the first check
	}{
		{"one decides", 0, []study.Check{directed("more"), directed("less")}, verdict.Confirmed, "It holds here", 1},
		{"all hold", 2, []study.Check{directed("more"), sized("more", 1.05), directed("less")}, verdict.Confirmed, "All parts hold. Part 1 of 2: It holds here", 0.5},
		{"one does not", 2, []study.Check{directed("more"), directed("less")}, verdict.Contradicted, "Part 2 of 2: It does not hold here", 0.5},
		{"one of another size", 2, []study.Check{directed("more"), sized("more", 2)}, verdict.DirectionOnly, "Part 2 of 2: The direction holds here", 0.5},
		{"one not judged", 2, []study.Check{directed("more"), fact("v")}, verdict.NotComparable, "Part 2 of 2: It was not judged", 1},
		{"contradicted, whatever is not judged", 3, []study.Check{directed("more"), fact("v"), directed("less")}, verdict.Contradicted, "Part 3 of 3", 0.5},
	} {
		u := base()
		u.noise = 0.004
		u.effect("three", "cpu_per_request", 1.05)
		u.study.Looks = []int{8}
		u.study.Claims = []study.Claim{{ID: "c", Checks: tc.checks, Deciding: tc.deciding}}
		a := analyse(t, u.run())
		c := a.Claims[0]
		if c.Verdict != tc.want || !strings.HasPrefix(c.Sentence, tc.says) {
			t.Errorf("%s: got %s, %q; want %s, %q", tc.name, c.Verdict, c.Sentence, tc.want, tc.says)
		}
		if part := fmt.Sprintf("Part %d of", c.Part+1); tc.deciding > 1 && !strings.Contains(c.Sentence, part) {
			t.Errorf("%s: the verdict is said to be of %q, not of %q", tc.name, c.Sentence, part)
		}
		if got, want := c.Checks[0].Comparison.Alpha, tc.alpha*a.Workload("half").Alpha; math.Abs(got-want) > 1e-12 {
			t.Errorf("%s: the first check has level %g, want %g", tc.name, got, want)
		}
	}
}

func TestUnmeasuredClaims(t *testing.T) {
	other := func(change func(*study.Check)) study.Check { k := directed("more"); change(&k); return k }
	for _, tc := range []struct {
		name  string
		check study.Check
		says  string
	}{
		{"arm left out", other(func(k *study.Check) { k.Arm = "gone" }), "arm gone took no part: needs nginx"},
		{"control of its own left out", other(func(k *study.Check) { k.Against = "gone" }), "arm gone took no part"},
		{"workload not run", other(func(k *study.Check) { k.Workload = "full" }), "workload full is not part of this run"},
		{"metric not measured", other(func(k *study.Check) { k.Metric = "pss" }), "pss was not measured"},
		{"too few requests", other(func(k *study.Check) { k.Metric = "response_p9999" }), "100,000 requests"},
		{"fact of an arm left out", study.Check{Kind: study.Fact, Arm: "gone", Fact: "f", Value: "v"}, "arm gone took no part"},
		{"fact of no arm", study.Check{Kind: study.Fact, Arm: "five", Fact: "f", Value: "v"}, "arm five is not part of this run"},
		{"not profiled", other(func(k *study.Check) { k.Metric = "kernel_cpu" }), "kernel_cpu was not measured"},
		{"fact not reported", study.Check{Kind: study.Fact, Arm: "three", Fact: "f", Value: "v"}, "does not report f"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			u := base()
			u.level["response_p9999"] = 1e6
			c := judge(t, u, func(r *record.Run) { r.Manifest.LeftOut = map[string]string{"gone": "needs nginx"} }, tc.check)
			if c.Verdict != verdict.NotComparable || !strings.Contains(c.Sentence, tc.says) {
				t.Errorf("got %q: %q, want not comparable: %q", c.Verdict, c.Sentence, tc.says)
			}
		})
	}
}

// TestClaimsWithoutValidTrials: what has no valid trials is open, not out of
// reach.
func TestClaimsWithoutValidTrials(t *testing.T) {
	bound := study.Check{Kind: study.Bound, Metric: "cpu_per_request", Workload: "half", Arm: "three", Op: "<=", Bound: ptr(1)}
	sum := study.Check{Kind: study.Interaction, Metric: "cpu_per_request", Workload: "half", Arm: "three", Plus: []string{"none", "none"}}
	captured := directed("more")
	captured.Metric = "kernel_cpu"
	for _, tc := range []struct {
		name    string
		invalid string // arm; "" = all
		check   study.Check
		says    string
	}{
		{"no trials", "", directed("more"), "workload half has no valid trial"},
		{"none of the arm", "three", directed("more"), "no block has a valid trial of both three and none"},
		{"none of the arm bounded", "three", bound, "no valid trial of three has cpu_per_request"},
		{"none that reports a fact", "three", study.Check{Kind: study.Fact, Arm: "three", Fact: "f", Value: "v"}, "no valid trial of three"},
		{"no capture", "nobody", captured, "no valid capture of workload half has"},
		{"none of the sum", "three", sum, "no block has a valid trial of every arm"},
	} {
		c := judge(t, base(), func(r *record.Run) {
			r.Manifest.Study.Attribute.For = time.Second
			for i := range r.Trials {
				if tc.invalid == "" || r.Trials[i].Arm == tc.invalid {
					r.Trials[i].Invalid = []string{"the arm died under load"}
				}
			}
		}, tc.check)
		if c.Verdict != verdict.Inconclusive || !strings.Contains(c.Sentence, tc.says) {
			t.Errorf("%s: got %q: %q, want inconclusive: %q", tc.name, c.Verdict, c.Sentence, tc.says)
		}
	}
}

func TestInteractionClaims(t *testing.T) {
	for _, tc := range []struct {
		name  string
		both  float64 // true ratio of the pair; each alone costs 5 %
		noise float64
		want  verdict.Word
	}{
		{"more than the sum", 1.2, 0.004, verdict.Confirmed},
		{"less than the sum", 1.02, 0.004, verdict.Contradicted},
		{"the sum", 1.1, 0.001, verdict.Contradicted},
		{"cannot tell", 1.12, 0.05, verdict.Inconclusive},
	} {
		t.Run(tc.name, func(t *testing.T) {
			u := base()
			u.noise, u.drift = tc.noise, 0.01
			u.arms(4)
			u.effect("a1", "cpu_per_request", 1.05)
			u.effect("a2", "cpu_per_request", 1.05)
			u.effect("a3", "cpu_per_request", tc.both)
			c := judge(t, u, nil, study.Check{
				Kind: study.Interaction, Metric: "cpu_per_request", Workload: "half", Arm: "a3", Plus: []string{"a1", "a2"},
			})
			r := c.Checks[0]
			if c.Verdict != tc.want || r.Measured == nil {
				t.Errorf("got %q (%s), want %q", c.Verdict, c.Sentence, tc.want)
			}
			shown := "(99 % interval "
			if strings.Contains(c.Sentence, "no interaction") {
				shown = "(98 % interval "
			}
			if !strings.Contains(c.Sentence, shown) || !strings.Contains(shown, r.Measured.Called()) {
				t.Errorf("%q does not show the interval that decided, %s; measured has the %s", c.Sentence, shown, r.Measured.Called())
			}
			if want := 30_000 * (tc.both - 1.1); tc.noise < 0.01 && !r.Measured.Interval.Contains(want) {
				t.Errorf("true excess %v: interval %+v", want, r.Measured.Interval)
			}
		})
	}
}

// A published interaction is excluded by its size where its direction is open.
func TestInteractionSize(t *testing.T) {
	for _, tc := range []struct {
		name      string
		published float64 // ns that three take more than their parts
		both      float64 // true ratio of the three; the parts alone cost 5 % each
		noise     float64
		want      verdict.Word
		size      verdict.Word
	}{
		{"as published", 3_000, 1.2, 0.004, verdict.Confirmed, verdict.Confirmed},
		{"much smaller", 90_000, 1.2, 0.004, verdict.DirectionOnly, verdict.Contradicted},
		{"too noisy, yet not for that size", 90_000, 1.1, 0.02, verdict.SizeExcluded, verdict.Contradicted},
		{"too noisy", 600, 1.1, 0.05, verdict.Inconclusive, verdict.Inconclusive},
		{"as published, inside the threshold", 100, 1.1 + 100.0/30_000, 0.0003, verdict.Inconclusive, verdict.Confirmed},
	} {
		u := base()
		u.noise, u.drift = tc.noise, 0.01
		u.arms(4)
		u.effect("a1", "cpu_per_request", 1.05)
		u.effect("a2", "cpu_per_request", 1.05)
		u.effect("a3", "cpu_per_request", tc.both)
		c := judge(t, u, nil, study.Check{
			Kind: study.Interaction, Metric: "cpu_per_request", Workload: "half", Arm: "a3", Plus: []string{"a1", "a2"}, Direction: "more", PublishedDifference: ptr(tc.published),
		})
		if c.Verdict != tc.want || c.Checks[0].Difference.Verdict != tc.size || c.Checks[0].PublishedDifference != tc.published {
			t.Errorf("%s: got %q (%s), size %q, want %q and %q", tc.name, c.Verdict, c.Sentence, c.Checks[0].Difference.Verdict, tc.want, tc.size)
		}
	}
}

// A published size that is right within half of it is contradicted on no machine, be it ever so
// quiet, and one that is not is confirmed on none, be it ever so noisy.
func TestSizeOnEveryMachine(t *testing.T) {
	const published = 1.5
	for _, share := range []float64{0.3, 0.6, 0.9, 1.2, 1.4, 1.8} { // of the published effect
		right, wrong := verdict.Confirmed, verdict.Contradicted
		if math.Abs(share-1) > 0.5 {
			right, wrong = wrong, right
		}
		for _, noise := range []float64{0.0002, 0.004, 0.03} {
			for seed := range uint64(5) {
				u := base()
				u.seed, u.noise = seed+1, noise
				u.effect("three", "cpu_per_request", math.Pow(published, share))
				got := judge(t, u, nil, sized("more", published)).Checks[0].Ratio
				if got.Verdict == wrong || noise < 0.001 && got.Verdict != right {
					t.Errorf("%g of the published effect, noise %g, seed %d: got %s (%s), want %s", share, noise, u.seed, got.Verdict, got.Reason, right)
				}
			}
		}
	}
}

// The noise of an interaction is that of more trials than two, and so is its floor.
func TestInteractionFloor(t *testing.T) {
	for _, tc := range []struct {
		floor, both float64
		want        verdict.Word
	}{
		{0.006, 1.1, verdict.Contradicted}, {0.009, 1.1, verdict.Inconclusive},
		{0.006, 1.112, verdict.Confirmed}, {0.009, 1.112, verdict.Inconclusive},
	} {
		u := base()
		u.noise, u.drift, u.study.Twin = 0.0005, 0.01, false
		u.arms(4)
		u.effect("a1", "cpu_per_request", 1.05)
		u.effect("a2", "cpu_per_request", 1.05)
		u.effect("a3", "cpu_per_request", tc.both)
		c := judge(t, u, func(r *record.Run) {
			r.Manifest.Floor, r.Manifest.FloorN = map[string]float64{"cpu_per_request": tc.floor}, 8
		}, study.Check{Kind: study.Interaction, Metric: "cpu_per_request", Workload: "half", Arm: "a3", Plus: []string{"a1", "a2"}})
		if c.Verdict != tc.want {
			t.Errorf("floor %g, both %g: got %s (%s), want %s", tc.floor, tc.both, c.Verdict, c.Sentence, tc.want)
		}
	}
}

func TestFactClaims(t *testing.T) {
	for _, tc := range []struct {
		name   string
		facts  []string // by trial, in turn
		want   verdict.Word
		report string
	}{
		{"as claimed", []string{"0s (none)"}, verdict.Confirmed, "0s (none)"},
		{"other", []string{"5s"}, verdict.Contradicted, "5s"},
		{"changing", []string{"0s (none)", "5s"}, verdict.Contradicted, "0s (none), 5s"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := 0
			c := judge(t, base(), func(r *record.Run) {
				for i := range r.Trials {
					if r.Trials[i].Arm == "three" {
						r.Trials[i].Facts = map[string]string{"ReadTimeout": tc.facts[n%len(tc.facts)]}
						n++
					}
				}
			}, study.Check{Kind: study.Fact, Arm: "three", Fact: "ReadTimeout", Value: "0s (none)"})
			if r := c.Checks[0]; c.Verdict != tc.want || r.Reported != tc.report || !strings.Contains(r.Holds.Reason, tc.report) {
				t.Errorf("got %q, %q (%s), want %q, %q", c.Verdict, r.Reported, r.Holds.Reason, tc.want, tc.report)
			}
		})
	}
}

func TestBoundClaims(t *testing.T) {
	for _, tc := range []struct {
		name  string
		op    string
		bound float64
		want  verdict.Word
	}{
		{"below, as claimed", "<=", 60_000, verdict.Confirmed},
		{"above what is claimed", "<=", 15_000, verdict.Contradicted},
		{"at the bound", "<=", 30_000, verdict.Inconclusive},
		{"above, as claimed", ">=", 15_000, verdict.Confirmed},
		{"below what is claimed", ">=", 60_000, verdict.Contradicted},
	} {
		t.Run(tc.name, func(t *testing.T) {
			u := base()
			u.noise = 0.05
			c := judge(t, u, nil, study.Check{Kind: study.Bound, Metric: "cpu_per_request", Workload: "half", Arm: "three", Op: tc.op, Bound: &tc.bound})
			if c.Verdict != tc.want {
				t.Errorf("cpu_per_request %s %v: got %q (%s), want %q", tc.op, tc.bound, c.Verdict, c.Sentence, tc.want)
			}
		})
	}
	u := base()
	u.level["errors"] = 0
	if c := judge(t, u, nil, study.Check{Kind: study.Bound, Metric: "errors", Workload: "half", Arm: "three", Op: "<=", Bound: ptr(0)}); c.Verdict != verdict.Confirmed {
		t.Errorf("no errors, bound 0: got %q (%s)", c.Verdict, c.Sentence)
	}
}

// A response time that is voided for the generator's lag, which only added to it, still
// shows that a bound from above holds. It never shows that one fails.
func TestBoundsWithLag(t *testing.T) {
	for _, tc := range []struct {
		name   string
		op     string
		voided int // of eight blocks
		took   float64
		want   verdict.Word
	}{
		{"all voided, below", "<=", 8, 100e6, verdict.Confirmed},
		{"some voided, below", "<=", 5, 100e6, verdict.Confirmed},
		{"all voided, above", "<=", 8, 200e6, verdict.Inconclusive},
		{"some voided, above", "<=", 5, 200e6, verdict.Inconclusive},
		{"at least is not shown so", ">=", 8, 200e6, verdict.Inconclusive},
	} {
		u := base()
		u.level["response_p99"] = tc.took
		voided := 0
		c := judge(t, u, func(run *record.Run) {
			for i := range run.Trials {
				if tr := &run.Trials[i]; tr.Arm == "three" && voided < tc.voided {
					tr.Readings = &record.Readings{Times: map[string]record.Lagged{"response_p99": {Response: tr.Metrics["response_p99"], Lag: 40e6}}}
					delete(tr.Metrics, "response_p99")
					voided++
				}
			}
		}, study.Check{Kind: study.Bound, Metric: "response_p99", Workload: "half", Arm: "three", Op: tc.op, Bound: ptr(150e6)})
		if c.Verdict != tc.want || strings.Contains(c.Sentence, "lag included") != (tc.want == verdict.Confirmed) {
			t.Errorf("%s: got %q (%s), want %q", tc.name, c.Verdict, c.Sentence, tc.want)
		}
	}
}

// TestVoidedTimesLeaveAClaimOpen holds that a claim on response times which the generator's lag voids
// in every trial is open: a quieter machine decides it.
func TestVoidedTimesLeaveAClaimOpen(t *testing.T) {
	k := directed("more")
	k.Metric = "response_p95"
	c := judge(t, base(), func(run *record.Run) {
		for i := range run.Trials {
			run.Trials[i].Readings = &record.Readings{Times: map[string]record.Lagged{"response_p95": {Response: 100e3, Lag: 40e3}}}
		}
	}, k)
	if c.Verdict != verdict.Inconclusive || !strings.Contains(c.Sentence, "lag voids") {
		t.Errorf("got %q (%s), want an open claim that names the lag", c.Verdict, c.Sentence)
	}
}

// TestBoundsNeed holds how many more blocks bring the interval's end to the bound, h away from
// the estimate where the bound is h* away: n·(h/h*)² − n.
func TestBoundsNeed(t *testing.T) {
	u := base()
	u.noise, u.drift, u.study.Twin = 0.05, 0, false
	more := func(n int, lo, value, limit float64) int { // both estimates are above the bound
		h := (value - lo) / (value - limit)
		return int(math.Ceil(float64(n)*h*h)) - n
	}
	level := judge(t, u, nil, study.Check{Kind: study.Bound, Metric: "cpu_per_request", Workload: "half", Arm: "three", Op: "<=", Bound: ptr(30_200)}).Checks[0]
	if want := more(8, level.Measured.Interval.Lo, level.Measured.Value, 30_200); level.Holds.Verdict != verdict.Inconclusive || level.Holds.Needs != want || want < 1 {
		t.Errorf("a level: got %+v of %+v, want inconclusive and %d more blocks", level.Holds, level.Measured, want)
	}
	ratio := judge(t, u, nil, study.Check{Kind: study.Bound, Metric: "cpu_per_request", Workload: "half", Arm: "three", Against: "none", Op: "<=", BoundRatio: ptr(1.01)}).Checks[0]
	m := ratio.Measured
	if want := more(8, math.Log(m.Interval.Lo), math.Log(m.Value), math.Log(1.01)); ratio.Holds.Verdict != verdict.Inconclusive || ratio.Holds.Needs != want || want < 1 {
		t.Errorf("a ratio: got %+v of %+v, want inconclusive and %d more blocks", ratio.Holds, m, want)
	}
}

// TestSizesNeed tells how many more blocks settle a size: by how far the interval is from
// being near, and where it is beyond that and inside the floor, by how far that has to shrink.
func TestSizesNeed(t *testing.T) {
	const most = 200
	for _, tc := range []struct {
		name         string
		ratio, floor float64
		noise        float64
		want         verdict.Word // once there are so many blocks
	}{
		{"between near and floor", 1, 0.12, 0.002, verdict.Contradicted},
		{"beyond both, too wide", 1, 0.02, 0.02, verdict.Contradicted},
		{"near, too wide", 1.1, 0.02, 0.02, verdict.Confirmed},
	} {
		u := base()
		u.noise, u.drift, u.study.Twin = tc.noise, 0.01, false
		u.effect("three", "cpu_per_request", tc.ratio)
		ratio := func() verdict.Finding {
			return judge(t, u, func(r *record.Run) {
				r.Manifest.Floor = map[string]float64{"cpu_per_request": tc.floor * math.Sqrt(8/float64(u.blocks))}
				r.Manifest.FloorN = u.blocks
			}, sized("more", 1.1)).Checks[0].Ratio
		}
		few := ratio()
		if few.Verdict != verdict.Inconclusive || few.Needs < 2 || few.Needs > most {
			t.Errorf("%s, 8 blocks: got %+v, want inconclusive, and some more blocks", tc.name, few)
			continue
		}
		u.blocks += 2 * few.Needs
		if got := ratio(); got.Verdict != tc.want {
			t.Errorf("%s: %s after %d blocks (%s), which were said to decide: want %s", tc.name, got.Verdict, u.blocks, got.Reason, tc.want)
		}
	}
}

// TestExcludedSizeSettles tells what settles a claim soonest: where what is published is far from
// what is measured, its exclusion, which takes fewer blocks than the direction.
func TestExcludedSizeSettles(t *testing.T) {
	u := base()
	u.blocks, u.noise, u.drift, u.study.Twin = 5, 0.02, 0.01, false
	c := judge(t, u, nil, cpu(67_200, 30_000))
	if c.Verdict != verdict.Inconclusive || c.Needs != 3 || !strings.Contains(c.Sentence, "; about 3 more blocks would") {
		t.Errorf("5 blocks: got %s, needs %d: %s; want inconclusive, and 3 more blocks", c.Verdict, c.Needs, c.Sentence)
	}
	u.blocks += c.Needs
	if c = judge(t, u, nil, cpu(67_200, 30_000)); c.Verdict != verdict.SizeExcluded {
		t.Errorf("after these: got %s: %s; want %s", c.Verdict, c.Sentence, verdict.SizeExcluded)
	}
}

// TestRunForClaimsGoesOn tells that a run for the sake of claims does not end while one is open, but
// for want of captures, though its primary comparison is decided.
func TestRunForClaimsGoesOn(t *testing.T) {
	open, causes := directed("more"), directed("more")
	open.Metric, causes.Metric = "gc_per_10k", "handlers_cpu"
	for _, tc := range []struct {
		name  string
		check study.Check
		want  bool
	}{
		{"settled", directed("more"), true},
		{"open", open, false},
		{"open for want of captures", causes, true},
	} {
		u := base()
		u.study.Twin, u.level["gc_per_10k"] = false, 4
		u.effect("three", "cpu_per_request", 1.05)
		u.study.Claims = []study.Claim{{ID: "c", Checks: []study.Check{tc.check}}}
		r := u.run()
		profiled(r, study.Pprof, 1, 0, layers())
		for i := range r.Trials {
			if r.Trials[i].Block > 2 {
				delete(r.Trials[i].Metrics, "gc_per_10k")
			}
		}
		if a := analyse(t, r); !a.Decided() || a.Settled() != tc.want {
			t.Errorf("%s: primary decided %t, settled %t (%s); want true, %t", tc.name, a.Decided(), a.Settled(), a.Claims[0].Sentence, tc.want)
		}
	}
}

// TestLostPairsNeedBlocks tells that blocks are asked for, not pairs: where half of the blocks
// brought none, twice as many.
func TestLostPairsNeedBlocks(t *testing.T) {
	u := base()
	u.blocks, u.noise, u.drift, u.study.Twin = 8, 0.02, 0.01, false
	c := judge(t, u, func(r *record.Run) {
		for i := range r.Trials {
			if tr := &r.Trials[i]; tr.Block%2 == 1 && tr.Arm == "three" {
				tr.Invalid = []string{"lost"}
			}
		}
	}, cpu(67_200, 30_000))
	if c.Checks[0].Comparison.N != 4 || c.Needs != 8 {
		t.Errorf("4 pairs of 8 blocks, of the 8 pairs that bound an interval: asks for %d more blocks, want 8", c.Needs)
	}
}

func TestClaimOfSeveralChecks(t *testing.T) {
	u := base()
	u.effect("three", "cpu_per_request", 1.05)
	ok, no := directed("more"), directed("less")
	gone := directed("more")
	gone.Workload = "full"
	away := directed("more")
	away.Arm = "five"
	sizedOff := cpu(67_200, 30_000)
	for _, tc := range []struct {
		name   string
		checks []study.Check
		want   verdict.Word
		says   []string
	}{
		{"all hold", []study.Check{ok, ok}, verdict.Confirmed, []string{"It holds here: CPU per request", "0 of 2 checks contradicted, 0 undecided."}},
		{"a part does not", []study.Check{ok, no, no}, verdict.Confirmed, []string{"2 of 3 checks contradicted, 0 undecided."}},
		{"the headline does not", []study.Check{no, ok}, verdict.Contradicted, []string{"1 of 2 checks contradicted"}},
		{"the size of a part is off", []study.Check{ok, sizedOff}, verdict.Confirmed, []string{"0 of 2 checks contradicted"}},
		{"the size of the headline is off", []study.Check{sizedOff, ok}, verdict.DirectionOnly, []string{"published +37.2 µs, measured +"}},
		{"a part could not be judged", []study.Check{ok, gone}, verdict.Confirmed, []string{"0 undecided, 1 not judged."}},
		{"the headline could not", []study.Check{gone, ok, no}, verdict.NotComparable, []string{"workload full", "1 of 3 checks contradicted, 0 undecided, 1 not judged."}},
		{"no arm of the headline", []study.Check{away, ok}, verdict.NotComparable, []string{"arm five is not part of this run"}},
		{"none could", []study.Check{gone, gone}, verdict.NotComparable, []string{"workload full", "2 not judged"}},
	} {
		c := judge(t, u, nil, tc.checks...)
		for _, says := range tc.says {
			if c.Verdict != tc.want || !strings.Contains(c.Sentence, says) {
				t.Errorf("%s: got %q: %q, want %q: %q", tc.name, c.Verdict, c.Sentence, tc.want, says)
			}
		}
	}
}

// TestPartsDoNotDecide: a claim whose headline is open stays open however its
// parts come out.
func TestPartsDoNotDecide(t *testing.T) {
	u := base()
	u.noise, u.study.Twin = 0.05, false
	u.level["gc_per_10k"] = 4
	u.effect("three", "gc_per_10k", 0.5)
	gc := directed("more")
	gc.Metric = "gc_per_10k"
	c := judge(t, u, nil, cpu(30_900, 30_000), gc)
	if c.Verdict != verdict.Inconclusive || c.Contradicted != 1 || c.Undecided != 1 || c.Needs <= 0 {
		t.Errorf("got %q, %d contradicted, %d undecided, needs %d; want inconclusive, 1, 1, some", c.Verdict, c.Contradicted, c.Undecided, c.Needs)
	}
	if want := "shows no measurable difference"; !strings.Contains(c.Sentence, want) || !strings.Contains(c.Sentence, "published +900 ns") {
		t.Errorf("sentence %q lacks %q or the published figure", c.Sentence, want)
	}
}

// TestBandDoesNotConfirm holds that a run too coarse to see a published size
// does not confirm it, though arm and control are equivalent within its band.
func TestBandDoesNotConfirm(t *testing.T) {
	u := base()
	u.noise, u.study.Twin, u.study.Threshold = 0.05, false, 0.8
	u.effect("three", "cpu_per_request", 1)
	got := judge(t, u, nil, cpu(37_500, 30_000)).Checks[0]
	if got.Ratio.Verdict != verdict.Inconclusive || got.Difference.Verdict != verdict.Inconclusive {
		t.Errorf("published +25 %% with a band of ±80 %%: ratio %s, difference %s, want both inconclusive", got.Ratio.Verdict, got.Difference.Verdict)
	}
}

// TestFloorDoesNotConfirm holds that an effect within the noise floor confirms no published size,
// nor does a floor beyond the threshold confirm that there is no effect. The headline says so, too.
func TestFloorDoesNotConfirm(t *testing.T) {
	none := directed("more")
	none.PublishedDifference = ptr(0)
	for _, tc := range []struct {
		effect, floor float64
		check         study.Check
		want          verdict.Word
	}{
		{1.05, 0.2, cpu(31_500, 30_000), verdict.Inconclusive}, {1.05, 0.02, cpu(31_500, 30_000), verdict.Confirmed},
		{1, 0.2, none, verdict.Inconclusive}, {1, 0.005, none, verdict.Confirmed},
	} {
		u := base()
		u.noise = 0.001
		u.effect("three", "cpu_per_request", tc.effect)
		u.study.Claims = []study.Claim{{ID: "c", Checks: []study.Check{tc.check}}}
		r := u.run()
		r.Manifest.Floor, r.Manifest.FloorN = map[string]float64{"cpu_per_request": tc.floor}, 8
		a := analyse(t, r)
		got := a.Claims[0].Checks[0]
		if got.Difference.Verdict != tc.want || got.Ratio.Verdict != "" && got.Ratio.Verdict != tc.want {
			t.Errorf("effect %g, floor %g: difference %s (%s), ratio %s, want %s", tc.effect, tc.floor, got.Difference.Verdict, got.Difference.Reason, got.Ratio.Verdict, tc.want)
		}
		if tc.want == verdict.Inconclusive && (got.Difference.Needs < 1 || strings.Contains(a.Headline, "confirmed")) {
			t.Errorf("effect %g, floor %g: %d more blocks, headline %q", tc.effect, tc.floor, got.Difference.Needs, a.Headline)
		}
	}
}

// TestUnboundedNeedsBlocks holds that whatever too few blocks leave open asks for as many more as
// bound an interval, at least: direction, sizes, bounds and interactions alike. What captures tell
// asks for rounds of captures: more blocks bring none.
func TestUnboundedNeedsBlocks(t *testing.T) {
	check := func(kind study.CheckKind, change func(*study.Check)) study.Check {
		k := study.Check{Kind: kind, Metric: "cpu_per_request", Workload: "half", Arm: "a3"}
		change(&k)
		return k
	}
	checks := []study.Check{
		check(study.Effect, func(k *study.Check) { k.PublishedArm, k.PublishedAgainst = ptr(36_000), ptr(30_000) }),
		check(study.Bound, func(k *study.Check) { k.Op, k.Bound = "<=", ptr(60_000) }),
		check(study.Bound, func(k *study.Check) { k.Op, k.BoundRatio = "<=", ptr(1.5) }),
		check(study.Interaction, func(k *study.Check) { k.Plus, k.PublishedDifference = []string{"a1", "a2"}, ptr(6_000) }),
	}
	for blocks := 1; blocks <= 7; blocks++ {
		u := base()
		u.blocks, u.noise, u.drift = blocks, 0.0005, 0.0005
		u.arms(4)
		u.effect("a3", "cpu_per_request", 1.2)
		for i, r := range judge(t, u, nil, checks...).Checks {
			for _, f := range []verdict.Finding{r.Direction, r.Ratio, r.Difference, r.Holds} {
				if f.Verdict != "" && (f.Verdict != verdict.Inconclusive || f.Needs != 8-blocks) {
					t.Errorf("check %d after %d blocks: %+v, want inconclusive for want of %d more", i, blocks, f, 8-blocks)
				}
			}
		}
	}
	u := base()
	u.study.Claims = []study.Claim{{ID: "c", Checks: []study.Check{
		{Kind: study.Effect, Metric: "handlers_cpu", Workload: "half", Arm: "three", Direction: "more", PublishedDifference: ptr(20_000)},
		{Kind: study.Bound, Metric: "memory_cpu", Workload: "half", Arm: "three", Op: "<=", Bound: ptr(5000)},
	}}}
	r := u.run()
	profiled(r, study.Pprof, 1, 0, layers())
	c := analyse(t, r).Claims[0]
	for _, f := range []verdict.Finding{c.Checks[0].Direction, c.Checks[0].Difference, c.Checks[1].Holds} {
		if f.Verdict != verdict.Inconclusive || f.More() != "5 more rounds of captures that count" {
			t.Errorf("after one capture: %+v, want 5 more", f)
		}
	}
	if !strings.Contains(c.Sentence, "; about 5 more rounds of captures that count would") || !c.Rounds {
		t.Errorf("claim: %q, rounds %v", c.Sentence, c.Rounds)
	}
}
