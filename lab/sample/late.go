package sample

import (
	"fmt"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
)

// UnlikeLate are the arms whose answers differ from the control's late in the run: in the last block
// in which both have a trial that counts.
func UnlikeLate(s *study.Study, trials []record.Trial) (all []error) {
	for _, w := range s.Workloads {
		for _, arm := range s.ArmsOf(w) {
			a, b := lastPair(valid(trials, w.Name, arm.Name), valid(trials, w.Name, s.Control))
			for _, text := range Unlike(w, Arm{Name: arm.Name, Answers: a.Answers}, Arm{Name: s.Control, Answers: b.Answers}) {
				all = append(all, fmt.Errorf("workload %s, after the load of block %d: %s", w.Name, a.Block+1, text))
			}
		}
	}
	return all
}

// valid are an arm's trials that count, by block: the first of each.
func valid(trials []record.Trial, workload, arm string) map[int]record.Trial {
	by := map[int]record.Trial{}
	for _, t := range trials {
		if _, there := by[t.Block]; !there && t.Workload == workload && t.Arm == arm && !t.Twin && t.Block >= 0 && len(t.Invalid) == 0 {
			by[t.Block] = t
		}
	}
	return by
}

// lastPair are the trials of the last block that both cells have.
func lastPair(arm, control map[int]record.Trial) (a, b record.Trial) {
	last := -1
	for block, t := range arm {
		if c, ok := control[block]; ok && block > last {
			last, a, b = block, t, c
		}
	}
	return a, b
}
