package across_test

import (
	"fmt"

	"github.com/tarehq/tare/lab/across"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
)

// Two runs on machines of different speed share their control, plain.
func ExampleBetween() {
	var runs []*verdict.Analysis
	for day, cost := range []float64{1.02, 1.10} {
		run := &record.Run{Manifest: record.Manifest{
			ID: fmt.Sprint("run-", day+1), Programs: map[string]record.Program{"plain": {BuildID: "a1"}, "api": {BuildID: fmt.Sprint("b", day)}},
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
	changes, err := across.Between(runs[0], runs[1])
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range changes {
		fmt.Println(c.Arm, c.Figure())
	}
	// Output:
	// api +7.8 %
}
