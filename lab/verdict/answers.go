package verdict

import (
	"fmt"
	"slices"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
)

// AnswerTo is the sample of a target, nil if there is none.
func AnswerTo(all []record.Answer, target string) *record.Answer {
	i := slices.IndexFunc(all, func(a record.Answer) bool { return a.Target == target })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// Unlike reports whether two samples of one target differ: in the status, or, where
// neither body is another each time, in the body.
func Unlike(a, b record.Answer) bool {
	return a.Status != b.Status || a.Stable && b.Stable && (a.Length != b.Length || a.SHA256 != b.SHA256)
}

// Describe says what a sample was.
func Describe(a record.Answer) string {
	return fmt.Sprintf("status %d and %s (SHA-256 %.8s…)", a.Status, Count(int(a.Length), "byte"), a.SHA256)
}

// UnlikeControl says where an arm's answers differ from the control's and the workload's
// verify does not say that both are correct.
func UnlikeControl(w study.Workload, arm, control string, of, by []record.Answer) (all []string) {
	for _, a := range of {
		b := AnswerTo(by, a.Target)
		if b == nil || !Unlike(a, *b) || explained(w, a.Target) {
			continue
		}
		all = append(all, fmt.Sprintf("%s answers %s with %s, %s with %s: the arms may not do the same work; say in verify what is correct",
			arm, a.Target, Describe(a), control, Describe(*b)))
	}
	return all
}

// explained reports whether verify says what the body of a target's answer is.
func explained(w study.Workload, target string) bool {
	return slices.ContainsFunc(w.Targets, func(g study.Target) bool {
		return (g.Method+" "+g.Path == target || "GET "+g.Path == target) && (g.Verify.Contains != "" || g.Verify.SHA256 != "")
	})
}

// unlike are the arms whose answers differ from the control's late in the run: in the last
// block in which both have a trial that counts.
func (an *analyser) unlike() (all []error) {
	for _, w := range an.study.Workloads {
		for _, arm := range an.study.ArmsOf(w) {
			a, b := an.lastPair(cell{w.Name, arm.Name, false}, cell{w.Name, an.study.Control, false})
			if a == nil || arm.Name == an.study.Control {
				continue
			}
			for _, text := range UnlikeControl(w, arm.Name, an.study.Control, a.Answers, b.Answers) {
				all = append(all, fmt.Errorf("workload %s, after the load of block %d: %s", w.Name, a.Block+1, text))
			}
		}
	}
	return all
}

// lastPair are the trials of the last block that both cells have.
func (an *analyser) lastPair(arm, control cell) (a, b *record.Trial) {
	last := -1
	for block, t := range an.valid[arm] {
		if c, ok := an.valid[control][block]; ok && block > last {
			last, a, b = block, &t, &c
		}
	}
	return a, b
}
