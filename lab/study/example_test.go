package study_test

import (
	"fmt"
	"time"

	"github.com/tarehq/tare/lab/study"
)

func ExampleNewPlan() {
	s := &study.Study{
		Arms:      []study.Arm{{Name: "none"}, {Name: "three"}},
		Control:   "none",
		Twin:      true,
		Workloads: []study.Workload{{Name: "half"}},
	}
	for _, c := range study.NewPlan(s, 1, 2) {
		fmt.Println(c.Block, c.Workload, c.Arm, c.Twin)
	}
	fmt.Println(study.Estimate(s, 2, 100*time.Millisecond))
	// Output:
	// 0 half three false
	// 0 half none false
	// 0 half none true
	// 1 half none false
	// 1 half none true
	// 1 half three false
	// 14.4s
}

func ExampleParse() {
	_, err := study.Parse("mine.yaml", []byte(`
name: mine
arms:
  - {name: before, go: ./cmd/before}
  - {name: after, go: ./cmd/after}
control: befor
workloads:
  - {name: half, schedule: constant, rate: 0%, targets: [{path: /}]}
primary: {metric: response_p99, workload: half}
`))
	fmt.Println(err)
	// Output:
	// mine.yaml:6:10: no arm is called "befor"; did you mean before? arms: before, after
	// mine.yaml:8:44: rate: got "0%"; want requests a second (above 0, at most 10000000), such as 1000/s, or a share of the slowest arm's capacity (above 0%, at most 100%), such as 50%
}
