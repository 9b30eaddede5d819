package adviseverb

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tarehq/tare/cmd/tare/internal/runs"
	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/studies"
)

// evidence is what was measured: in runs kept here, and elsewhere.
type evidence struct {
	runs    map[string][]*verdict.Analysis // by study, the newest first
	results map[string]studies.Result      // by published claim
	machine string                         // this one's processor; "" = not known
	studies map[string]*study.Study        // those that there are, by name
	broken  []error                        // runs that cannot be read
}

// gather reads the runs in a folder of the studies that parts ask.
func gather(ctx context.Context, dir string) (*evidence, error) {
	e := &evidence{runs: map[string][]*verdict.Analysis{}, studies: map[string]*study.Study{}}
	all, err := studies.All()
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		e.studies[s.Name] = s
	}
	if e.results, err = studies.Results(); err != nil {
		return nil, err
	}
	wanted := map[string]bool{layers: true}
	for _, p := range parts() {
		wanted[p.speed.study], wanted[p.memory.study] = true, true
	}
	kept, err := record.List(dir) // the newest first
	if err != nil {
		return nil, err
	}
	for _, s := range kept {
		if s.Err != nil {
			e.broken = append(e.broken, fmt.Errorf("%s: %w", s.Dir, s.Err))
			continue
		}
		if !wanted[s.Study] {
			continue
		}
		_, a, err := runs.Open(s.Dir)
		if err != nil {
			e.broken = append(e.broken, err)
			continue
		}
		e.runs[s.Study] = append(e.runs[s.Study], a)
	}
	if len(e.runs) > 0 {
		e.machine = processor(runs.Environment(ctx))
	}
	return e, nil
}

// processor is what a machine's facts say that it has; "" = nothing.
func processor(facts []record.Fact) string {
	for _, f := range facts {
		if f.Name == "cpu" {
			return f.Value
		}
	}
	return ""
}

// measured is a question's metric as the newest run has it that answers it; nil if none does.
type measured struct {
	run    *verdict.Analysis
	metric *verdict.Metric
}

func (e *evidence) answer(q question) *measured {
	for _, a := range e.runs[q.study] {
		w := a.Workload(cmp.Or(q.workload, a.Manifest.Study.Primary.Workload))
		if w == nil {
			continue
		}
		if m := w.Metric(q.metric); m != nil && m.Withheld == "" {
			return &measured{a, m}
		}
	}
	return nil
}

// effect is an arm's difference from the control on the metric's scale, with its interval,
// where less is better; ok is false if there is no run or it compares no such arm.
func (m *measured) effect(arm string) (e verdict.Estimate, ok bool) {
	if m == nil {
		return e, false
	}
	if arm == m.run.Manifest.Study.Control {
		return e, m.metric.Level(arm) != nil
	}
	c := m.metric.Against(arm)
	if c == nil || c.Withheld != "" || c.N == 0 || !c.Effect.Interval.Bounded() {
		return e, false
	}
	e = verdict.Estimate{Value: c.Effect.Effect, Interval: c.Effect.Interval}
	if m.metric.Higher {
		e.Value, e.Interval.Lo, e.Interval.Hi = -e.Value, -e.Interval.Hi, -e.Interval.Lo
	}
	return e, true
}

// Reason is why something is chosen or not.
type Reason struct {
	Says string `json:"says"`
	// Run is the one whose figure Says rests on; "" where it rests on none.
	Run     string `json:"run,omitzero"`
	Machine string `json:"machine,omitzero"` // that made the run
	// Elsewhere is whether that is another machine than this, or not known to be this.
	Elsewhere bool `json:"elsewhere,omitzero"`
	// Published is the claim of which Says holds the figures, which nobody measured here; "" =
	// they are none of a claim.
	Published string `json:"published,omitzero"`
}

// spans say the reason, and whether its figures were measured here, elsewhere, or only
// published.
func (r Reason) spans() doc.Spans {
	var from string
	switch {
	case r.Published != "":
		from = "only published: claim " + r.Published
	case r.Run == "":
		return doc.Plain(r.Says)
	case r.Elsewhere:
		from = "measured elsewhere, " + cmp.Or(r.Machine, "machine not known") + ": run " + r.Run
	default:
		from = "measured here: run " + r.Run
	}
	return append(doc.Plain(r.Says), doc.Span{Text: " (" + from + ")", Tone: doc.Muted})
}

// reason is one that rests on this run.
func (e *evidence) reason(m *measured, format string, args ...any) Reason {
	machine := processor(m.run.Manifest.Env)
	return Reason{
		Says: fmt.Sprintf(format, args...), Run: m.run.Manifest.ID, Machine: machine,
		Elsewhere: machine == "" || machine != e.machine,
	}
}

// figure is an arm's difference from the control in words.
func (m *measured) figure(arm string) string {
	control := m.run.Called(m.run.Manifest.Study.Control)
	c := m.metric.Against(arm)
	if c == nil {
		return fmt.Sprintf("%s is what the others are compared with: %s %s", control, m.metric.Title, m.level(arm))
	}
	return fmt.Sprintf("%s %s against %s, %s %s, n=%d", m.metric.Title, c.Figure(), control, c.Difference.Called(), c.Range(), c.N)
}

// level is an arm's median in words.
func (m *measured) level(arm string) string {
	l := m.metric.Level(arm)
	if l == nil {
		return "not measured"
	}
	return fmt.Sprintf("%s, n=%d", verdict.Show(m.metric.Metric, l.Median), l.N)
}

// elsewhere are reasons that rest on claims: of each that was measured elsewhere what was
// published, by its first figure, and then what was measured of that.
func (e *evidence) elsewhere(claims []string) []Reason {
	var all []Reason
	for _, id := range claims {
		r := e.results[id]
		i := slices.IndexFunc(r.Checks, func(k studies.Outcome) bool { return k.Measured != "" })
		if i < 0 {
			continue
		}
		k := &r.Checks[i]
		m, _ := study.MetricNamed(k.Metric)
		says := m.Title
		if k.Rule.Against != "" {
			says += fmt.Sprintf(" of %s against %s", k.Rule.Arm, k.Rule.Against)
		}
		says += " " + k.Measured
		if k.Interval != "" {
			says += ", " + k.Interval
		}
		all = append(all, Reason{Says: k.Says, Published: id}, Reason{Says: says, Run: r.Run, Machine: r.Machine, Elsewhere: true})
	}
	return all
}
