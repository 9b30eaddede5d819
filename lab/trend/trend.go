// Package trend follows one metric of one study over its runs, as ratios to the control.
//
// A run's ratio is that of its own blocks, so the machine of another day does not matter:
// each arm is compared with the control that ran beside it. Nothing is compared from run to
// run, which lab/across does where the control is the same program.
package trend

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/unit"
)

// Trend is a metric over runs.
type Trend struct {
	Study    string       `json:"study"`
	Workload string       `json:"workload"`
	Metric   study.Metric `json:"-"`
	Name     string       `json:"metric"`
	Control  string       `json:"control"` // without the commit
	Arms     []string     `json:"arms"`    // likewise, in the study's order
	Points   []Point      `json:"points"`  // the oldest first, by arms within a run
	LeftOut  []LeftOut    `json:"left_out"`

	whole bool           // names of arms keep their commits
	load  study.Workload // the newest run's
}

// Point is an arm in one run.
type Point struct {
	Run      string           `json:"run"`
	Started  time.Time        `json:"started"`
	Arm      string           `json:"arm"`
	Blocks   int              `json:"blocks"`
	Change   verdict.Estimate `json:"change"` // relative: 0.05 is 5 % more than the control
	Alpha    float64          `json:"alpha"`  // level of the interval
	Verdict  stats.Verdict    `json:"verdict"`
	Deciding verdict.Deciding `json:"deciding"` // the interval that the verdict rests on, relative
	Word     string           `json:"word"`
	Control  string           `json:"control"`                    // with its commit
	Build    string           `json:"build_id,omitempty"`         // of the arm's program
	Baseline string           `json:"control_build_id,omitempty"` // of the control's
}

// LeftOut is a run of the study that is not shown.
type LeftOut struct {
	Run string `json:"run"`
	Why string `json:"why"`
}

// Options choose what is followed. What is left out is that of the newest run that compares arms.
type Options struct{ Study, Workload, Metric string }

// ErrNothing says that no run has what is asked for.
var ErrNothing = errors.New("no run shows this")

// New follows a metric over runs, which may be of many studies and in any order.
func New(runs []*verdict.Analysis, o Options) (*Trend, error) {
	runs = slices.SortedStableFunc(slices.Values(runs), func(x, y *verdict.Analysis) int { return x.Manifest.Started.Compare(y.Manifest.Started) })
	runs = slices.DeleteFunc(runs, func(a *verdict.Analysis) bool { return o.Study != "" && a.Manifest.Study.Name != o.Study })
	if len(runs) == 0 {
		return nil, fmt.Errorf("%w: no run of study %q", ErrNothing, o.Study)
	}
	newest := newestCompared(runs)
	t := &Trend{Study: newest.Name, Workload: cmp.Or(o.Workload, newest.Primary.Workload), Name: cmp.Or(o.Metric, newest.Primary.Metric),
		Control: bare(newest.Control), Points: []Point{}, LeftOut: []LeftOut{}}
	var known bool
	if t.Metric, known = study.MetricNamed(t.Name); !known {
		return nil, fmt.Errorf("%w: no metric is called %q", ErrNothing, t.Name)
	}
	t.load = asked(newest, t.Workload)
	for _, a := range newest.Arms {
		if a.Name != newest.Control {
			t.whole = t.whole || slices.Contains(t.Arms, bare(a.Name))
			t.Arms = append(t.Arms, bare(a.Name))
		}
	}
	if t.whole { // its commits or versions are what tells them apart
		t.Arms = nil
		for _, a := range newest.Arms {
			if a.Name != newest.Control {
				t.Arms = append(t.Arms, a.Name)
			}
		}
	}
	for _, a := range runs {
		if a.Manifest.Study.Name != t.Study {
			continue
		}
		if why := t.add(a); why != "" {
			t.LeftOut = append(t.LeftOut, LeftOut{a.Manifest.ID, why})
		}
	}
	if len(t.Points) == 0 {
		return nil, fmt.Errorf("%w: %s in workload %s of study %s: %s", ErrNothing, t.Name, t.Workload, t.Study, t.LeftOut[len(t.LeftOut)-1].Why)
	}
	return t, nil
}

// newestCompared is the newest run's study, of those in which an arm was compared: a run that was
// interrupted at once does not say what the others are about.
func newestCompared(runs []*verdict.Analysis) *study.Study {
	for _, a := range slices.Backward(runs) {
		compared := func(c verdict.Comparison) bool { return c.Withheld == "" && c.N > 0 }
		if m := a.Primary(); m != nil && slices.ContainsFunc(m.Compared, compared) {
			return &a.Manifest.Study
		}
	}
	return &runs[len(runs)-1].Manifest.Study
}

// add takes a run in, or says why not.
func (t *Trend) add(a *verdict.Analysis) (why string) {
	s := &a.Manifest.Study
	if bare(s.Control) != t.Control {
		return "its control is " + s.Control
	}
	w := a.Workload(t.Workload)
	if w == nil {
		return "no trial of the workload counts"
	}
	switch own := asked(s, t.Workload); {
	case reflect.DeepEqual(own, t.load):
	case !reflect.DeepEqual(own.Targets, t.load.Targets):
		return "its workload asks for other requests"
	default:
		return "its workload has another schedule, rate or number of connections"
	}
	m := w.Metric(t.Name)
	switch {
	case m == nil:
		return "it does not have the metric"
	case m.Withheld != "":
		return m.Withheld
	case m.Instrument:
		return "the metric describes the load generator or the host, not an arm"
	case m.Scale != verdict.Ratio:
		return "the metric is compared by difference, not by ratio"
	}
	why = "it has none of the arms"
	for i := range m.Compared {
		c := &m.Compared[i]
		e, ok := c.Relative()
		switch {
		case !slices.Contains(t.Arms, t.nameOf(c.Arm)) || !ok:
			continue
		case c.Withheld != "":
			why = c.Withheld
			continue
		}
		why = ""
		t.Points = append(t.Points, Point{Run: a.Manifest.ID, Started: a.Manifest.Started, Arm: t.nameOf(c.Arm), Blocks: c.N, Change: e, Alpha: c.Alpha,
			Verdict: c.Verdict, Deciding: c.Deciding(), Word: c.Word(), Control: s.Control, Build: buildOf(&a.Manifest, c.Arm), Baseline: buildOf(&a.Manifest, s.Control)})
	}
	return why
}

func buildOf(m *record.Manifest, arm string) string { return m.Programs[arm].BuildID }

var commit = regexp.MustCompile(`@[^+]*`)

// bare is an arm's name without the commit, which differs from run to run.
func bare(arm string) string { return commit.ReplaceAllString(arm, "") }

// nameOf is what the trend calls an arm of a run.
func (t *Trend) nameOf(arm string) string {
	if t.whole {
		return arm
	}
	return bare(arm)
}

// asked is what of a workload must be the same for runs to be of one kind: not what is
// checked, nor header fields, which may hold a token, nor how long.
func asked(s *study.Study, workload string) study.Workload {
	i := slices.IndexFunc(s.Workloads, func(w study.Workload) bool { return w.Name == workload })
	if i < 0 {
		return study.Workload{}
	}
	w := &s.Workloads[i]
	own := study.Workload{Name: w.Name, Schedule: w.Schedule, Connections: w.Connections, Rate: w.Rate, Fresh: w.Fresh,
		Pipeline: w.Pipeline, Idle: w.Idle, Server: w.Server, Flow: w.Flow, Profile: w.Profile}
	for _, g := range w.Targets {
		own.Targets = append(own.Targets, study.Target{Method: g.Method, Path: g.Path, Body: g.Body, Weight: g.Weight})
	}
	return own
}

// Of returns an arm's points.
func (t *Trend) Of(arm string) []Point {
	return slices.DeleteFunc(slices.Clone(t.Points), func(p Point) bool { return p.Arm != arm })
}

// Headline says where each arm came from and where it is.
func (t *Trend) Headline() string {
	var texts []string
	for _, arm := range t.Arms {
		points := t.Of(arm)
		if len(points) == 0 {
			continue
		}
		first, last := &points[0], &points[len(points)-1]
		text := fmt.Sprintf("%s %s (%s %s) against %s", arm, unit.Change(last.Change.Value), last.Change.Called(), verdict.Changes(last.Change.Interval), last.Control)
		if len(points) > 1 {
			text += fmt.Sprintf(", %s earlier %s", unit.Plural(len(points)-1, "run"), unit.Change(first.Change.Value))
		}
		texts = append(texts, text)
	}
	return t.Metric.Title + ": " + strings.Join(texts, "; ")
}
