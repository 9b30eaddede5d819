// Package verdict turns a run's records into comparisons, and verdicts on the
// claims it tests.
//
// The model: in every block of a workload each arm has one valid trial beside one of the control,
// and what is compared is the pair. Paired differences are of logarithms, so effects are ratios; a
// metric that is zero in some trial, or a share, is compared by plain differences ([Scale] says
// which). The interval of a [Comparison] has the level of the look that the blocks reached. Only
// the study's primary metric, in its workload, is decided on: family-wise by Holm over its arms.
// All other comparisons have the same intervals, not corrected for multiple comparisons, and are
// descriptive; so are the checks of claims.
//
// An effect counts beyond two sizes that are never mixed: the study's threshold and the noise
// floor, which comes from the control's own twin in the run, from calibration, or both. The absence
// of one counts within the threshold alone, where the floor is below it. Response times are
// compared only where arm and control achieved the same rate, quantiles only where every trial had
// requests enough. What is not compared says why ([Comparison.Withheld]).
//
// A published claim is judged on its parts, each for itself:
//
//   - direction: confirmed where the interval excludes no effect on the claimed side and the effect
//     is beyond threshold and floor; contradicted where it does so on the other side, and where the
//     interval for equivalence lies inside the threshold ("no effect of practical size"). A published
//     effect that is itself inside the threshold cannot be judged so and stays inconclusive.
//   - ratio: confirmed where the whole interval is near it, within half of the published effect
//     or the threshold, and excludes no effect, and the effect is beyond the floor; contradicted
//     where the whole interval is outside of that and of the floor; else inconclusive.
//   - difference: the same with the paired absolute differences and 0.
//   - levels, the absolute figures themselves, are shown side by side and never
//     judged: they are another machine's. Check.Absolute says more.
//   - interaction: per block, the arm's difference less the sum of the other arms'
//     differences, in the metric's unit, judged like a direction and a difference.
//   - fact: what the arm reports of itself, compared letter by letter.
//   - bound: confirmed where the interval of the arm's metric, or of its ratio
//     to another arm's, keeps to its side, contradicted where it lies wholly
//     beyond. Threshold and floor are no part of it.
//
// A claim has the verdict of its first check, which is the published headline, or the
// gravest of several that decide together. It is contradicted, inconclusive or not
// comparable as its direction, fact or bound is. It is confirmed if its sizes agree too,
// confirmed in direction only if they disagree or stay open, and contradicted in size only
// if the direction is open and every published size contradicted. The other checks are
// judged beside it and counted. Each is at the level of its own interval, so among many
// one may be off by chance: that is why none of them decides.
//
// A goal, which the study's authors set themselves, is made of bounds. It held if all are
// confirmed, and failed if any is contradicted, each at its own level.
//
// Analyse is pure: equal runs give equal analyses. It starts nothing, reads
// nothing and prints nothing; lab/report does that.
package verdict

import (
	"fmt"
	"slices"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/sample"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/tally"
	"github.com/tarehq/tare/stats"
)

// Analysis is what a run says.
type Analysis struct {
	Manifest record.Manifest
	Headline string // the verdict in one sentence

	Workloads   []Workload // in the study's order; those with valid trials
	Claims      []Claim    // in the study's order
	Goals       []Goal     // likewise
	Resolutions []Resolution
	Accounts    []Account  // who spent what, of the workloads that arms were profiled under
	Accuracies  []Accuracy // what was attributed against what arms count themselves
	Trials      tally.Tally
	Warnings    []error // caveats of the run, to be shown with it

	primary []*Comparison // those decided on, within Workloads
	looks   []stats.Look
	begun   int  // planned blocks
	peeking bool // at an unfinished run
	lagging string
}

// Workload holds all comparisons of one workload.
type Workload struct {
	study.Workload
	Blocks  int     // most blocks in which an arm could be paired with the control
	Alpha   float64 // level of the intervals, from the look that Blocks reached
	Anytime bool    // the run goes on: the intervals hold whenever one looks
	Metrics []Metric
}

// Metric is one metric in one workload.
type Metric struct {
	study.Metric
	Primary    bool
	Instrument bool   // it describes the load generator or the host, not the arms: nothing is compared
	Withheld   string // why nothing may be shown; "" = it may

	Scale Scale
	Sizes
	FloorBy   string  // where the floor comes from; "" = nowhere
	Unfloored bool    // the twin has too few valid trials for a floor, and nothing else gives one
	Levels    []Level // every arm, the control included, in the study's order
	Compared  []Comparison
	Twin      *Comparison // the control's twin against the control; nil without one
	Ranking   *Ranking    // nil with fewer than four arms
	Slope     *Slope      // nil without a scale of at least three positions

	twinFloor float64 // the run's own floor, whatever calibration says
	twinned   int     // blocks that had both the control and its twin
}

// Level is a cell's sample of a metric.
type Level struct {
	Arm    string  `json:"arm"`
	Twin   bool    `json:"twin,omitzero"`
	N      int     `json:"n"`
	Median float64 `json:"median"`
	Least  float64 `json:"resolution,omitzero"` // what is less may be none; 0 = exact
	Points []Point `json:"-"`                   // in the order of the blocks
}

// Point is one measurement.
type Point struct {
	Block int
	Value float64
}

// Analyse turns a run into its analysis. It is an error if the study's looks
// cannot be, not if there is little to analyse: then the analysis says so.
func Analyse(run *record.Run) (*Analysis, error) {
	looks, err := stats.LooksAt(run.Manifest.Study.Looks, run.Manifest.Early...)
	if err != nil {
		return nil, fmt.Errorf("analysing run %s: %w", run.Manifest.ID, err)
	}
	s := &run.Manifest.Study
	an := &analyser{study: s, manifest: &run.Manifest, looks: looks, begun: record.PlannedBlocks(run.Trials), valid: validTrials(run.Trials),
		peeking: run.Manifest.Outcome == "" || run.Manifest.Outcome == "interrupted"}
	an.rounds = an.ofRounds(run.Captures)
	a := &Analysis{Manifest: run.Manifest, looks: looks, begun: an.begun, peeking: an.peeking, Trials: tally.Of(run.Trials), lagging: Lagging(s, run.Trials)}
	a.Warnings = append(a.Warnings, run.Warnings...)
	for _, text := range run.Manifest.Warnings {
		a.Warnings = append(a.Warnings, fmt.Errorf("%s", text))
	}
	for _, w := range s.Workloads {
		if an.has(w.Name) {
			a.Workloads = append(a.Workloads, an.workload(w))
		}
	}
	a.decide()
	for _, c := range s.Claims {
		a.Claims = append(a.Claims, an.claim(c, a))
	}
	for _, g := range s.Goals {
		a.Goals = append(a.Goals, an.goal(g, a))
	}
	a.Resolutions = a.resolve()
	a.Accounts, a.Accuracies = accounts(run), accuracies(run)
	a.Warnings = slices.Concat(a.Warnings, a.caveats(), tally.Uneven(run.Trials, s.Control), sample.UnlikeLate(s, run.Trials), lost(run.Captures))
	a.Headline = a.headline()
	return a, nil
}

// Workload returns the workload of that name, nil where it has no valid trial.
func (a *Analysis) Workload(name string) *Workload {
	for i := range a.Workloads {
		if a.Workloads[i].Name == name {
			return &a.Workloads[i]
		}
	}
	return nil
}

// Metric returns the metric of that name, nil where no valid trial has it.
func (w *Workload) Metric(name string) *Metric {
	for i := range w.Metrics {
		if w.Metrics[i].Name == name {
			return &w.Metrics[i]
		}
	}
	return nil
}

// Against returns the comparison of arm with the control, nil where there is
// none.
func (m *Metric) Against(arm string) *Comparison {
	for i := range m.Compared {
		if m.Compared[i].Arm == arm {
			return &m.Compared[i]
		}
	}
	return nil
}

// Level returns the sample of arm (not of its twin), nil where there is none.
func (m *Metric) Level(arm string) *Level {
	for i := range m.Levels {
		if m.Levels[i].Arm == arm && !m.Levels[i].Twin {
			return &m.Levels[i]
		}
	}
	return nil
}

// Primary returns the study's primary metric in its workload, nil where no
// valid trial has it.
func (a *Analysis) Primary() *Metric {
	if w := a.Workload(a.Manifest.Study.Primary.Workload); w != nil {
		return w.Metric(a.Manifest.Study.Primary.Metric)
	}
	return nil
}

// analyser holds what the parts of an analysis are made from.
type analyser struct {
	study    *study.Study
	manifest *record.Manifest
	looks    []stats.Look
	valid    trials
	rounds   *analyser // of captures; nil in itself
	begun    int       // planned blocks, or rounds of captures
	peeking  bool      // at an unfinished run
}

func (an *analyser) workload(w study.Workload) Workload {
	out := an.basis(w)
	rounds := an.rounds.basis(w)
	for _, m := range an.study.Metrics() {
		switch {
		case m.Attributed && an.rounds.valid.measured(w.Name, m.Name):
			out.Metrics = append(out.Metrics, an.rounds.metric(&rounds, m))
		case an.valid.measured(w.Name, m.Name):
			out.Metrics = append(out.Metrics, an.metric(&out, m))
		}
	}
	return out
}

// lookAt is the look that n blocks reached; between two it is the next one,
// taken early, and beyond the last it is the last.
func lookAt(looks []stats.Look, n int) stats.Look {
	for _, l := range looks {
		if n <= l.Blocks {
			return l
		}
	}
	return looks[len(looks)-1]
}

func (an *analyser) metric(w *Workload, sm study.Metric) Metric {
	m := Metric{Metric: sm}
	p := an.study.Primary
	m.Primary = p.Metric == sm.Name && p.Workload == w.Name
	m.Instrument = an.study.Instrumental(sm.Name)
	m.Scale = an.valid.scale(w.Name, sm)
	if m.Withheld = an.valid.tooFew(w.Name, sm); m.Withheld != "" {
		return m
	}
	control := cell{w.Name, an.study.Control, false}
	for _, arm := range an.study.ArmsOf(w.Workload) {
		m.Levels = an.appendLevel(m.Levels, cell{w.Name, arm.Name, false}, sm.Name)
	}
	m.Levels = an.appendLevel(m.Levels, control.asTwin(), sm.Name)
	an.setSizes(&m, w)
	if m.Instrument {
		return m
	}
	for _, arm := range an.study.ArmsOf(w.Workload) {
		if arm.Name == an.study.Control {
			continue
		}
		if c := an.compare(w, &m, cell{w.Name, arm.Name, false}, control); c.N > 0 {
			m.Compared = append(m.Compared, c)
		}
	}
	if twin := an.compare(w, &m, control.asTwin(), control); twin.N > 0 {
		m.Twin = &twin
	}
	m.Ranking = an.rank(w, &m)
	m.Slope = an.slope(w, &m)
	return m
}

func (an *analyser) appendLevel(levels []Level, c cell, metric string) []Level {
	points := an.valid.points(c, metric)
	if len(points) == 0 {
		return levels
	}
	l := Level{Arm: c.arm, Twin: c.twin, N: len(points), Median: stats.Median(values(points)), Points: points}
	if metric == "residual_cpu" {
		l.Least = float64(record.Unsure) / float64(max(1, an.valid[c][points[0].Block].Requests))
	}
	return append(levels, l)
}
