package verdict_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/lab/across"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats"
)

// spending is what an arm's owners spend a request, before noise.
type spending struct {
	arm    string
	owners []cost.Item
	truth  map[string]record.Truth
}

// profiled adds captures of arms to a run: so many rounds, each figure times
// e to the power of noise of its own.
func profiled(r *record.Run, source study.Source, rounds int, noise float64, all []spending) {
	rng := rand.New(rand.NewPCG(uint64(rounds), 5))
	r.Manifest.Study.Attribute.For, r.Manifest.Study.Attribute.Repeat = time.Second, rounds
	for round := range rounds {
		for _, s := range all {
			b := &cost.Bill{Source: string(source), Requests: 5000, Per: "request"}
			m := map[string]float64{"handlers_cpu": 0, "memory_cpu": 0, "scheduling_cpu": 0, "kernel_cpu": 0}
			for _, it := range s.owners {
				f := math.Exp(noise * rng.NormFloat64())
				it.Self, it.Bytes, it.Wait = it.Self*f, it.Bytes*f, it.Wait*f
				it.Causes = append([]cost.Share(nil), it.Causes...)
				for i := range it.Causes {
					it.Causes[i].Value *= f
					if it.Causes[i].Cause == "alloc" {
						m["memory_cpu"] += it.Causes[i].Value
					} else {
						m["handlers_cpu"] += it.Causes[i].Value
					}
				}
				b.CPU += it.Self
				b.Bytes += it.Bytes
				b.Objects += it.Objects
				b.Items = append(b.Items, it)
			}
			r.Captures = append(r.Captures, record.Capture{
				Seq: len(r.Captures), Round: round, Arm: s.arm, Workload: "half", Sources: []study.Source{source},
				Elapsed: time.Second, Requests: 5000, Metrics: m, Truth: s.truth,
				Seen: []record.Seen{{Source: source, Share: 0.97, Bill: b}},
			})
		}
	}
}

func own(kind, owner string, self float64) cost.Item {
	return cost.Item{Kind: kind, Owner: owner, Where: owner + ".go:1", Self: self, Causes: []cost.Share{{Cause: "own", Value: self}}}
}

// layers are an arm without and one with a middleware that burns 20 µs and
// allocates for 4.
func layers() []spending {
	alloc := cost.Item{Kind: "middleware", Owner: "x.Alloc", Where: "x/x.go:9", Self: 4000, Bytes: 32 << 10, Causes: []cost.Share{{Cause: "alloc", Value: 4000}}}
	return []spending{
		{arm: "none", owners: []cost.Item{own("engine", "net/http", 30_000), own("handler", "x.hello", 2000)}},
		{arm: "three", owners: []cost.Item{own("engine", "net/http", 30_000), own("handler", "x.hello", 2000), own("middleware", "x.Spin", 20_000), alloc},
			truth: map[string]record.Truth{"spin": {Calls: 1, CPU: 20_000}, "alloc": {Calls: 1, CPU: 4000, Bytes: 32 << 10}}},
	}
}

// TestAccountMeans has every figure of an account as the mean of its captures.
func TestAccountMeans(t *testing.T) {
	spin := own("middleware", "x.Spin", 20_000)
	spin.GC, spin.Bytes, spin.Objects, spin.Wait, spin.Margin = 300, 512, 4, 7000, 100
	r := base().run()
	profiled(r, study.Pprof, 4, 0, []spending{{arm: "none", owners: []cost.Item{own("handler", "x.hello", 2000)}}, {arm: "three", owners: []cost.Item{spin}}})
	acc := analyse(t, r).Accounts[0]
	p := ownerNamed(t, acc, "x.Spin").In[1]
	got := []float64{p.Self.Value, p.GC, p.Bytes, p.Objects, p.Waiting, p.Causes[0].Value}
	if want := []float64{20_000, 300, 512, 4, 7000, 20_000}; !slices.Equal(got, want) {
		t.Errorf("the owner's CPU, collector, bytes, objects, waiting, cause: got %v, want %v", got, want)
	}
	if want := (stats.Interval{Lo: 19_950, Hi: 20_050}); p.Self.Interval != want {
		t.Errorf("four captures of margin 100: got %v, want %v", p.Self.Interval, want)
	}
	arm := acc.Arms[1]
	got = []float64{arm.CPU.Value, arm.Bytes, arm.Objects, arm.Waiting, arm.Causes[0].Value}
	if want := []float64{20_000, 512, 4, 7000, 20_000}; !slices.Equal(got, want) || math.Abs(arm.Share-0.97) > 1e-12 {
		t.Errorf("the arm's CPU, bytes, objects, waiting, cause: got %v, want %v; share %g, want 0.97", got, want, arm.Share)
	}
}

// TestAccountIntervals holds the interval of a mean against the 0.975 quantiles of
// Student's t with n−1 degrees of freedom, found by integrating its density.
func TestAccountIntervals(t *testing.T) {
	for n, quantile := range map[int]float64{
		2: 12.70620, 3: 4.30265, 4: 3.18245, 5: 2.77645, 6: 2.57058, 7: 2.44691, 8: 2.36462, 9: 2.30600,
		10: 2.26216, 11: 2.22814, 12: 2.20099, 21: 2.08596, 61: 2.00030,
	} {
		r := base().run()
		profiled(r, study.Pprof, n, 0, layers()[:1])
		var sum, squares float64
		for i := range r.Captures {
			cpu := float64(1000 + i*i)
			r.Captures[i].Seen[0].Bill.CPU = cpu
			sum, squares = sum+cpu, squares+cpu*cpu
		}
		mean := sum / float64(n)
		half := quantile * math.Sqrt((squares/float64(n)-mean*mean)/float64(n-1))
		got := analyse(t, r).Accounts[0].Arms[0].CPU
		if math.Abs(got.Value/mean-1) > 1e-9 || math.Abs((got.Interval.Hi-mean)/half-1) > 1e-5 || math.Abs((mean-got.Interval.Lo)/half-1) > 1e-5 {
			t.Errorf("%d captures: got %+v, want %g ± %g", n, got, mean, half)
		}
	}
}

func TestAccounts(t *testing.T) {
	r := base().run()
	profiled(r, study.Pprof, 8, 0.02, layers())
	a := analyse(t, r)
	if len(a.Accounts) != 1 {
		t.Fatalf("%d accounts, want 1", len(a.Accounts))
	}
	acc := a.Accounts[0]
	if len(acc.Arms) != 2 || acc.Arms[0].Arm != "none" || acc.Arms[1].N != 8 {
		t.Fatalf("arms %+v, want none and three with 8 captures", acc.Arms)
	}
	for i, arm := range acc.Arms {
		var self, causes float64
		for _, o := range acc.Owners {
			self += o.In[i].Self.Value
		}
		for _, c := range arm.Causes {
			causes += c.Value
		}
		if math.Abs(self-arm.CPU.Value) > 1e-6*self || math.Abs(causes-self) > 1e-6*self {
			t.Errorf("%s: owners add up to %g and causes to %g, want both %g", arm.Arm, self, causes, arm.CPU.Value)
		}
	}
	for _, c := range []struct {
		owner   string
		kind    string
		self    [2]float64
		changed bool
	}{
		{"net/http", "engine", [2]float64{30_000, 30_000}, false},
		{"x.Spin", "middleware", [2]float64{0, 20_000}, true},
		{"x.Alloc", "middleware", [2]float64{0, 4000}, true},
		{"x.hello", "handler", [2]float64{2000, 2000}, false},
	} {
		o := ownerNamed(t, acc, c.owner)
		if o.Kind != c.kind {
			t.Errorf("%s is a %s, want a %s", c.owner, o.Kind, c.kind)
		}
		for i, want := range c.self {
			if got := o.In[i].Self.Value; math.Abs(got-want) > 0.05*want {
				t.Errorf("%s spends %g in %s, want about %g", c.owner, got, acc.Arms[i].Arm, want)
			}
		}
		if got := o.In[1].Changed(); got != c.changed || o.In[0].Change != nil {
			t.Errorf("%s changed: %t (%+v), want %t; and nothing of the control", c.owner, got, o.In[1].Change, c.changed)
		}
	}
}

func ownerNamed(t *testing.T, a verdict.Account, name string) verdict.Owner {
	t.Helper()
	for _, o := range a.Owners {
		if o.Name == name {
			return o
		}
	}
	t.Fatalf("no owner %s in %+v", name, a.Owners)
	return verdict.Owner{}
}

// The interval of a mean holds the truth about as often as it says: 95 in 100
// runs of six captures.
func TestMeanCovers(t *testing.T) {
	const runs, truth = 600, 20_000.0
	held := 0
	for seed := range runs {
		r := &record.Run{Manifest: record.Manifest{Study: base().study}}
		rng := rand.New(rand.NewPCG(uint64(seed), 3))
		for round := range 6 {
			v := truth + 2000*rng.NormFloat64()
			r.Captures = append(r.Captures, record.Capture{Seq: round, Round: round, Arm: "three", Workload: "half",
				Seen: []record.Seen{{Source: study.Pprof, Bill: &cost.Bill{CPU: v, Items: []cost.Item{own("engine", "x", v)}}}}})
		}
		if analyse(t, r).Accounts[0].Arms[0].CPU.Interval.Contains(truth) {
			held++
		}
	}
	// 570 of 600 are expected; four standard deviations are 21.
	if held < 549 || held > 591 {
		t.Errorf("%d of %d intervals hold the truth, want about 570", held, runs)
	}
}

func TestAccuracy(t *testing.T) {
	for _, c := range []struct {
		what   string
		change func(*spending)
		noise  float64
		rounds int
		want   map[string]verdict.Nearness
	}{
		{"as it is", func(*spending) {}, 0.002, 8, map[string]verdict.Nearness{
			"spin CPU": verdict.Within, "alloc CPU": verdict.Within, "alloc bytes": verdict.Within, "all else CPU": verdict.Within, "all else bytes": verdict.Within,
		}},
		{"half of it charged to the engine", func(s *spending) {
			s.owners[0], s.owners[2] = own("engine", "net/http", 40_000), own("middleware", "x.Spin", 10_000)
		}, 0.002, 8,
			map[string]verdict.Nearness{"spin CPU": verdict.Beyond, "alloc CPU": verdict.Within, "all else CPU": verdict.Beyond}},
		{"charged to another name", func(s *spending) { s.owners[2].Owner = "x.burn" }, 0.002, 8,
			map[string]verdict.Nearness{"spin CPU": verdict.Beyond}},
		{"too few bytes", func(s *spending) { s.owners[3].Bytes *= 0.95 }, 0.002, 8, map[string]verdict.Nearness{"alloc bytes": verdict.Beyond}},
		{"noise", func(*spending) {}, 0.3, 8, map[string]verdict.Nearness{"spin CPU": verdict.Unknown}},
		{"too few captures", func(*spending) {}, 0.002, 3, map[string]verdict.Nearness{"spin CPU": verdict.Unknown}},
	} {
		r := base().run()
		r.Manifest.Study.Attribute.Truth = study.Truth{Path: "/truth", CPU: 0.05, Least: time.Microsecond, Bytes: 0.02, Waiting: 0.1, Bare: map[string]string{"three": "none"}}
		all := layers()
		c.change(&all[1])
		profiled(r, study.Pprof, c.rounds, c.noise, all)
		got := map[string]verdict.Nearness{}
		for _, x := range analyse(t, r).Accuracies {
			got[x.Part+" "+string(x.Quantity)] = x.By[0].Verdict
		}
		for what, want := range c.want {
			if got[what] != want {
				t.Errorf("%s: %s is %q, want %q", c.what, what, got[what], want)
			}
		}
	}
}

// As many bytes as the study lets pass are no error, however few there are.
func TestLeastBytes(t *testing.T) {
	for least, want := range map[int64]verdict.Nearness{0: verdict.Beyond, 2000: verdict.Within} {
		r := base().run()
		r.Manifest.Study.Attribute.Truth = study.Truth{Path: "/truth", CPU: 0.05, Bytes: 0.02, LeastBytes: least, Waiting: 0.1}
		all := layers()
		all[1].owners[3].Bytes -= 1000
		profiled(r, study.Pprof, 8, 0.002, all)
		for _, x := range analyse(t, r).Accuracies {
			if x.Quantity == verdict.Memory && x.By[0].Verdict != want {
				t.Errorf("%s bytes off by 1000, %d let pass: %q, want %q", x.Part, least, x.By[0].Verdict, want)
			}
		}
	}
}

func TestAccuracyOfWaiting(t *testing.T) {
	r := base().run()
	r.Manifest.Study.Attribute.Truth = study.Truth{Path: "/truth", CPU: 0.05, Bytes: 0.02, Waiting: 0.1}
	profiled(r, study.Trace, 8, 0.01, []spending{{
		arm:    "three",
		owners: []cost.Item{{Kind: "handler", Owner: "x.Block", Where: "x/x.go", Wait: 1_030_000}},
		truth:  map[string]record.Truth{"block": {Calls: 1, Waiting: 1_000_000}},
	}})
	all := analyse(t, r).Accuracies
	if len(all) != 1 || all[0].Quantity != verdict.Waiting || all[0].By[0].Verdict != verdict.Within || all[0].By[0].Owner != "x.Block" {
		t.Fatalf("accuracy %+v, want one of waiting, within bounds, charged to x.Block", all)
	}
	if b := all[0].By[0]; b.Truth != 1_000_000 || math.Abs(b.Attributed-1_030_000) > 20_000 || math.Abs(b.Off.Value-30_000) > 20_000 || !b.Off.Interval.Contains(b.Off.Value) {
		t.Errorf("held: %+v, want 1.03 ms of 1 ms, off by 30 µs", b)
	}
}

// Two sources that looked at the same captures are held against each other.
func TestApart(t *testing.T) {
	r := base().run()
	r.Manifest.Study.Attribute.Truth = study.Truth{Path: "/truth", CPU: 0.05, Bytes: 0.02, Waiting: 0.1}
	profiled(r, study.Pprof, 8, 0.001, layers())
	for i := range r.Captures {
		c := &r.Captures[i]
		b := *c.Seen[0].Bill
		b.Items = append([]cost.Item(nil), b.Items...)
		for k := range b.Items {
			b.Items[k].Self -= 500
		}
		c.Seen = append(c.Seen, record.Seen{Source: study.EBPF, Bill: &b})
	}
	for _, x := range analyse(t, r).Accuracies {
		if x.Quantity != verdict.CPUTime || x.Part == verdict.Rest {
			continue
		}
		if len(x.By) != 2 || x.Apart == nil || math.Abs(x.Apart.Value-500) > 1 {
			t.Errorf("%s: %d sources, apart %+v, want 2 and 500 ns", x.Part, len(x.By), x.Apart)
		}
	}
}

// Claims are judged on what captures tell as on any other metric, and the
// figures are the captures' own.
func TestAttributedClaims(t *testing.T) {
	u := base()
	u.study.Claims = []study.Claim{{ID: "P1.causes", Checks: []study.Check{
		{Kind: study.Effect, Says: "own code", Metric: "handlers_cpu", Workload: "half", Arm: "three", Direction: "more", PublishedDifference: ptr(20_000)},
		{Kind: study.Effect, Says: "memory", Metric: "memory_cpu", Workload: "half", Arm: "three", Direction: "more", PublishedDifference: ptr(9900)},
		{Kind: study.Effect, Says: "kernel", Metric: "kernel_cpu", Workload: "half", Arm: "three", Direction: "more"},
		{Kind: study.Bound, Says: "bounded", Metric: "memory_cpu", Workload: "half", Arm: "three", Op: "<=", Bound: ptr(5000)},
	}}}
	r := u.run()
	if c := analyse(t, r).Claims[0]; c.Verdict != verdict.NotComparable || !strings.Contains(c.Sentence, "was not measured") {
		t.Errorf("without captures the claim is %s: %s, want that it was not measured", c.Verdict, c.Sentence)
	}
	profiled(r, study.Pprof, 8, 0.01, layers())
	c := analyse(t, r).Claims[0]
	for i, want := range []struct{ direction, difference, holds verdict.Word }{
		{verdict.Confirmed, verdict.Confirmed, ""},
		{verdict.Confirmed, verdict.Contradicted, ""}, // 4 µs, not 9.9
		{verdict.Contradicted, "", ""},                // nothing in either
		{"", "", verdict.Confirmed},
	} {
		got := c.Checks[i]
		if got.Direction.Verdict != want.direction || got.Difference.Verdict != want.difference || got.Holds.Verdict != want.holds {
			t.Errorf("%s: direction %q, difference %q, holds %q, want %+v; %+v", got.Check.Says, got.Direction.Verdict, got.Difference.Verdict, got.Holds.Verdict, want, got)
		}
		if told := strings.Contains(got.Direction.Reason, "captures have no twin"); told != (want.direction != "") {
			t.Errorf("%s: %q, want that it says of no noise floor: %v", got.Check.Says, got.Direction.Reason, want.direction != "")
		}
		if got.Comparison != nil && (got.Comparison.N != 8 || got.Comparison.Alpha != stats.StudyAlpha) {
			t.Errorf("%s: %d rounds at alpha %g, want 8 at %g", got.Check.Says, got.Comparison.N, got.Comparison.Alpha, stats.StudyAlpha)
		}
	}
}

// Where both sources looked, the kernel's samples are what claims are judged on, in whichever
// order they came; the runtime's stand in for a capture that these lack.
func TestKernelTellsFirst(t *testing.T) {
	u := base()
	u.study.Claims = []study.Claim{{ID: "P1.causes", Checks: []study.Check{
		{Kind: study.Effect, Says: "own code", Metric: "handlers_cpu", Workload: "half", Arm: "three", Direction: "more"},
	}}}
	r := u.run()
	profiled(r, study.Pprof, 8, 0.001, layers())
	n := len(r.Captures)
	var sampled []record.Capture
	for i := range r.Captures {
		c := r.Captures[i]
		c.Sources, c.Metrics = []study.Source{study.EBPF}, maps.Clone(c.Metrics)
		if c.Arm == "three" {
			c.Metrics["handlers_cpu"] += 7000
		}
		sampled = append(sampled, c)
	}
	by := func(captures []record.Capture) float64 {
		r.Captures = captures
		c := analyse(t, r).Claims[0].Checks[0].Comparison
		if c == nil || c.N != 8 {
			t.Fatalf("got %+v, want eight rounds", c)
		}
		return c.Difference.Value
	}
	pprof := r.Captures[:n:n]
	alone := by(pprof)
	for name, captures := range map[string][]record.Capture{
		"behind": slices.Concat(pprof, sampled), "before": slices.Concat(sampled, pprof), "with one missing": slices.Concat(pprof, sampled[1:]),
	} {
		if got := by(captures) - alone; math.Abs(got-7000) > 200 {
			t.Errorf("%s: the kernel's samples moved the difference by %.0f ns, want 7,000", name, got)
		}
	}
}

// What captures tell is compared across runs at the captures' own level: at that of the
// blocks, six rounds have no interval at all.
func TestAttributedBetween(t *testing.T) {
	var runs []*verdict.Analysis
	for _, spin := range []float64{20_000, 30_000} {
		r := base().run()
		r.Manifest.Programs = map[string]record.Program{"none": {BuildID: "b1d"}}
		all := layers()
		all[1].owners[2] = own("middleware", "x.Spin", spin)
		profiled(r, study.Pprof, 6, 0.01, all)
		runs = append(runs, analyse(t, r))
	}
	all, err := across.Between(runs[0], runs[1])
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(x across.Change) bool { return x.Metric.Name == "handlers_cpu" })
	if i < 0 {
		t.Fatalf("got %+v, want handlers_cpu among them", all)
	}
	if x := all[i]; x.Alpha != stats.StudyAlpha || x.Effect.N != 6 || x.Effect.Verdict != stats.Slower {
		t.Errorf("got alpha %g, %d rounds, %q, interval %+v; want that 10 µs more are told", x.Alpha, x.Effect.N, x.Effect.Verdict, x.Effect.Interval)
	}
}

func TestLostCaptures(t *testing.T) {
	r := base().run()
	profiled(r, study.Pprof, 6, 0.01, layers())
	for i := range r.Captures {
		if c := &r.Captures[i]; c.Arm == "three" && c.Round < 2 {
			c.Invalid = []string{"no request was answered"}
		}
	}
	r.Captures[0].Warnings = []string{"ebpf: not supported here"}
	a := analyse(t, r)
	if n := a.Accounts[0].Arms[1].N; n != 4 {
		t.Errorf("%d captures of three count, want 4", n)
	}
	text := fmt.Sprint(texts(a.Warnings))
	for _, want := range []string{"three: a capture does not count: no request was answered (the first of 2)", "none: ebpf: not supported here"} {
		if !strings.Contains(text, want) {
			t.Errorf("warnings %s lack %q", text, want)
		}
	}
}

// Two captures that agree by luck, on one stack each, tell nothing.
func TestFewStacksTellNothing(t *testing.T) {
	u := base()
	r := u.run()
	seen := own("engine", "read body", 900)
	seen.Margin = 1764 // of one stack
	profiled(r, study.EBPF, 2, 0.01, []spending{
		{arm: "none", owners: []cost.Item{own("handler", "hello", 20_000), seen}},
		{arm: "three", owners: []cost.Item{own("handler", "hello", 20_000)}},
	})
	for _, o := range analyse(t, r).Accounts[0].Owners {
		if o.Name != "read body" {
			continue
		}
		if p := o.In[1]; p.Changed() || p.Change == nil || p.Change.Interval.Hi < 0 {
			t.Errorf("an owner of two stacks: told to have changed by %+v", p.Change)
		}
		if p := o.In[0]; p.Self.Interval.Lo > 0 {
			t.Errorf("an owner of two stacks: %+v", p.Self)
		}
		return
	}
	t.Error("the owner is not there")
}

// TestBlindCapturesMakeNoMetric holds that a profile which saw a small part of the CPU time
// decides nothing.
func TestBlindCapturesMakeNoMetric(t *testing.T) {
	r := base().run()
	profiled(r, study.Pprof, 7, 0.01, layers())
	for i := range r.Captures {
		if r.Captures[i].Round >= 2 {
			r.Captures[i].Seen[0].Share = 0.09
		}
	}
	a := analyse(t, r)
	if l := a.Workload("half").Metric("handlers_cpu").Level("three"); l == nil || l.N != 2 {
		t.Errorf("got %+v, want the two captures that saw enough", l)
	}
	if all := texts(a.Warnings); !slices.ContainsFunc(all, func(w string) bool {
		return strings.Contains(w, "three: pprof saw 9.0 % of the CPU time") && strings.Contains(w, "first of 5")
	}) {
		t.Errorf("warnings %q", all)
	}
}
