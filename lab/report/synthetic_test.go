package report_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats/unit"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares got with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("differs from %s (go test ./lab/report -update writes it anew); got:\n%s", path, got)
	}
}

var started = time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)

func ptr(v float64) *float64 { return &v }

// nesting is a declared study with every kind of check.
func nesting() study.Study {
	effect := func(says, metric, arm, against string) study.Check {
		return study.Check{Kind: study.Effect, Says: says, Metric: metric, Workload: "half", Arm: arm, Against: against}
	}
	p95 := effect("three nested middlewares raise the p95 by 37.2 µs over none", "response_p95", "three", "")
	p95.PublishedArm, p95.PublishedAgainst, p95.Absolute = ptr(159_000), ptr(121_800), "published on another machine, with 4,000 busy connections"
	saves := effect("flattening the three saves CPU", "cpu_per_request", "flattened", "three")
	saves.Direction = "less"
	gone := effect("nginx needs less CPU", "cpu_per_request", "nginx", "")
	gone.Direction = "less"
	return study.Study{
		Name: "nesting", Title: "What nested middleware costs", Control: "none", Twin: true, Threshold: 0.01,
		Arms: []study.Arm{
			{Name: "none", Title: "no middleware", X: ptr(0)}, {Name: "one", Title: "authentication", X: ptr(1)},
			{Name: "three", Title: "three layers", X: ptr(3)}, {Name: "flattened", Title: "the three in one function"},
		},
		Workloads: []study.Workload{
			{Name: "half", Title: "half of capacity", Schedule: "constant", Rate: study.Rate{Share: 0.5}, Connections: 64, Loop: 200 * time.Millisecond},
			{Name: "capacity", Schedule: "closed", Connections: 64},
		},
		Primary: study.Primary{Metric: "cpu_per_request", Workload: "half", Arm: "three"},
		Claims: []study.Claim{
			{ID: "P1.nesting", Checks: []study.Check{p95, saves}},
			{ID: "P1.causes", Checks: []study.Check{
				{Kind: study.Bound, Says: "three layers take at least 18.7 µs in the handler", Metric: "loop_time", Workload: "half", Arm: "three", Op: ">=", Bound: ptr(18_700)},
				{Kind: study.Interaction, Says: "three cost more than three times one", Metric: "loop_time", Workload: "half", Arm: "three", Plus: []string{"one", "one", "one"}, Direction: "more"},
			}},
			{ID: "P5.defaults", Checks: []study.Check{
				{Kind: study.Fact, Says: "the server reads without a time-out", Arm: "none", Fact: "http.Server.ReadTimeout", Value: "0s (none)"},
			}},
			{ID: "P9.nginx", Checks: []study.Check{gone}},
		},
		Goals: []study.Goal{
			{Says: "flattened, the three cost at most as much CPU as nested", Metrics: []string{"cpu_per_request"}, Workloads: []string{"half"},
				Arms: []string{"flattened"}, Against: []string{"three", "nginx"}, Op: "<=", BoundRatio: ptr(1)},
			{Says: "no layer allocates", Metrics: []string{"loop_allocs"}, Workloads: []string{"half"},
				Arms: []string{"one", "three"}, Op: "<=", Bound: ptr(0)},
		},
	}
}

// factors are the arms' true ratios to the control.
var factors = map[string]map[string]float64{
	"one":       {"cpu_per_request": 1.002, "loop_time": 1.35, "response_p95": 1.004, "throughput": 0.99},
	"three":     {"cpu_per_request": 1.045, "loop_time": 2.1, "response_p95": 1.02, "throughput": 0.955, "loop_allocs": 7},
	"flattened": {"cpu_per_request": 1.018, "loop_time": 1.6, "response_p95": 1.008, "throughput": 0.98, "loop_allocs": 2},
}

// synthetic is a run of that study with known truths, invalid trials, warnings
// and everything that a manifest can say.
func synthetic(seed uint64) *record.Run {
	s := nesting()
	rng := rand.New(rand.NewPCG(seed, 11))
	r := &record.Run{Dir: "runs/r", Warnings: []error{fmt.Errorf("trials.jsonl:71: the last line is torn; its trial is lost")}}
	r.Manifest = record.Manifest{
		Schema: record.Schema, ID: fmt.Sprintf("20260102-150405-nesting-%d", seed), Study: s, Quick: true, Seed: seed,
		Started: started, Ended: started.Add(4 * time.Minute), Outcome: "decided", Tare: "v0.1.0",
		Command:  []string{"tare", "run", "nesting", "--quick", "--seed", fmt.Sprint(seed)},
		Programs: map[string]record.Program{},
		LeftOut:  map[string]string{"nginx": "nginx is not installed"},
		Rates:    map[string]float64{"half": 12_300}, Capacity: map[string]float64{"three": 24_600},
		Pinning: record.Pinning{Instrument: []int{1}, Specimen: []int{0}, Disjoint: true},
		Env: []record.Fact{
			{Name: "kernel", Value: "6.1.0", Verdict: "ok"},
			{Name: "governor", Value: "powersave", Verdict: "disturbs", Remedy: "cpupower frequency-set -g performance"},
		},
		SelfTest: "1 of 24 A/A studies found an effect (95 % interval 0.1 to 21 %)",
	}
	for _, a := range s.Arms {
		r.Manifest.Programs[a.Name] = record.Program{Path: "nesting", BuildID: "b1d", Go: "go1.26.0", Args: []string{"--layers", a.Name}}
	}
	for block := range 8 {
		for _, w := range s.Workloads {
			drift := 0.1 * rng.NormFloat64()
			for _, arm := range []string{"none", "none", "one", "three", "flattened"} {
				n := len(r.Trials)
				twin := n > 0 && r.Trials[n-1].Arm == "none" && arm == "none" && !r.Trials[n-1].Twin && r.Trials[n-1].Block == block && r.Trials[n-1].Workload == w.Name
				r.Trials = append(r.Trials, trial(rng, record.Trial{Seq: n, Block: block, Arm: arm, Twin: twin, Workload: w.Name}, drift))
			}
		}
	}
	bad := &r.Trials[len(r.Trials)-1]
	bad.Invalid = []string{"the generator used 91 % of its CPUs, more than 80 %"}
	r.Trials[3].Steady = false
	return r
}

func trial(rng *rand.Rand, t record.Trial, drift float64) record.Trial {
	t.Start = started.Add(time.Duration(t.Seq) * 3 * time.Second)
	t.Elapsed, t.Requests, t.Steady = 2*time.Second, 24_600, true
	t.Facts = map[string]string{"http.Server.ReadTimeout": "0s (none)"}
	t.Metrics = map[string]float64{}
	levels := map[string]float64{
		"cpu_per_request": 29_600, "response_p50": 71_000, "response_p95": 140_000, "response_p99": 310_000,
		"response_p9999": 2.2e6, "alloc_bytes": 1840, "rss_peak": 18 << 20, "startup": 6.1e6, "generator_cpu": 0.34, "gc_per_10k": 4.2,
	}
	if t.Workload == "half" {
		levels["loop_time"], levels["loop_allocs"] = 1_150, 0
	} else {
		levels["throughput"] = 24_600
	}
	for _, m := range study.Metrics() { // in order: the noise must not depend on a map's
		level, ok := levels[m.Name]
		if !ok {
			continue
		}
		f, ok := factors[t.Arm][m.Name]
		switch {
		case !ok:
			f = 1
		case level == 0: // counted, not scaled
			level, f = f, 1
		}
		t.Metrics[m.Name] = level * f
		if m.Unit != unit.Count {
			t.Metrics[m.Name] *= math.Exp(drift + 0.004*rng.NormFloat64())
		}
	}
	if t.Workload == "half" {
		t.Metrics["throughput"] = 12_300
	}
	return t
}

func analyse(t *testing.T, r *record.Run) *verdict.Analysis {
	t.Helper()
	a, err := verdict.Analyse(r)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
