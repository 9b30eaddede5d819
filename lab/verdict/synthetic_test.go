package verdict_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
)

// truth is what a synthetic run is made from: arms with known effects.
type truth struct {
	study   study.Study
	blocks  int
	seed    uint64
	level   map[string]float64            // metric → the control's value
	factor  map[string]map[string]float64 // arm → metric → true ratio to the control
	noise   float64                       // standard deviation of a trial's logarithm
	drift   float64                       // … of a block's, shared by its trials
	request uint64                        // a trial; 0 = 20,000
}

func base() truth {
	return truth{
		study: study.Study{
			Name: "nesting", Control: "none", Twin: true, Threshold: 0.01,
			Arms:      []study.Arm{{Name: "none"}, {Name: "three", Title: "three layers"}},
			Workloads: []study.Workload{{Name: "half", Schedule: "constant", Rate: study.Rate{PerSecond: 10_000}}},
			Primary:   study.Primary{Metric: "cpu_per_request", Workload: "half"},
		},
		blocks: 8, seed: 3, noise: 0.004, drift: 0.1,
		level:  map[string]float64{"cpu_per_request": 30_000, "throughput": 10_000},
		factor: map[string]map[string]float64{},
	}
}

// run makes the run: every trial's metrics are the truth times the block's
// drift times its own noise.
func (u truth) run() *record.Run {
	rng := rand.New(rand.NewPCG(u.seed, 7))
	r := &record.Run{Manifest: record.Manifest{Schema: 1, ID: "r", Study: u.study, Seed: u.seed, Outcome: "cap"}}
	requests := u.request
	if requests == 0 {
		requests = 20_000
	}
	for b := range u.blocks {
		for _, w := range u.study.Workloads {
			drift := u.drift * rng.NormFloat64()
			for _, c := range cells(u.study) {
				t := record.Trial{
					Seq: len(r.Trials), Block: b, Arm: c.Arm, Twin: c.Twin, Workload: w.Name, Requests: requests,
					Elapsed: 2 * time.Second, Steady: true, Metrics: map[string]float64{},
				}
				for _, m := range study.Metrics() { // in order: the noise must not depend on a map's
					level, ok := u.level[m.Name]
					if !ok {
						continue
					}
					f, ok := u.factor[c.Arm][m.Name]
					if !ok {
						f = 1
					}
					noise := math.Exp(drift + u.noise*rng.NormFloat64())
					if m.Name == "throughput" {
						noise = 1 // as offered
					}
					t.Metrics[m.Name] = level * f * noise
				}
				r.Trials = append(r.Trials, t)
			}
		}
	}
	return r
}

func cells(s study.Study) []study.Cell {
	var cs []study.Cell
	for _, a := range s.Arms {
		cs = append(cs, study.Cell{Arm: a.Name})
		if s.Twin && a.Name == s.Control {
			cs = append(cs, study.Cell{Arm: a.Name, Twin: true})
		}
	}
	return cs
}

// effect sets an arm's true ratio on a metric.
func (u *truth) effect(arm, metric string, ratio float64) {
	if u.factor[arm] == nil {
		u.factor[arm] = map[string]float64{}
	}
	u.factor[arm][metric] = ratio
}

func analyse(t *testing.T, r *record.Run) *verdict.Analysis {
	t.Helper()
	a, err := verdict.Analyse(r)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func compared(t *testing.T, a *verdict.Analysis, workload, metric, arm string) *verdict.Comparison {
	t.Helper()
	w := a.Workload(workload)
	if w == nil {
		t.Fatalf("no workload %s", workload)
	}
	m := w.Metric(metric)
	if m == nil {
		t.Fatalf("no metric %s in %s", metric, workload)
	}
	c := m.Against(arm)
	if c == nil {
		t.Fatalf("no comparison of %s on %s in %s: %+v", arm, metric, workload, m)
	}
	return c
}

func texts(errs []error) []string {
	var s []string
	for _, e := range errs {
		s = append(s, e.Error())
	}
	return s
}

func ptr(v float64) *float64 { return &v }

// arms makes n arms named a0 (the control) to a(n−1).
func (u *truth) arms(n int) {
	u.study.Arms = nil
	for i := range n {
		u.study.Arms = append(u.study.Arms, study.Arm{Name: fmt.Sprintf("a%d", i)})
	}
	u.study.Control = "a0"
}
