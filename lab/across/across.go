// Package across compares two runs through the control that both share.
package across

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/lab/verdict/estimate"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/unit"
)

// Change is an arm of one run against an arm of another, through the control
// that both share: how much its effect changed.
type Change struct {
	Workload string
	Metric   study.Metric
	Primary  bool
	Scale    verdict.Scale
	Arm      string  // of both runs
	First    float64 // effect in the first run, on the scale
	Second   float64 // … in the second
	// Effect is the second effect less the first, the runs' blocks paired in
	// their order as far as the shorter run goes. Each effect's differences are
	// symmetric by the randomisation of its own run, hence so are these.
	Effect        stats.Comparison
	Alpha         float64 // level of the interval
	Anytime       bool    // a run has not ended: the interval holds whenever one looks
	verdict.Sizes         // the wider of the two runs'
}

// Relative is the change as a relative one, with its interval; only on the
// ratio scale.
func (x *Change) Relative() (e verdict.Estimate, ok bool) {
	return verdict.Relative(x.Scale, x.Effect, x.estimate())
}

// Called names the interval for people, as [verdict.Estimate] does.
func (x *Change) Called() string { return x.estimate().Called() }

func (x *Change) estimate() verdict.Estimate {
	return verdict.Estimate{Level: estimate.Level(x.Alpha), Anytime: x.Anytime}
}

// Figure is the change for people, as Comparison.Figure.
func (x *Change) Figure() string {
	if e, ok := x.Relative(); ok {
		return unit.Change(e.Value)
	}
	return verdict.ShowSigned(x.Metric, x.Effect.Effect)
}

// Range is the interval of the change for people.
func (x *Change) Range() string {
	if e, ok := x.Relative(); ok {
		return verdict.Changes(e.Interval)
	}
	return verdict.SpanSigned(x.Metric, x.Effect.Interval)
}

// Between compares the arms that two runs have in common. It goes only through
// a shared control: the same program by its build ID, under the same
// workloads, on equal terms, over blocks enough for a change to have an interval.
// Where that is not so, the error says what is missing.
func Between(first, second *verdict.Analysis) ([]Change, error) {
	if err := sharedControl(first, second); err != nil {
		return nil, fmt.Errorf("comparing runs %s and %s: %w", first.Manifest.ID, second.Manifest.ID, err)
	}
	var all []Change
	for i := range first.Workloads {
		w := &first.Workloads[i]
		other := second.Workload(w.Name)
		if other == nil {
			continue
		}
		err := sameTerms(first, second, w, other)
		if err == nil {
			err = enoughBlocks(first, second, w, other)
		}
		if err != nil {
			return nil, fmt.Errorf("comparing runs %s and %s: workload %s: %w", first.Manifest.ID, second.Manifest.ID, w.Name, err)
		}
		for j := range w.Metrics {
			m := &w.Metrics[j]
			if n := other.Metric(m.Name); n != nil && n.Scale == m.Scale {
				all = append(all, across(m, n)...)
			}
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("comparing runs %s and %s: they have no arm, workload and metric in common", first.Manifest.ID, second.Manifest.ID)
	}
	return all, nil
}

func sharedControl(first, second *verdict.Analysis) error {
	a, b := first.Manifest.Study.Control, second.Manifest.Study.Control
	pa, pb := first.Manifest.Programs[a], second.Manifest.Programs[b]
	switch {
	case pa.BuildID == "" || pb.BuildID == "":
		return fmt.Errorf("a control has no build ID (%s: %q, %s: %q): nothing says that both ran the same program", a, pa.BuildID, b, pb.BuildID)
	case pa.BuildID != pb.BuildID:
		return fmt.Errorf("the controls are different programs (%s: build ID %s, %s: %s); only runs with the same control can be compared", a, pa.BuildID, b, pb.BuildID)
	case !slices.Equal(pa.Args, pb.Args):
		return fmt.Errorf("the controls ran with different arguments (%q and %q)", pa.Args, pb.Args)
	}
	if err := sameStart(declaredControl(first), declaredControl(second)); err != nil {
		return err
	}
	p, q := first.Manifest.Pinning, second.Manifest.Pinning
	if p.Disjoint != q.Disjoint {
		return fmt.Errorf("instrument and specimen had CPUs of their own in one run only")
	}
	if n, m := len(p.Specimen), len(q.Specimen); n != m { // and so other GOMAXPROCS
		return fmt.Errorf("the controls ran on %s and on %d", unit.Plural(n, "CPU"), m)
	}
	return nil
}

// declaredControl is the control as its study declares it.
func declaredControl(a *verdict.Analysis) study.Arm {
	s := &a.Manifest.Study
	i := slices.IndexFunc(s.Arms, func(arm study.Arm) bool { return arm.Name == s.Control })
	if i < 0 {
		return study.Arm{}
	}
	return s.Arms[i]
}

// sameStart says in what two controls differ that are the same program: GOGC=off
// alone makes another of it.
func sameStart(a, b study.Arm) error {
	const discard = "discard" // what is said by leaving it out
	switch p, q := cmp.Or(a.Sink, discard), cmp.Or(b.Sink, discard); {
	case !slices.Equal(a.Env, b.Env):
		return fmt.Errorf("the controls ran in different environments (%q and %q)", a.Env, b.Env)
	case p != q:
		return fmt.Errorf("the controls' output went elsewhere (%s and %s)", p, q)
	case !slices.Equal(a.Closed, b.Closed) || !slices.Equal(a.Open, b.Open) || !slices.Equal(a.Paced, b.Paced) || !slices.Equal(a.Under, b.Under):
		return fmt.Errorf("the controls were asked for their load by different arguments")
	}
	return nil
}

// sameTerms says in what a workload differs between two runs.
func sameTerms(first, second *verdict.Analysis, a, b *verdict.Workload) error {
	x, y := a.Workload, b.Workload
	x.Title, y.Title, x.Arms, y.Arms = "", "", nil, nil
	switch {
	case reflect.DeepEqual(x, y):
	case !reflect.DeepEqual(x.Targets, y.Targets):
		return errors.New("the runs asked for other requests, or wanted other answers")
	default:
		return errors.New("its load is declared differently in the two runs, such as its rate or connections")
	}
	p, q := first.Manifest.Rates[a.Name], second.Manifest.Rates[b.Name]
	if math.Abs(p-q) > verdict.SameRate*max(p, q) {
		return fmt.Errorf("the offered rates differ (%.0f/s and %.0f/s)", p, q)
	}
	if p, q := lengths(first, a), lengths(second, b); p != q {
		return fmt.Errorf("its trials had different lengths (%s and %s)", p, q)
	}
	return nil
}

// lengths says how long the trials of a workload took.
func lengths(a *verdict.Analysis, w *verdict.Workload) string {
	s := &a.Manifest.Study
	return fmt.Sprintf("%v measured after %v, in slices of %v", s.Measured(w.Workload), s.Trial.WarmUpOr(), s.Trial.SliceOr())
}

// enoughBlocks says which run has too few blocks for any change to be told.
func enoughBlocks(first, second *verdict.Analysis, a, b *verdict.Workload) error {
	least := stats.BlocksForFamily(1, min(a.Alpha, b.Alpha))
	var short []string
	for _, r := range []struct {
		run    *verdict.Analysis
		blocks int
	}{{first, a.Blocks}, {second, b.Blocks}} {
		if r.blocks < least {
			short = append(short, fmt.Sprintf("run %s has %s", r.run.Manifest.ID, unit.Plural(r.blocks, "block")))
		}
	}
	if len(short) == 0 {
		return nil
	}
	return fmt.Errorf("%s; a change has an interval from %s in each run on", strings.Join(short, " and "), unit.Plural(least, "block"))
}

// across compares a metric's arms. Intervals have the lower level of the two runs', which
// of what captures tell is not that of the blocks.
func across(m, n *verdict.Metric) []Change {
	var all []Change
	for _, c := range m.Compared {
		d := n.Against(c.Arm)
		if d == nil || c.Withheld != "" || d.Withheld != "" {
			continue
		}
		alpha := min(c.Alpha, d.Alpha)
		change := make([]float64, min(c.N, d.N))
		for i := range change {
			change[i] = d.Paired[i] - c.Paired[i]
		}
		x := Change{
			Workload: c.Workload, Metric: m.Metric, Primary: m.Primary, Scale: m.Scale, Arm: c.Arm,
			First: c.Effect.Effect, Second: d.Effect.Effect, Alpha: alpha, Anytime: c.Anytime || d.Anytime,
			Sizes: verdict.Sizes{Threshold: max(m.Threshold, n.Threshold), Floor: max(m.Floor, n.Floor)},
		}
		if x.Effect = verdict.Judge(change, stats.Rule{Alpha: alpha, Anytime: x.Anytime, Threshold: x.Threshold, Floor: x.Floor, HigherIsBetter: m.Higher}); m.Unfloored || n.Unfloored {
			x.Effect.Verdict = stats.Inconclusive // for want of the noise floor that a difference takes
		}
		all = append(all, x)
	}
	return all
}
