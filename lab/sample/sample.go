// Package sample compares samples of the answers that arms give to the same targets.
package sample

import (
	"fmt"
	"slices"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
)

// Arm is an arm with samples of its answers.
type Arm struct {
	Name    string
	Answers []record.Answer
}

// Unlike says where an arm's answers differ from the control's and the workload's verify
// does not say what the body is.
func Unlike(w study.Workload, arm, control Arm) (all []string) {
	for _, a := range arm.Answers {
		b := find(control.Answers, a.Target)
		if b == nil || !differ(a, *b) || explained(w, a.Target) {
			continue
		}
		all = append(all, fmt.Sprintf("%s answers %s with %s, %s with %s: the arms may not do the same work; say in verify what is correct",
			arm.Name, a.Target, describe(a), control.Name, describe(*b)))
	}
	return all
}

// Changed says which of an arm's answers differ before and after.
func Changed(before, after []record.Answer) (all []string) {
	for _, a := range after {
		if b := find(before, a.Target); b != nil && differ(a, *b) {
			all = append(all, fmt.Sprintf("the answer to %s changed under the load: %s before, %s after", a.Target, describe(*b), describe(a)))
		}
	}
	return all
}

// Target is a target as samples and warnings call it.
func Target(g study.Target) string {
	if g.Method == "" {
		return "GET " + g.Path
	}
	return g.Method + " " + g.Path
}

// find is the sample of a target, nil if there is none.
func find(all []record.Answer, target string) *record.Answer {
	i := slices.IndexFunc(all, func(a record.Answer) bool { return a.Target == target })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// differ reports whether two samples of one target differ: in the status, or, where
// neither body is another each time, in the body.
func differ(a, b record.Answer) bool {
	return a.Status != b.Status || a.Stable && b.Stable && (a.Length != b.Length || a.SHA256 != b.SHA256)
}

func describe(a record.Answer) string {
	return fmt.Sprintf("status %d and a body of %d bytes (SHA-256 %.8s…)", a.Status, a.Length, a.SHA256)
}

// explained reports whether verify says what the body of a target's answer is, or the
// target asks for an encoding: each encoder has bytes of its own.
func explained(w study.Workload, target string) bool {
	return slices.ContainsFunc(w.Targets, func(g study.Target) bool {
		return Target(g) == target && (g.Verify.Contains != "" || g.Verify.SHA256 != "" || g.Header["Accept-Encoding"] != "")
	})
}
