package report_test

import (
	"log"
	"os"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/report"
	"github.com/tarehq/tare/lab/study"
)

func ExampleBench() {
	run := &record.Run{Manifest: record.Manifest{Study: study.Study{Name: "nesting", Control: "none"}, Seed: 1}}
	for i, arm := range []string{"none", "three"} {
		run.Trials = append(run.Trials, record.Trial{
			Seq: i, Arm: arm, Workload: "half", Requests: 20_000,
			Metrics: map[string]float64{"throughput": 10_000, "cpu_per_request": 30_000 + 600*float64(i)},
		})
	}
	if err := report.Bench(os.Stdout, run); err != nil {
		log.Fatal(err)
	}
	// Output:
	// study: nesting
	// control: none
	// seed: 1
	// Unit req/s better=higher
	// Unit cpu-ns/op better=lower
	// BenchmarkStudy/workload=half/arm=none-1 20000 10000 req/s 30000 cpu-ns/op
	// BenchmarkStudy/workload=half/arm=three-1 20000 10000 req/s 30600 cpu-ns/op
}
