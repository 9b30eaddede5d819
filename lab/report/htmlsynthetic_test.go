package report_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/stats/hist"
)

// truths are the eight arms of the large run: ratios to the control.
var truths = []struct {
	name, title       string
	cpu, time, memory float64
}{
	{"net/http", "the standard library", 1, 1, 1},
	{"chi", "chi v5", 1.031, 1.01, 1.02},
	{"gin", "gin v1.11", 1.052, 1.02, 1.21},
	{"echo", "", 1.048, 1.015, 1.12},
	{"fiber", "fiber v3", 0.66, 0.81, 1.37},
	{"fasthttp", "fasthttp with a router", 0.58, 0.78, 1.3},
	{"hertz", "hertz", 0.74, 0.88, 2.4},
	{"gorilla/mux", "", 1.19, 1.06, 1.04},
}

// frameworks declares the large study.
func frameworks() study.Study {
	s := study.Study{
		Name: "frameworks", Title: "What a framework costs beside net/http", Control: "net/http", Twin: true, Threshold: 0.02,
		Question: "Which frameworks need less CPU and memory than net/http for the same answers, and by how much?",
		Notes:    "Every framework answers byte for byte the same, in release mode, without logs.",
		Workloads: []study.Workload{
			{Name: "half", Title: "half of the slowest arm's capacity", Schedule: "constant", Rate: study.Rate{Share: 0.5}, Connections: 64, Loop: 200 * time.Millisecond},
			{Name: "capacity", Title: "as fast as it goes", Schedule: "closed", Connections: 64},
		},
		Primary: study.Primary{Metric: "cpu_per_request", Workload: "half"},
		Claims: []study.Claim{
			{ID: "P3.frameworks", Checks: []study.Check{
				{Kind: study.Effect, Says: "fiber answers 2.1 times as many requests", Metric: "throughput", Workload: "capacity", Arm: "fiber",
					PublishedArm: ptr(108_000), PublishedAgainst: ptr(51_000), Absolute: "published on 16 cores"},
				{Kind: study.Effect, Says: "gin needs more CPU than net/http", Metric: "cpu_per_request", Workload: "half", Arm: "gin", Direction: "more"},
			}},
			{ID: "P3.heap", Checks: []study.Check{
				{Kind: study.Effect, Says: "hertz keeps less memory", Metric: "rss_peak", Workload: "half", Arm: "hertz", Direction: "less"},
			}},
		},
	}
	for _, t := range truths {
		s.Arms = append(s.Arms, study.Arm{Name: t.name, Title: t.title, Rival: t.name})
	}
	return s
}

// layered declares a study of the shape of nesting: eight arms, of which five
// have a place on a scale, under four workloads.
func layered() study.Study {
	s := frameworks()
	for _, w := range s.Workloads {
		w.Name, w.Title, w.Connections, w.Loop = w.Name+"-4000", w.Title+", 4,000 connections", 4000, 0
		s.Workloads = append(s.Workloads, w)
	}
	for i := range s.Arms[:5] {
		s.Arms[i].X = ptr(float64(i))
	}
	return s
}

// large is a run of eight arms, two workloads and the given number of blocks.
func large(t *testing.T, blocks int) *record.Run {
	t.Helper()
	return recorded(t, frameworks(), blocks)
}

// recorded is a run of a study with the arms of truths, kept in a folder with
// the histograms of the first eight blocks: more make no curve longer.
func recorded(t *testing.T, s study.Study, blocks int) *record.Run {
	t.Helper()
	rng := rand.New(rand.NewPCG(7, 7))
	m := record.Manifest{
		ID: "20260102-150405-frameworks", Study: s, Seed: 77, Started: started, Ended: started.Add(41 * time.Minute), Outcome: "cap",
		Command: []string{"tare", "run", "frameworks", "--seed", "77"}, Tare: "v0.1.0", Programs: map[string]record.Program{},
		Rates:   map[string]float64{"half": 12_300},
		Pinning: record.Pinning{Instrument: []int{0, 1}, Specimen: []int{0, 1}},
		Env: []record.Fact{
			{Name: "kernel", Value: "6.1.0-41-cloud-amd64", Verdict: "ok"}, {Name: "CPU", Value: "2 × virtual CPU at 2.5 GHz", Verdict: "note"},
			{Name: "steal", Value: "3.1 %", Verdict: "disturbs", Remedy: "use a machine that is not shared"},
		},
		LeftOut: map[string]string{"kratos": "it does not build with this Go"},
	}
	for _, a := range s.Arms {
		m.Programs[a.Name] = record.Program{Path: "rival", BuildID: "bx7Yk2pQ/9aSd1fGhJkLq/" + fmt.Sprint(rng.Uint64()), Go: "go1.26.0", Modules: map[string]string{"example.org/" + a.Name: "v1.2.3"}}
	}
	dir := filepath.Join(t.TempDir(), m.ID)
	w, err := record.Create(dir, m)
	if err != nil {
		t.Fatal(err)
	}
	seq := 0
	for block := range blocks {
		for _, wl := range s.Workloads {
			drift := 0.1 * rng.NormFloat64()
			for i := -1; i < len(truths); i++ { // -1 is the control's twin
				trial, h := largeTrial(rng, max(i, 0), wl, drift)
				trial.Seq, trial.Block, trial.Twin = seq, block, i < 0
				if seq%41 == 11 {
					trial.Invalid = []string{"the generator used 91 % of its CPUs, more than 80 %"}
				}
				kept := &record.Histograms{Response: h}
				if block >= 8 {
					kept = nil
				}
				if err := w.Append(trial, kept); err != nil {
					t.Fatal(err)
				}
				seq++
			}
		}
	}
	if err := w.Finish("cap"); err != nil {
		t.Fatal(err)
	}
	r, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func largeTrial(rng *rand.Rand, i int, workload study.Workload, drift float64) (record.Trial, *hist.Hist) {
	truth := truths[i]
	noise := func(f, sigma float64) float64 { return f * math.Exp(drift*sigma/0.004+sigma*rng.NormFloat64()) }
	rate, at := 12_300.0, 95_000*noise(truth.time, 0.01)
	if workload.Schedule == "closed" {
		rate, at = noise(24_600/truth.cpu, 0.01), 1.4e6*truth.cpu
	}
	h := hist.New()
	for k := range 2_000 { // the law's quantiles, each ten times
		u := (float64(k) + 0.5) / 2_000
		h.RecordN(int64(at*math.Exp(0.35*math.Sqrt(2)*math.Erfinv(2*u-1))*(1+0.4*math.Pow(u, 60))), 10)
	}
	t := record.Trial{
		Arm: truth.name, Workload: workload.Name, Start: started, Elapsed: 2 * time.Second, Requests: uint64(2 * rate), Steady: rng.IntN(40) > 0,
		Metrics: map[string]float64{
			"throughput": rate, "cpu_per_request": noise(29_600*truth.cpu, 0.006), "alloc_bytes": 1840 * truth.memory, "alloc_objects": math.Round(19 * truth.cpu),
			"gc_per_10k": noise(4.2*truth.memory, 0.02), "gc_cpu": 0.017 * truth.memory, "startup": noise(6.1e6*truth.memory, 0.03), "rss_idle": 7e6 * truth.memory,
			"rss_peak": noise(18e6*truth.memory, 0.01), "pss": noise(17e6*truth.memory, 0.01), "switches_per_request": noise(0.8, 0.05), "errors": 0,
			"generator_cpu": 0.41, "lag_p99": 21_000, "reuse": 1, "generator_cpu_per_request": noise(19_000, 0.01), "generator_rss": noise(28e6, 0.01),
			"gc_pause_p99": noise(160_000, 0.05), "goroutines": 77, "goroutine_growth": 0, "threads": 6, "peak_flight": 160, "time_wait": 1,
			"faults_per_request": noise(0.0016, 0.1), "first_byte_p50": noise(62_000, 0.01), "service_p50": noise(63_000, 0.01), "service_p99": noise(410_000, 0.03),
			"response_max": noise(9.4e6, 0.2),
		},
	}
	for name, q := range map[string]float64{"response_p50": 0.5, "response_p90": 0.9, "response_p95": 0.95, "response_p99": 0.99, "response_p999": 0.999, "response_p9999": 0.9999} {
		t.Metrics[name] = float64(h.Quantile(q))
	}
	t.Metrics["response_mean"] = h.Mean()
	if workload.Loop > 0 {
		t.Metrics["loop_time"], t.Metrics["loop_allocs"], t.Metrics["loop_bytes"] = noise(1_150*truth.cpu, 0.004), 4, 320*truth.memory
	}
	for k := range 10 {
		n := rate / 5 * math.Exp(0.02*rng.NormFloat64())
		p99 := t.Metrics["response_p99"] * math.Exp(0.25*rng.NormFloat64())
		t.Series = append(t.Series, record.Slice{AtMs: float64(200 * k), Answered: uint64(n), P50: t.Metrics["response_p50"], P99: p99})
	}
	return t, h
}
