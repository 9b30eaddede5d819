package verdict

import (
	"fmt"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/sample"
)

// unlike are the arms whose answers differ from the control's late in the run: in the last
// block in which both have a trial that counts.
func (an *analyser) unlike() (all []error) {
	for _, w := range an.study.Workloads {
		for _, arm := range an.study.ArmsOf(w) {
			a, b := an.lastPair(cell{w.Name, arm.Name, false}, cell{w.Name, an.study.Control, false})
			for _, text := range sample.Unlike(w, sample.Arm{Name: arm.Name, Answers: a.Answers}, sample.Arm{Name: an.study.Control, Answers: b.Answers}) {
				all = append(all, fmt.Errorf("workload %s, after the load of block %d: %s", w.Name, a.Block+1, text))
			}
		}
	}
	return all
}

// lastPair are the trials of the last block that both cells have.
func (an *analyser) lastPair(arm, control cell) (a, b record.Trial) {
	last := -1
	for block, t := range an.valid[arm] {
		if c, ok := an.valid[control][block]; ok && block > last {
			last, a, b = block, t, c
		}
	}
	return a, b
}
