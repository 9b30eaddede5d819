package verdict

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tarehq/tare/lab/study"
)

// check judges one check of a claim, which shares the level of its interval with as
// many others as the family has.
func (an *analyser) check(k study.Check, a *Analysis, family int) CheckResult {
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
	sharing := *w
	sharing.Alpha /= float64(family)
	w = &sharing
	switch k.Kind {
	case study.Interaction:
		an.interaction(&r, w, m)
	case study.Bound:
		an.bound(&r, w, m)
	default:
		an.effect(&r, w, m)
	}
	if m.Unfloored {
		r.leaveOpen(m)
	}
	if m.Attributed {
		if v := r.Direction.Verdict; v == Confirmed || v == Contradicted {
			r.Direction.Reason += "; captures have no twin: no noise floor is known, the threshold alone counts"
		}
		r.Direction.Rounds, r.Ratio.Rounds, r.Difference.Rounds, r.Holds.Rounds = true, true, true, true
		return r
	}
	r.askForBlocks(an.begun)
	return r
}

// askForBlocks makes blocks of the pairs that are wanted, where some blocks so far brought none.
func (r *CheckResult) askForBlocks(begun int) {
	pairs := max(begun, 1)
	if r.Comparison != nil {
		pairs = r.Comparison.N
	} else if r.Measured != nil {
		pairs = r.Measured.N()
	}
	for _, f := range []*Finding{&r.Direction, &r.Ratio, &r.Difference, &r.Holds} {
		f.Needs = (f.Needs*max(begun, pairs) + pairs - 1) / pairs
	}
}

// leaveOpen takes back what rests on a noise floor that control and twin do not make. A bound
// does not.
func (r *CheckResult) leaveOpen(m *Metric) {
	why := m.floorless()
	for _, f := range []*Finding{&r.Direction, &r.Ratio, &r.Difference} {
		if f.Verdict == Confirmed || f.Verdict == Contradicted || f.Needs > 0 {
			f.Verdict, f.Reason, f.Needs = Inconclusive, f.Reason+"; "+why, max(f.Needs, leastTwinPairs-m.twinned)
		}
		why = "without a noise floor it is open"
	}
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
		if f := an.absent(arm); arm != "" && f.Verdict != "" {
			return nil, nil, f
		}
	}
	if !slices.ContainsFunc(an.study.Workloads, func(w study.Workload) bool { return w.Name == k.Workload }) {
		return nil, nil, notComparable("workload %s is not part of this run", k.Workload)
	}
	if w = a.Workload(k.Workload); w == nil {
		return nil, nil, unmeasured("workload %s has no valid trial", k.Workload)
	}
	switch m = w.Metric(k.Metric); {
	case m == nil && an.attributes(k):
		return nil, nil, unmeasured("no valid capture of workload %s has %s", k.Workload, k.Metric)
	case m == nil && len(an.valid.lagging(cell{k.Workload, k.Arm, false}, k.Metric)) > 0:
		return nil, nil, unmeasured("the generator's lag voids %s in every trial of workload %s", k.Metric, k.Workload)
	case m == nil:
		return nil, nil, notComparable("%s was not measured in workload %s", k.Metric, k.Workload)
	case m.Withheld != "":
		return nil, nil, notComparable("%s is not shown: %s", parenthesised(m.Metric), m.Withheld)
	}
	return w, m, Finding{}
}

// attributes reports whether captures are to tell what a check is about.
func (an *analyser) attributes(k study.Check) bool {
	m, _ := study.MetricNamed(k.Metric)
	return m.Attributed && slices.ContainsFunc(an.study.Captures(an.manifest.Seed), func(c study.Capture) bool {
		return c.Arm == k.Arm && c.Workload == k.Workload && c.Source != study.Trace
	})
}

// absent finds why an arm is no part of the run, if it is not.
func (an *analyser) absent(arm string) Finding {
	if why, out := an.manifest.LeftOut[arm]; out {
		return notComparable("arm %s took no part: %s", arm, why)
	}
	if !slices.ContainsFunc(an.study.Arms, func(a study.Arm) bool { return a.Name == arm }) {
		return notComparable("arm %s is not part of this run", arm)
	}
	return Finding{}
}

// fact compares what the arm reports of itself with what is claimed.
func (an *analyser) fact(r *CheckResult) {
	k := r.Check
	if f := an.absent(k.Arm); f.Verdict != "" {
		r.refuse(f)
		return
	}
	seen, counts := map[string]bool{}, false
	for c, blocks := range an.valid {
		if c.arm != k.Arm {
			continue
		}
		for _, t := range blocks {
			counts = true
			if v, ok := t.Facts[k.Fact]; ok {
				seen[v] = true
			}
		}
	}
	switch {
	case !counts:
		r.refuse(unmeasured("no valid trial of %s", k.Arm))
		return
	case len(seen) == 0:
		r.refuse(notComparable("arm %s does not report %s", k.Arm, k.Fact))
		return
	}
	r.Reported = strings.Join(slices.Sorted(maps.Keys(seen)), ", ")
	r.Holds = Finding{Verdict: Contradicted, Reason: fmt.Sprintf("%s is %q in %s, claimed %q", k.Fact, r.Reported, k.Arm, k.Value)}
	if r.Reported == k.Value {
		r.Holds.Verdict = Confirmed
	}
}
