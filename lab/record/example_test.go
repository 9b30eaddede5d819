package record_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
)

func Example() {
	root, err := os.MkdirTemp("", "runs")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(root)
	dir := filepath.Join(root, "20260102-150405-nesting")

	w, err := record.Create(dir, record.Manifest{Study: study.Study{Name: "nesting"}, Seed: 1})
	if err != nil {
		log.Fatal(err)
	}
	err = w.Append(record.Trial{
		Arm: "none", Workload: "half", Requests: 20_000,
		Metrics: map[string]float64{"cpu_per_request": 12_300},
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := w.Finish("decided"); err != nil {
		log.Fatal(err)
	}

	run, err := record.Open(dir)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(run.Manifest.Study.Name, run.Manifest.Outcome, run.Trials[0].Metrics["cpu_per_request"])
	// Output: nesting decided 12300
}
