package verdict

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/stats"
)

// check judges one check of a claim.
func (an *analyser) check(k study.Check, a *Analysis) CheckResult {
	r := CheckResult{Check: k, Against: cmp.Or(k.Against, an.study.Control)}
	r.Metric, _ = study.MetricNamed(k.Metric)
	if k.Kind == study.Fact {
		an.fact(&r)
		return r
	}
	w, m, why := an.find(k, a)
	if why != "" {
		r.refuse(why)
		return r
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

// refuse makes the decisive part not comparable.
func (r *CheckResult) refuse(why string) {
	f := Finding{Verdict: NotComparable, Reason: why}
	switch r.Check.Kind {
	case study.Fact, study.Bound:
		r.Holds = f
	default:
		r.Direction = f
	}
}

// find looks up what a check is about, or says why it is not there.
func (an *analyser) find(k study.Check, a *Analysis) (w *Workload, m *Metric, why string) {
	for _, arm := range append([]string{k.Arm, k.Against}, k.Plus...) {
		if why, out := an.manifest.LeftOut[arm]; out {
			return nil, nil, fmt.Sprintf("arm %s took no part: %s", arm, why)
		}
	}
	if w = a.Workload(k.Workload); w == nil {
		return nil, nil, fmt.Sprintf("workload %s has no valid trial in this run", k.Workload)
	}
	if m = w.Metric(k.Metric); m == nil {
		return nil, nil, fmt.Sprintf("%s was not measured in workload %s", k.Metric, k.Workload)
	}
	if m.Withheld != "" {
		return nil, nil, fmt.Sprintf("%s is not shown: %s", m.Title, m.Withheld)
	}
	return w, m, ""
}

// bound judges whether an arm's metric keeps to a bound.
func (an *analyser) bound(r *CheckResult, w *Workload, m *Metric) {
	k := r.Check
	points := an.valid.points(cell{w.Name, k.Arm, false}, m.Name)
	if len(points) == 0 || k.Bound == nil {
		r.refuse(fmt.Sprintf("no valid trial of %s has %s", k.Arm, m.Name))
		return
	}
	e := estimate(values(points), w.Alpha)
	r.Measured = &e
	said := fmt.Sprintf("%s of %s is %s (%s), claimed %s %s", parenthesised(m.Metric), k.Arm, Show(m.Metric, e.Value),
		Span(m.Metric, e.Interval), k.Op, Show(m.Metric, *k.Bound))
	beyond := stats.Interval{Lo: e.Interval.Lo - *k.Bound, Hi: e.Interval.Hi - *k.Bound}
	if k.Op == ">=" {
		beyond = stats.Interval{Lo: -beyond.Hi, Hi: -beyond.Lo}
	}
	switch {
	case beyond.Hi <= 0:
		r.Holds = Finding{Verdict: Confirmed, Reason: said}
	case beyond.Lo > 0:
		r.Holds = Finding{Verdict: Contradicted, Reason: said}
	default:
		r.Holds = Finding{Verdict: Inconclusive, Reason: said, Needs: needs(len(points), e.Interval, math.Abs(e.Value-*k.Bound), w.Alpha)}
	}
}

// fact compares what the arm reports of itself with what is claimed.
func (an *analyser) fact(r *CheckResult) {
	k := r.Check
	if why, out := an.manifest.LeftOut[k.Arm]; out {
		r.refuse(fmt.Sprintf("arm %s took no part: %s", k.Arm, why))
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
		r.refuse(fmt.Sprintf("arm %s does not report %s", k.Arm, k.Fact))
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
