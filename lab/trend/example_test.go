package trend_test

import (
	"fmt"
	"time"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/trend"
	"github.com/tarehq/tare/lab/verdict"
)

// An API became dearer from one day to the next. That the second day's machine is slower
// does not show: each run's ratio is to the control beside it.
func ExampleNew() {
	var runs []*verdict.Analysis
	for day, cost := range []float64{1.02, 1.10} {
		run := &record.Run{Manifest: record.Manifest{
			ID: fmt.Sprint("run-", day+1), Started: time.Date(2026, 1, day+1, 3, 0, 0, 0, time.UTC), Outcome: "decided",
			Study: study.Study{
				Name: "api", Control: "plain", Threshold: 0.01, Arms: []study.Arm{{Name: "plain"}, {Name: "api"}},
				Workloads: []study.Workload{{Name: "half"}}, Primary: study.Primary{Metric: "cpu_per_request", Workload: "half"},
			},
		}}
		for block := range 8 {
			plain := 30_000*float64(day+1) + 10*float64(block)
			for arm, ns := range map[string]float64{"plain": plain, "api": plain * (cost + 0.0001*float64(block))} {
				run.Trials = append(run.Trials, record.Trial{Block: block, Arm: arm, Workload: "half", Steady: true,
					Metrics: map[string]float64{"cpu_per_request": ns}})
			}
		}
		a, err := verdict.Analyse(run)
		if err != nil {
			fmt.Println(err)
			return
		}
		runs = append(runs, a)
	}
	t, err := trend.New(runs, trend.Options{Study: "api"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(t.Headline())
	// Output:
	// CPU per request: api +10.0 % (99 % interval +10.0 to +10.1 %) against plain, 1 run earlier +2.0 %
}
