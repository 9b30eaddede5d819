package verdict_test

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/tally"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats"
)

func TestKnownEffects(t *testing.T) {
	for _, tc := range []struct {
		ratio   float64
		noise   float64
		want    stats.Verdict
		word    string
		decided bool
	}{
		{1.05, 0.004, stats.Slower, "more CPU", true},
		{0.90, 0.004, stats.Faster, "less CPU", true},
		{1.00, 0.002, stats.Equivalent, "no different", true},
		{1.006, 0.0005, stats.Small, "a little more CPU", true},
		{1.02, 0.05, stats.Inconclusive, "undecided", false},
	} {
		t.Run(fmt.Sprintf("ratio=%v noise=%v", tc.ratio, tc.noise), func(t *testing.T) {
			u := base()
			u.noise = tc.noise
			u.effect("three", "cpu_per_request", tc.ratio)
			a := analyse(t, u.run())
			c := compared(t, a, "half", "cpu_per_request", "three")
			if c.Verdict != tc.want || c.Word() != tc.word || a.Decided() != tc.decided {
				t.Errorf("true ratio %v: got %s (%q, decided %v), want %s (%q, %v); effect %+v, sizes %v",
					tc.ratio, c.Verdict, c.Word(), a.Decided(), tc.want, tc.word, tc.decided, c.Effect, c.Sizes)
			}
			if e, ok := c.Relative(); !ok || !e.Interval.Contains(tc.ratio-1) {
				t.Errorf("true ratio %v: interval %+v does not hold it", tc.ratio, e.Interval)
			}
			if want := 30_000 * (tc.ratio - 1); tc.noise < 0.01 && !c.Difference.Interval.Contains(want) {
				t.Errorf("true difference %v: interval %+v does not hold it", want, c.Difference.Interval)
			}
			if (c.Needs > 0) != (c.Verdict == stats.Inconclusive) {
				t.Errorf("verdict %s needs %d more blocks", c.Verdict, c.Needs)
			}
			if c.N != 8 || c.Alpha != 0.010 || c.Family != 1 {
				t.Errorf("n %d, alpha %v, family %d: want 8, 0.010 of the first look, 1", c.N, c.Alpha, c.Family)
			}
		})
	}
}

// TestCoverage: over many runs the intervals hold the truth as often as they
// say, and a null effect is called one no more often than that.
func TestCoverage(t *testing.T) {
	const runs = 400
	missed, called := 0, 0
	for seed := range uint64(runs) {
		u := base()
		u.seed, u.study.Twin = seed, false
		u.study.Threshold = 0
		c := compared(t, analyse(t, u.run()), "half", "cpu_per_request", "three")
		if !c.Effect.Interval.Contains(0) {
			missed++
		}
		if c.Told() {
			called++
		}
	}
	if most := stats.ClopperPearson(missed, runs, 0.02); most.Lo > 0.010 {
		t.Errorf("the 99 %% interval missed the truth in %d of %d runs", missed, runs)
	}
	if called > missed {
		t.Errorf("%d effects called, %d intervals without 0", called, missed)
	}
}

// TestDriftCancels: what a block's trials share must not count.
func TestDriftCancels(t *testing.T) {
	calm, wild := base(), base()
	calm.drift, wild.drift = 0, 1
	x := compared(t, analyse(t, calm.run()), "half", "cpu_per_request", "three")
	y := compared(t, analyse(t, wild.run()), "half", "cpu_per_request", "three")
	if math.Abs(x.Effect.Effect-y.Effect.Effect) > 1e-12 {
		t.Errorf("effect %v without drift, %v with", x.Effect.Effect, y.Effect.Effect)
	}
}

func TestAnalyseIsPure(t *testing.T) {
	u := base()
	u.arms(5)
	r := u.run()
	x, y := analyse(t, r), analyse(t, r)
	if !reflect.DeepEqual(x, y) {
		t.Error("two analyses of one run differ")
	}
	if !reflect.DeepEqual(r, u.run()) {
		t.Error("the run was changed")
	}
}

func TestPairing(t *testing.T) {
	u := base()
	u.effect("three", "cpu_per_request", 1.05)
	r := u.run()
	at := func(block int, arm string, twin bool) int {
		return slices.IndexFunc(r.Trials, func(t record.Trial) bool { return t.Block == block && t.Arm == arm && t.Twin == twin })
	}
	// Block 0 loses its arm, block 1 its control; both are made up in blocks
	// of their own, beside the control. The pilot must not count.
	r.Trials[at(0, "three", false)].Invalid = []string{"the generator used 91 % of its CPUs, more than 80 %"}
	r.Trials[at(1, "none", false)].Invalid = []string{"the arm died under load"}
	wild := r.Trials[at(2, "three", false)]
	wild.Block, wild.Metrics = -1, map[string]float64{"cpu_per_request": 1e9}
	r.Trials = append(r.Trials, wild)
	for i := range 2 {
		for _, arm := range []string{"three", "none"} {
			m := r.Trials[at(3+i, arm, false)]
			m.Block, m.Attempt, m.Seq = 8+i, 1, len(r.Trials)
			r.Trials = append(r.Trials, m)
		}
	}
	a := analyse(t, r)
	c := compared(t, a, "half", "cpu_per_request", "three")
	if c.N != 8 || c.Verdict != stats.Slower {
		t.Errorf("got %d pairs and %s, want 8 and slower", c.N, c.Verdict)
	}
	if w := a.Workload("half"); w.Blocks != 8 || w.Alpha != 0.010 {
		t.Errorf("got %d blocks at alpha %v, want 8 at 0.010", w.Blocks, w.Alpha)
	}
	want := tally.Tally{Total: 28, Valid: 26, Pilot: 1, Invalid: []tally.Invalid{
		{Arm: "three", Reason: "the generator used 91 % of its CPUs, more than 80 %", N: 1},
		{Arm: "none", Reason: "the arm died under load", N: 1},
	}, Warning: []tally.Warning{}}
	if !reflect.DeepEqual(a.Trials, want) {
		t.Errorf("tally: got %+v, want %+v", a.Trials, want)
	}
}

func TestReasonsThatDifferInFiguresAreOne(t *testing.T) {
	r := base().run()
	n := 0
	for i := range r.Trials {
		if r.Trials[i].Arm == "three" {
			r.Trials[i].Invalid = []string{fmt.Sprintf("achieved %d requests a second of 10000 offered", 9000+i)}
			n++
		}
	}
	a := analyse(t, r)
	if len(a.Trials.Invalid) != 1 || a.Trials.Invalid[0].N != n {
		t.Errorf("got %+v, want one reason %d times", a.Trials.Invalid, n)
	}
	if a.Decided() || !strings.Contains(a.Headline, "Nothing is decided") {
		t.Errorf("without one valid pair: decided %v, headline %q", a.Decided(), a.Headline)
	}
}

// What trials that count warn of is told, not only how many do.
func TestWarningsAreTold(t *testing.T) {
	r := base().run()
	for i := range r.Trials {
		r.Trials[i].Warnings = []string{fmt.Sprintf("%sresponse_p99: the generator's lag is %d ms", []string{"", "response_p90, "}[i%2], i)}
	}
	r.Trials[0].Invalid = []string{"no"}
	a := analyse(t, r)
	if w := a.Trials.Warning; len(w) != 1 || w[0].N != len(r.Trials)-1 || !strings.Contains(w[0].Text, "1 ms") {
		t.Errorf("got %+v, want one warning of %d trials", w, len(r.Trials)-1)
	}
}

// TestTheBetterTrialsAlone holds that an arm whose slow trials are refused, so that the others show
// no difference, is warned of.
func TestTheBetterTrialsAlone(t *testing.T) {
	u := base()
	u.blocks = 30
	r := u.run()
	for i := range r.Trials {
		if tr := &r.Trials[i]; tr.Arm == "three" && tr.Block%3 == 0 {
			tr.Metrics["cpu_per_request"] *= 1.3
			tr.Invalid = []string{"achieved 9000 requests a second of 10000 offered"}
		}
	}
	warned := func() bool {
		return slices.ContainsFunc(texts(analyse(t, r).Warnings), func(w string) bool {
			return strings.Contains(w, "three, workload half: 10 of 30 trials do not count, but 0 of 30 of none")
		})
	}
	if !warned() {
		t.Errorf("not warned of, got %q", texts(analyse(t, r).Warnings))
	}
	for i := range r.Trials {
		r.Trials[i].Invalid = nil
	}
	if warned() {
		t.Error("warned of, although every trial counts")
	}
}

func TestZerosAreComparedByDifference(t *testing.T) {
	u := base()
	u.level["loop_allocs"] = 3
	u.effect("three", "loop_allocs", 2)
	u.noise, u.drift = 0, 0
	r := u.run()
	for i := range r.Trials {
		if r.Trials[i].Arm == "none" {
			r.Trials[i].Metrics["loop_allocs"] = 0
		}
	}
	c := compared(t, analyse(t, r), "half", "loop_allocs", "three")
	if _, ok := c.Relative(); ok || c.Scale != verdict.Difference {
		t.Errorf("scale %s with a relative effect %v, want difference without", c.Scale, ok)
	}
	if c.Verdict != stats.Slower || c.Difference.Value != 6 || c.Word() != "allocates more" {
		t.Errorf("got %s, %v, %q; want slower, 6, allocates more", c.Verdict, c.Difference.Value, c.Word())
	}
}

func TestAllTies(t *testing.T) {
	u := base()
	u.noise, u.drift = 0, 0
	c := compared(t, analyse(t, u.run()), "half", "cpu_per_request", "three")
	if c.Verdict != stats.Equivalent || c.Effect.Effect != 0 || c.Effect.Interval != (stats.Interval{}) {
		t.Errorf("equal values throughout: got %+v", c.Effect)
	}
}

func TestSizes(t *testing.T) {
	u := base()
	a := analyse(t, u.run())
	m := a.Primary()
	if m.FloorBy != "the control's twin in this run" || m.Floor <= 0 || m.Floor > 0.02 {
		t.Errorf("with a twin: floor %v by %q", m.Floor, m.FloorBy)
	}
	if want := math.Log1p(0.01); m.Threshold != want || m.Band() < want {
		t.Errorf("threshold %v, band %v: want %v, and no less", m.Threshold, m.Band(), want)
	}
	if m.Twin == nil || m.Twin.N != 8 {
		t.Errorf("twin: got %+v, want a comparison of 8 blocks", m.Twin)
	}

	u.study.Twin = false
	a = analyse(t, u.run())
	if m := a.Primary(); m.Floor != 0 || !slices.ContainsFunc(texts(a.Warnings), func(s string) bool { return strings.Contains(s, "no noise floor") }) {
		t.Errorf("with neither twin nor calibration: floor %v, warnings %q", m.Floor, a.Warnings)
	}

	r := u.run()
	r.Manifest.Floor, r.Manifest.FloorN = map[string]float64{"cpu_per_request": 0.03}, 32
	if m := analyse(t, r).Primary(); math.Abs(m.Floor-0.06) > 1e-12 || m.Band() != m.Floor || m.FloorBy != "calibration" {
		t.Errorf("calibrated 0.03 at 32 blocks, 8 run: floor %v by %q, band %v; want 0.06", m.Floor, m.FloorBy, m.Band())
	}
}

func TestQuantilesNeedRequests(t *testing.T) {
	u := base()
	u.level["response_p999"], u.level["response_p99"] = 9e5, 5e5
	u.request = 9_999
	w := analyse(t, u.run()).Workload("half")
	if m := w.Metric("response_p999"); m.Withheld != "it takes 10,000 requests a trial; the least was 9,999" || len(m.Compared) != 0 || len(m.Levels) != 0 {
		t.Errorf("p99.9 of 9,999 requests: got %+v", m)
	}
	if m := w.Metric("response_p99"); m.Withheld != "" || len(m.Compared) != 1 {
		t.Errorf("p99 of 9,999 requests: withheld %q, %d comparisons", m.Withheld, len(m.Compared))
	}
}

// A trial of too few requests keeps no p99.9 of response times at all; those of
// its arm that were faster must not stand for it.
func TestQuantilesNeedRequestsOfEveryTrial(t *testing.T) {
	u := base()
	u.level["response_p999"] = 9e5
	r := u.run()
	slow := &r.Trials[slices.IndexFunc(r.Trials, func(t record.Trial) bool { return t.Arm == "three" })]
	slow.Requests = 668
	delete(slow.Metrics, "response_p999")
	m := analyse(t, r).Workload("half").Metric("response_p999")
	if m.Withheld != "it takes 10,000 requests a trial; the least was 668" || len(m.Levels) != 0 {
		t.Errorf("p99.9, left out of a trial of 668 requests: got %q, %d levels", m.Withheld, len(m.Levels))
	}
}

// A twin that has no pair of valid trials yet is a twin all the same.
func TestNoFloorYet(t *testing.T) {
	u := base()
	r := u.run()
	r.Trials = slices.DeleteFunc(r.Trials, func(t record.Trial) bool { return t.Twin })
	warnings := texts(analyse(t, r).Warnings)
	if !slices.ContainsFunc(warnings, func(s string) bool { return strings.Contains(s, "have 0 valid pairs, of the 6") }) ||
		slices.ContainsFunc(warnings, func(s string) bool { return strings.Contains(s, "has no twin") }) {
		t.Errorf("a twin without a valid trial: got %q", warnings)
	}
}

func TestResponseTimesAtOtherRatesAreNotCompared(t *testing.T) {
	u := base()
	u.level["response_p50"] = 80_000
	u.effect("three", "throughput", 0.97)
	a := analyse(t, u.run())
	c := compared(t, a, "half", "response_p50", "three")
	if !strings.Contains(c.Withheld, "9,700/s and 10,000/s") || c.Verdict != "" || c.Word() != "not compared" {
		t.Errorf("rates 3 %% apart: got %q, %q", c.Withheld, c.Verdict)
	}
	if c := compared(t, a, "half", "cpu_per_request", "three"); c.Withheld != "" {
		t.Errorf("CPU per request: withheld %q", c.Withheld)
	}
	u.effect("three", "throughput", 0.985)
	if c := compared(t, analyse(t, u.run()), "half", "response_p50", "three"); c.Withheld != "" || c.Verdict == "" {
		t.Errorf("rates 1.5 %% apart: withheld %q, verdict %q", c.Withheld, c.Verdict)
	}
}

// More throughput is faster, more CPU is slower.
func TestWhichWayIsBetter(t *testing.T) {
	for ratio, want := range map[float64][2]stats.Verdict{1.1: {stats.Faster, stats.Slower}, 0.9: {stats.Slower, stats.Faster}} {
		u := base()
		u.effect("three", "throughput", ratio)
		u.effect("three", "cpu_per_request", ratio)
		a := analyse(t, u.run())
		for i, metric := range []string{"throughput", "cpu_per_request"} {
			if got := compared(t, a, "half", metric, "three").Verdict; got != want[i] {
				t.Errorf("%s times %v: got %s, want %s", metric, ratio, got, want[i])
			}
		}
	}
}

func TestInstrumentIsNotCompared(t *testing.T) {
	u := base()
	u.level["generator_cpu"] = 0.3
	m := analyse(t, u.run()).Workload("half").Metric("generator_cpu")
	if !m.Instrument || len(m.Compared) != 0 || len(m.Levels) != 3 {
		t.Errorf("servers: got %+v, want levels only", m)
	}
	u.study.Kind = study.Generators
	m = analyse(t, u.run()).Workload("half").Metric("generator_cpu")
	if m.Instrument || len(m.Compared) != 1 {
		t.Errorf("generators: got %+v, want a comparison", m)
	}
	u.level["host_withheld"] = 0.1
	if m = analyse(t, u.run()).Workload("half").Metric("host_withheld"); !m.Instrument || len(m.Compared) != 0 {
		t.Errorf("the host: got %+v, want levels only", m)
	}
}

func TestFamily(t *testing.T) {
	u := base()
	u.arms(13)
	for i := 1; i < 13; i++ {
		u.effect(fmt.Sprintf("a%d", i), "cpu_per_request", 1.1)
	}
	a := analyse(t, u.run())
	c := compared(t, a, "half", "cpu_per_request", "a5")
	if c.Effect.Verdict != stats.Slower || c.Verdict != stats.Inconclusive || c.Note == "" || c.Family != 12 {
		t.Errorf("8 blocks, 12 arms: alone %s, in the family %s (%q, family %d); want slower, inconclusive", c.Effect.Verdict, c.Verdict, c.Note, c.Family)
	}
	if p := a.Progress(); p.Undecided != 12 || p.Blocks != 8 || p.Look.Blocks != 8 || p.Blocks+p.Needs != stats.BlocksForFamily(12, 0.010) {
		t.Errorf("progress: got %+v", p)
	}

	more := u
	more.blocks = 20
	a = analyse(t, more.run())
	levels := map[float64]bool{}
	for i := 1; i < 13; i++ {
		c := compared(t, a, "half", "cpu_per_request", fmt.Sprintf("a%d", i))
		d := c.Deciding()
		if c.Verdict != stats.Slower || d.Level < 1-c.Alpha || d.Lo == nil || *d.Lo <= 0 {
			t.Errorf("20 blocks, a%d: %s by %s: want slower, by an interval of at least its own level without 0", i, c.Verdict, d.Text(c))
		}
		levels[d.Level] = true
	}
	if len(levels) != 12 {
		t.Errorf("12 arms were decided at %d levels, want each at its step", len(levels))
	}

	u.study.Primary.Arm = "a5"
	a = analyse(t, u.run())
	if c := compared(t, a, "half", "cpu_per_request", "a5"); c.Verdict != stats.Slower || !a.Decided() {
		t.Errorf("as the only declared comparison: got %s, decided %v", c.Verdict, a.Decided())
	}
	if c := compared(t, a, "half", "cpu_per_request", "a6"); c.Family != 0 {
		t.Errorf("another arm is of the family of %d", c.Family)
	}

	u.study.Primary.Arm, u.blocks = "", 12
	a = analyse(t, u.run())
	if !a.Decided() || !strings.Contains(a.Headline, "CPU per request: 12 of 12 arms higher than a0; highest a") {
		t.Errorf("12 blocks: decided %v, headline %q", a.Decided(), a.Headline)
	}
}

// TestArmWithoutPairs loses an arm: the study is not decided by the others alone.
func TestArmWithoutPairs(t *testing.T) {
	for _, tc := range []struct {
		name string
		lose func(*record.Trial)
		warn []string
	}{
		{"no trial counts", func(tr *record.Trial) { tr.Invalid = []string{"the arm died under load"} }, []string{
			"workload half: fewer than its 8 blocks for a2",
			"a2, CPU per request, is not compared: no block has a valid trial of both with CPU per request",
		}},
		{"none tells the metric", func(tr *record.Trial) { delete(tr.Metrics, "cpu_per_request") }, []string{
			"a2, CPU per request, is not compared: no block has a valid trial of both with CPU per request",
		}},
	} {
		u := base()
		u.arms(3)
		u.effect("a1", "cpu_per_request", 1.1)
		lost := func(blocks int) *verdict.Analysis {
			u.blocks = blocks
			r := u.run()
			for i := range r.Trials {
				if tr := &r.Trials[i]; tr.Arm == "a2" {
					tc.lose(tr)
				}
			}
			return analyse(t, r)
		}
		a := lost(12)
		if c := compared(t, a, "half", "cpu_per_request", "a1"); c.Verdict != stats.Slower || a.Decided() {
			t.Errorf("%s, 12 blocks: a1 is %s, decided %v; want slower, not decided", tc.name, c.Verdict, a.Decided())
		}
		a = lost(8)
		if c := compared(t, a, "half", "cpu_per_request", "a1"); c.Effect.Verdict != stats.Slower || c.Verdict != stats.Inconclusive {
			t.Errorf("%s, 8 blocks: a1 alone is %s, as one of two %s; want slower, inconclusive", tc.name, c.Effect.Verdict, c.Verdict)
		}
		if p := a.Progress(); a.Decided() || p.Decided+p.Undecided != 2 {
			t.Errorf("%s: decided %v, progress %+v; want two comparisons, not decided", tc.name, a.Decided(), p)
		}
		if c := compared(t, a, "half", "cpu_per_request", "a1"); c.Family != 2 {
			t.Errorf("%s: family of %d, want 2", tc.name, c.Family)
		}
		if !strings.HasSuffix(a.Headline, " Not compared: a2.") {
			t.Errorf("%s: headline %q does not tell that a2 is missing", tc.name, a.Headline)
		}
		if got := texts(a.Warnings); !slices.Equal(got, tc.warn) {
			t.Errorf("%s: got warnings %q, want %q", tc.name, got, tc.warn)
		}
	}
}

// TestNeverDiffers measures the same figure in every trial, as allocations are: the
// twin tells the floor though that is 0, and nothing is left to be decided.
func TestNeverDiffers(t *testing.T) {
	for _, level := range []float64{0, 4} {
		u := base()
		u.study.Primary.Metric = "loop_allocs"
		u.level["loop_allocs"], u.noise, u.drift = level, 0, 0
		a := analyse(t, u.run())
		c := compared(t, a, "half", "loop_allocs", "three")
		if m := a.Primary(); c.Verdict != stats.Equivalent || m.Floor != 0 || m.FloorBy == "" || len(a.Warnings) != 0 {
			t.Errorf("always %v: got %s, floor %v by %q, warnings %q, want equivalent, a floor of 0 by the twin and no warning",
				level, c.Verdict, m.Floor, m.FloorBy, texts(a.Warnings))
		}
	}
}

func TestLooks(t *testing.T) {
	for _, tc := range []struct {
		blocks  int
		alpha   float64
		planned bool
	}{{8, 0.010, true}, {10, 0.010, false}, {12, 0.010, true}, {14, 0.012, false}, {30, 0.018, true}, {40, 0.018, false}} {
		u := base()
		u.blocks = tc.blocks
		a := analyse(t, u.run())
		if got := a.Workload("half").Alpha; got != tc.alpha {
			t.Errorf("%d blocks: alpha %v, want %v", tc.blocks, got, tc.alpha)
		}
		warned := slices.ContainsFunc(texts(a.Warnings), func(s string) bool { return strings.Contains(s, "no look is planned") })
		if warned == tc.planned {
			t.Errorf("%d blocks: warned %v, want %v", tc.blocks, warned, !tc.planned)
		}
	}
	u := base()
	u.blocks = 1
	if got, want := texts(analyse(t, u.run()).Warnings), "no look is planned after 1 block: judged at the level of the look at 8 blocks"; !slices.Contains(got, want) {
		t.Errorf("1 block: got warnings %q, want %q", got, want)
	}
	u.study.Looks = []int{2}
	if _, err := verdict.Analyse(u.run()); err == nil {
		t.Error("a look that can never decide: got no error")
	}
}

func TestRanking(t *testing.T) {
	u := base()
	u.arms(4)
	u.blocks = 18
	u.effect("a1", "cpu_per_request", 0.8)
	u.effect("a2", "cpu_per_request", 1.5)
	a := analyse(t, u.run())
	var got []string
	for _, r := range a.Primary().Ranking.Ranks {
		got = append(got, fmt.Sprintf("%s %d-%d tier %d", r.Arm, r.Lo, r.Hi, r.Tier))
	}
	if want := []string{"a0 2-3 tier 2", "a1 1-1 tier 1", "a2 4-4 tier 3", "a3 2-3 tier 2"}; !slices.Equal(got, want) {
		t.Errorf("ranks: got %q, want %q", got, want)
	}
	u.blocks = 8
	if r := analyse(t, u.run()).Primary().Ranking; r.Needs != 0 && r.Needs <= 8 {
		t.Errorf("8 blocks: needs %d", r.Needs)
	}
}

func TestSlope(t *testing.T) {
	u := base()
	u.arms(4)
	for i, x := range []float64{0, 1, 3, 5} {
		u.study.Arms[i].X = ptr(x)
		u.effect(fmt.Sprintf("a%d", i), "loop_time", 1+x*0.3)
	}
	u.level["loop_time"] = 1000
	s := analyse(t, u.run()).Workload("half").Metric("loop_time").Slope
	if s == nil || s.N != 8 || len(s.Arms) != 4 || s.Slope < 250 || s.Slope > 350 {
		t.Errorf("true slope 300 ns a layer: got %+v", s)
	}
}

// Blocks are those that have trials, whatever their numbers.
func TestBlocksAreNotCounted(t *testing.T) {
	u := base()
	u.arms(4)
	for i := range u.study.Arms {
		u.study.Arms[i].X = ptr(float64(i))
	}
	r := u.run()
	for i := range r.Trials {
		if tr := &r.Trials[i]; tr.Block == 7 {
			tr.Block = math.MaxInt
		}
	}
	m := analyse(t, r).Primary()
	if m.Slope == nil || m.Slope.N != 8 || m.Ranking == nil {
		t.Errorf("got slope %+v and ranking %+v, want both, of 8 blocks", m.Slope, m.Ranking)
	}
}

func TestResolution(t *testing.T) {
	u := base()
	u.level["loop_time"] = 1000
	u.effect("three", "loop_time", 1.9)
	a := analyse(t, u.run())
	if len(a.Resolutions) != 1 {
		t.Fatalf("got %d resolutions, want 1", len(a.Resolutions))
	}
	r := a.Resolutions[0]
	if r.Arm != "three" || r.EndToEnd.Metric.Name != "cpu_per_request" || r.EndToEnd.Told() || r.InProcess.Metric.Name != "loop_time" {
		t.Errorf("got %+v", r)
	}
	if want := "With three layers, the handler takes 9"; !strings.Contains(a.Headline, want) {
		t.Errorf("headline %q lacks %q", a.Headline, want)
	}
}

// What the loop tells apart in seven blocks of eight alone is in the report, not in the headline:
// it would be a second chance to be wrong.
func TestResolutionOfFewBlocks(t *testing.T) {
	u := base()
	u.study.Looks = []int{8}
	u.level["loop_time"] = 1000
	u.effect("three", "loop_time", 1.9)
	r := u.run()
	for i := range r.Trials {
		if tr := &r.Trials[i]; tr.Arm == "three" && tr.Block == 5 {
			tr.Metrics["loop_time"] /= 1.95
		}
	}
	a := analyse(t, r)
	if len(a.Resolutions) != 1 || !strings.Contains(a.Headline, "CPU per request") {
		t.Errorf("got %d resolutions and headline %q, want one, and what the load says", len(a.Resolutions), a.Headline)
	}
}

// The loop is not what it is held against: a study that decides on its allocations
// asks the load for CPU.
func TestResolutionOfTheLoop(t *testing.T) {
	u := base()
	u.study.Primary.Metric = "loop_allocs"
	u.level["loop_time"], u.level["loop_allocs"] = 1000, 4
	u.effect("three", "loop_time", 1.9)
	a := analyse(t, u.run())
	if len(a.Resolutions) != 1 || a.Resolutions[0].EndToEnd.Metric.Name != "cpu_per_request" {
		t.Errorf("got %+v, want one, against cpu_per_request", a.Resolutions)
	}
}

func TestHeadline(t *testing.T) {
	for _, tc := range []struct {
		name  string
		ratio float64
		noise float64
		claim *study.Check
		want  []string
	}{
		{"effect", 1.05, 0.004, nil, []string{"With three layers, a request takes 1.", " µs more CPU than with none (1.", " to 1."}},
		{"less", 0.9, 0.004, nil, []string{"With three layers, a request takes ", " µs less CPU than with none ("}},
		{"equivalent", 1, 0.002, nil, []string{"With three layers, CPU per request is within ±1.0 % of none (-"}},
		{"open", 1.02, 0.05, nil, []string{"Not decided: with three layers, CPU per request differs by ", "more blocks would decide."}},
		{"published", 1.05, 0.004, &study.Check{
			Kind: study.Effect, Metric: "cpu_per_request", Workload: "half", Arm: "three", PublishedArm: ptr(67_200), PublishedAgainst: ptr(30_000),
		}, []string{". The published 37.2 µs is contradicted."}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			u := base()
			u.noise = tc.noise
			u.effect("three", "cpu_per_request", tc.ratio)
			if tc.claim != nil {
				u.study.Claims = []study.Claim{{ID: "P1.nesting", Checks: []study.Check{*tc.claim}}}
			}
			got := analyse(t, u.run()).Headline
			for _, want := range tc.want {
				if !strings.Contains(got, want) {
					t.Errorf("headline %q lacks %q", got, want)
				}
			}
			if n := len(strings.Fields(got)); n > 25 {
				t.Errorf("headline %q has %d words, want at most 25", got, n)
			}
		})
	}
}

// What was published first is what the headline speaks of, also where it could not be
// measured, and not of a part of it that could.
func TestHeadlineOfUnmeasuredClaim(t *testing.T) {
	u := base()
	u.effect("three", "cpu_per_request", 1.05)
	u.level["first_byte_p50"] = 1e5
	u.study.Claims = []study.Claim{{ID: "P1.nesting", Checks: []study.Check{
		{Kind: study.Effect, Metric: "response_p95", Workload: "half", Arm: "three", PublishedArm: ptr(159_000), PublishedAgainst: ptr(121_800)},
		{Kind: study.Effect, Metric: "first_byte_p50", Workload: "half", Arm: "three", Direction: "more", PublishedDifference: ptr(18_500)},
	}}}
	if got, want := analyse(t, u.run()).Headline, " The published 37.2 µs of response time (p95) is not settled."; !strings.HasSuffix(got, want) {
		t.Errorf("headline %q, want it to end in %q", got, want)
	}
}

// Trials there are where the primary metric is withheld for want of requests.
func TestHeadlineOfWithheld(t *testing.T) {
	u := base()
	u.study.Primary.Metric = "response_p999"
	u.level["response_p999"] = 9e5
	u.request = 9_999
	want := "Nothing is decided, since response time (p99.9) is not shown in workload half: it takes 10,000 requests a trial; the least was 9,999."
	if got := analyse(t, u.run()).Headline; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Nor is it for want of trials where the arm to decide on was left out.
func TestHeadlineOfLeftOut(t *testing.T) {
	u := base()
	u.study.Primary.Arm = "gone"
	r := u.run()
	r.Manifest.LeftOut = map[string]string{"gone": "not installed"}
	want := "Nothing is decided, since gone, which the study decides on, took no part: not installed."
	if got := analyse(t, r).Headline; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestPartialRuns: whatever is missing of a run, its analysis says what it can.
func TestPartialRuns(t *testing.T) {
	u := base()
	u.arms(5)
	for i, x := range []float64{0, 1, 2, 3, 4} {
		u.study.Arms[i].X = ptr(x)
	}
	u.study.Claims = []study.Claim{{ID: "c", Checks: []study.Check{
		{Kind: study.Effect, Metric: "cpu_per_request", Workload: "half", Arm: "a1", Direction: "more"},
		{Kind: study.Interaction, Metric: "cpu_per_request", Workload: "half", Arm: "a1", Plus: []string{"a2", "a3"}},
		{Kind: study.Fact, Arm: "a1", Fact: "x", Value: "y"},
		{Kind: study.Bound, Metric: "cpu_per_request", Workload: "half", Arm: "a1", Op: "<=", Bound: ptr(1)},
	}}}
	whole := u.run()
	for n := range whole.Trials {
		r := *whole
		r.Trials = whole.Trials[:n]
		a := analyse(t, &r)
		if a.Headline == "" || len(a.Claims) != 1 || a.Claims[0].Verdict == "" || a.Claims[0].Sentence == "" {
			t.Fatalf("%d trials: got %+v", n, a)
		}
		if n < len(whole.Trials)/2 && a.Decided() {
			t.Errorf("%d trials: decided", n)
		}
	}
}
