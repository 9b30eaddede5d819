package verdict_test

import (
	"fmt"
	"log"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
)

func ExampleAnalyse() {
	run := &record.Run{Manifest: record.Manifest{Outcome: "decided", Study: study.Study{
		Name: "nesting", Control: "none", Threshold: 0.01,
		Arms:      []study.Arm{{Name: "none"}, {Name: "three", Title: "three layers"}},
		Workloads: []study.Workload{{Name: "half"}},
		Primary:   study.Primary{Metric: "cpu_per_request", Workload: "half"},
	}}}
	for block := range 8 {
		drift := 1 + float64(block)/10 // shared by the block's trials
		for arm, ns := range map[string]float64{"none": 30_000, "three": 30_600 + float64(10*block)} {
			run.Trials = append(run.Trials, record.Trial{
				Block: block, Arm: arm, Workload: "half", Steady: true,
				Metrics: map[string]float64{"cpu_per_request": ns * drift},
			})
		}
	}
	a, err := verdict.Analyse(run)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(a.Headline)
	fmt.Println("decided:", a.Decided())
	for _, w := range a.Warnings {
		fmt.Println("warning:", w)
	}
	// Output:
	// With three layers, a request takes 862 ns more CPU than with none (600 ns to 1.14 µs).
	// decided: true
	// warning: no noise floor is known: the study has no twin and this machine is not calibrated (tare calibrate); effects are held against the threshold alone
}
