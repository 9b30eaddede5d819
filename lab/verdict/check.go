package verdict

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tarehq/tare/lab/study"
)

// check judges one check of a claim.
func (an *analyser) check(k study.Check, a *Analysis) CheckResult {
	r := CheckResult{Check: k, Against: cmp.Or(k.Against, an.study.Control)}
	r.Metric, _ = study.MetricNamed(k.Metric)
	if k.Kind == study.Fact {
		an.fact(&r)
		return r
	}
	w, m, found := an.find(k, a)
	if found.Verdict != "" {
		r.refuse(found)
		return r
	}
	if m.Attributed {
		basis := an.rounds.basis(w.Workload)
		an, w = an.rounds, &basis
	}
	switch k.Kind {
	case study.Interaction:
		an.interaction(&r, w, m)
	case study.Bound:
		an.bound(&r, w, m)
	default:
		an.effect(&r, w, m)
	}
	return r
}

// refuse sets the decisive part to why there is nothing to judge: f is not
// comparable where the run can never say, inconclusive where it just has no
// valid trials for it yet.
func (r *CheckResult) refuse(f Finding) {
	switch r.Check.Kind {
	case study.Fact, study.Bound:
		r.Holds = f
	default:
		r.Direction = f
	}
}

func notComparable(format string, args ...any) Finding {
	return Finding{Verdict: NotComparable, Reason: fmt.Sprintf(format, args...)}
}

// unmeasured is the finding that valid trials are missing.
func unmeasured(format string, args ...any) Finding {
	return Finding{Verdict: Inconclusive, Reason: fmt.Sprintf(format, args...)}
}

// find looks up what a check is about, or finds why it is not there.
func (an *analyser) find(k study.Check, a *Analysis) (w *Workload, m *Metric, f Finding) {
	for _, arm := range append([]string{k.Arm, k.Against}, k.Plus...) {
		if why, out := an.manifest.LeftOut[arm]; out {
			return nil, nil, notComparable("arm %s took no part: %s", arm, why)
		}
		if arm != "" && !slices.ContainsFunc(an.study.Arms, func(a study.Arm) bool { return a.Name == arm }) {
			return nil, nil, notComparable("arm %s is no part of this run", arm)
		}
	}
	if !slices.ContainsFunc(an.study.Workloads, func(w study.Workload) bool { return w.Name == k.Workload }) {
		return nil, nil, notComparable("workload %s is no part of this run", k.Workload)
	}
	if w = a.Workload(k.Workload); w == nil {
		return nil, nil, unmeasured("workload %s has no valid trial", k.Workload)
	}
	if m = w.Metric(k.Metric); m == nil {
		return nil, nil, notComparable("%s was not measured in workload %s", k.Metric, k.Workload)
	}
	if m.Withheld != "" {
		return nil, nil, notComparable("%s is not shown: %s", parenthesised(m.Metric), m.Withheld)
	}
	return w, m, Finding{}
}

// fact compares what the arm reports of itself with what is claimed.
func (an *analyser) fact(r *CheckResult) {
	k := r.Check
	if why, out := an.manifest.LeftOut[k.Arm]; out {
		r.refuse(notComparable("arm %s took no part: %s", k.Arm, why))
		return
	}
	seen := map[string]bool{}
	for c, blocks := range an.valid {
		if c.arm != k.Arm {
			continue
		}
		for _, t := range blocks {
			if v, ok := t.Facts[k.Fact]; ok {
				seen[v] = true
			}
		}
	}
	if len(seen) == 0 {
		r.refuse(notComparable("arm %s does not report %s", k.Arm, k.Fact))
		return
	}
	r.Reported = strings.Join(slices.Sorted(maps.Keys(seen)), ", ")
	r.Holds = Finding{Verdict: Contradicted, Reason: fmt.Sprintf("%s is %q in %s, claimed %q", k.Fact, r.Reported, k.Arm, k.Value)}
	if r.Reported == k.Value {
		r.Holds.Verdict = Confirmed
	}
}

// sentence says the result of a check in plain words.
func (r *CheckResult) sentence() string {
	part := func(name string, f Finding) string {
		if f.Verdict == "" {
			return ""
		}
		return fmt.Sprintf("%s %s: %s. ", name, f.Verdict, f.Reason)
	}
	return strings.TrimSpace(part("Direction", r.Direction) + part("Ratio", r.Ratio) + part("Difference", r.Difference) +
		part("Absolute figures", r.Levels) + capital(part(strings.TrimSpace(string(r.Check.Kind)), r.Holds)))
}
