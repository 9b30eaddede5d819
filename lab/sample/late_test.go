package sample_test

import (
	"strings"
	"testing"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/sample"
	"github.com/tarehq/tare/lab/study"
)

// What counts late in a run is the last block in which both trials count, and not the twin.
func TestUnlikeLate(t *testing.T) {
	s := &study.Study{Control: "plain", Arms: []study.Arm{{Name: "plain"}, {Name: "layers"}}, Workloads: []study.Workload{{Name: "orders"}}}
	trial := func(block int, arm string, status int) record.Trial {
		return record.Trial{Block: block, Arm: arm, Workload: "orders", Answers: []record.Answer{{Target: "GET /", Status: status, Stable: true}}}
	}
	lost := trial(3, "layers", 500)
	lost.Invalid = []string{"lost"}
	twin := trial(2, "plain", 503)
	twin.Twin = true
	all := []record.Trial{
		trial(0, "plain", 200), trial(0, "layers", 200), trial(2, "layers", 404), twin, trial(2, "plain", 200),
		trial(3, "plain", 200), lost, trial(4, "layers", 500),
	}
	found := sample.UnlikeLate(s, all)
	if len(found) != 1 || !strings.HasPrefix(found[0].Error(), "workload orders, after the load of block 3: layers answers GET / with status 404") {
		t.Errorf("got %v, want that of block 3 alone", found)
	}
	if found := sample.UnlikeLate(s, all[:2]); len(found) > 0 {
		t.Errorf("where answers are alike: got %v, want none", found)
	}
}
