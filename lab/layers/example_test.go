package layers_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/lab/layers"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
)

// run has a log on serve, and three on net/http and gin, which are slower without it already.
func run(blocks int) *record.Run {
	r := &record.Run{Manifest: record.Manifest{
		ID: "run-1", Outcome: "decided",
		Study: study.Study{
			Name: "logs", Control: "net", Twin: true, Threshold: 0.01,
			Workloads: []study.Workload{{Name: "order"}}, Primary: study.Primary{Metric: "loop_time", Workload: "order"},
			Arms: []study.Arm{{Name: "net"}, {Name: "serve"}, {Name: "gin"},
				{Name: "log-serve", Title: "log, ours", Layer: "log", Over: "serve"},
				{Name: "log-net", Title: "log, theirs", Layer: "log", Over: "net"},
				{Name: "log-gin", Title: "log, gin's", Layer: "log", Over: "gin"},
				{Name: "log-other", Title: "log, another", Layer: "log", Over: "serve"},
				{Name: "cache", Layer: "cache", Over: "absent"}},
		},
	}}
	for block := range blocks {
		drift := 10 * float64(block%5)
		for arm, ns := range map[string]float64{"net": 100, "serve": 500, "gin": 2000, "log-serve": 800, "log-net": 1100, "log-gin": 2200, "log-other": 801, "cache": 9000} {
			metrics := map[string]float64{"loop_time": ns + drift + 0.1*float64(block*len(arm)%7), "loop_allocs": 1}
			if strings.HasPrefix(arm, "log-n") {
				metrics["loop_allocs"] = 4
			}
			r.Trials = append(r.Trials, record.Trial{Block: block, Arm: arm, Workload: "order", Steady: true, Metrics: metrics})
		}
		r.Trials = append(r.Trials, record.Trial{Block: block, Arm: "net", Twin: true, Workload: "order", Steady: true,
			Metrics: map[string]float64{"loop_time": 100 + drift + 4*float64(block%3), "loop_allocs": 1}})
	}
	return r
}

func analyse(blocks int) *verdict.Analysis {
	a, err := verdict.Analyse(run(blocks))
	if err != nil {
		panic(err)
	}
	return a
}

// A log on gin is held against gin, one on serve against serve: what these take without it is no
// part of its weight.
func ExampleOf() {
	for _, w := range layers.Of(analyse(8)) {
		fmt.Printf("%s over %s: %.0f ns, %g allocations, %s\n", w.Arm, w.Over, w.Adds.Value, *w.Allocs, cmp.Or(w.Word, "named first"))
	}
	// Output:
	// log-gin over gin: 200 ns, 0 allocations, lighter
	// log-serve over serve: 300 ns, 0 allocations, named first
	// log-other over serve: 301 ns, 0 allocations, not told apart
	// log-net over net: 1000 ns, 3 allocations, heavier
}

// TestNoise holds that nothing is told apart where the twin makes no floor or no interval is
// bounded, and that a study without layers has no table.
func TestNoise(t *testing.T) {
	for _, w := range layers.Of(analyse(4)) {
		if w.Word == layers.Heavier || w.Word == layers.Lighter {
			t.Errorf("%s is %s after four blocks", w.Arm, w.Word)
		}
	}
	a := analyse(8)
	for i := range a.Manifest.Study.Arms {
		a.Manifest.Study.Arms[i].Layer = ""
	}
	if blocks := layers.Blocks(a); blocks != nil {
		t.Errorf("a study without layers has %v", blocks)
	}
}

// TestBlocks reads the table: the lightest first, each layer named once.
func TestBlocks(t *testing.T) {
	var b strings.Builder
	if err := doc.Text(&b, doc.Page{Blocks: layers.Blocks(analyse(8))}, doc.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	last := -1
	for _, want := range []string{"log, gin's", "log, ours", "log, another", "heavier: +700 ns"} {
		at := strings.Index(b.String(), want)
		if at <= last {
			t.Errorf("%q is missing or stands too early in\n%s", want, b.String())
		}
		last = at
	}
	if strings.Contains(b.String(), "cache") {
		t.Errorf("a layer whose base was not measured has a row:\n%s", b.String())
	}
}
