package report

import (
	"cmp"
	"math"

	"github.com/tarehq/tare/internal/secret"
	"github.com/tarehq/tare/lab/layers"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/lab/verdict/estimate"
)

func newDocument(a *verdict.Analysis) document {
	m := &a.Manifest
	p := a.Progress()
	d := document{
		Schema: JSONSchema, ID: m.ID, Study: m.Study.Name, Title: m.Study.Title, Quick: m.Quick, Seed: m.Seed,
		Started: m.Started, Ended: m.Ended, Outcome: m.Outcome, Command: secret.MaskAll(m.Command), Tare: m.Tare,
		Headline: a.Headline, Decided: a.Decided(), Control: m.Study.Control,
		Progress: progress{p.Blocks, p.Look.Blocks, p},
		Trials:   a.Trials, Layers: layers.Of(a), Accounts: a.Accounts, Accuracy: a.Accuracies,
		Workloads: make([]workloadOut, 0, len(a.Workloads)), Claims: make([]claimOut, 0, len(a.Claims)),
		Pinning: m.Pinning, Env: m.Env, LeftOut: m.LeftOut, Code: m.Code, SelfTest: m.SelfTest, Warnings: messages(a.Warnings),
	}
	for _, w := range a.Workloads {
		out := workloadOut{Name: w.Name, Rate: m.Rates[w.Name], Blocks: w.Blocks, Alpha: w.Alpha}
		for i := range w.Metrics {
			metric := newMetric(&w.Metrics[i])
			if c := w.Metrics[i].Compared; len(c) > 0 && c[0].Alpha != w.Alpha {
				metric.Alpha = c[0].Alpha
			}
			out.Metrics = append(out.Metrics, metric)
		}
		d.Workloads = append(d.Workloads, out)
	}
	for i := range a.Claims {
		d.Claims = append(d.Claims, newClaim(&a.Claims[i]))
	}
	for i := range a.Goals {
		d.Goals = append(d.Goals, newGoal(&a.Goals[i]))
	}
	return d
}

func newMetric(m *verdict.Metric) metricOut {
	out := metricOut{
		Name: m.Name, Unit: m.Unit, Primary: m.Primary, Instrument: m.Instrument, Withheld: m.Withheld,
		Scale: m.Scale, FloorBy: m.FloorBy,
	}
	if m.Withheld != "" {
		return out
	}
	out.Band, out.Threshold = onScaleOf(m.Scale, m.Band()), onScaleOf(m.Scale, m.Threshold)
	if m.FloorBy != "" {
		out.Floor = onScaleOf(m.Scale, m.Floor)
	}
	for i := range m.Levels {
		level := levelOut{Level: &m.Levels[i]}
		for _, p := range level.Points {
			level.Values, level.Blocks = append(level.Values, p.Value), append(level.Blocks, p.Block)
		}
		out.Arms = append(out.Arms, level)
	}
	for i := range m.Compared {
		out.Compared = append(out.Compared, *newComparison(&m.Compared[i]))
	}
	out.Twin = newComparison(m.Twin)
	if m.Ranking != nil && m.Ranking.Needs == 0 {
		out.Ranks = m.Ranking.Ranks
	}
	if s := m.Slope; s != nil && s.N > 0 {
		out.Slope = &slopeOut{Arms: s.Arms, N: s.N, Slope: verdict.Estimate{Value: s.Slope, Interval: s.Interval, Level: estimate.Level(s.Alpha)}, Warnings: messages(s.Warnings)}
	}
	return out
}

// onScaleOf turns what is on the scale into a relative change or leaves it.
func onScaleOf(s verdict.Scale, v float64) *float64 {
	if s == verdict.Ratio {
		v = math.Expm1(v)
	}
	return estimate.Finite(v)
}

func newComparison(c *verdict.Comparison) *comparisonOut {
	if c == nil {
		return nil
	}
	out := &comparisonOut{
		Arm: c.Arm, Against: c.Against, N: c.N, ArmMedian: c.ArmMedian, AgainstMedian: c.AgainstMedian,
		Verdict: c.Verdict, Word: c.Word(), Needs: c.Needs, Family: c.Family, Note: c.Note, Withheld: c.Withheld,
	}
	if c.Withheld != "" {
		return out
	}
	out.P, out.DecidedBy, out.Heaps = c.Effect.P, new(c.Deciding()), c.Heaps
	if c.Heaps != "" {
		out.Paired = c.Paired
	}
	out.Difference = &c.Difference
	if e, ok := c.Relative(); ok {
		out.Change = &e
	}
	return out
}

func newClaim(c *verdict.Claim) claimOut {
	out := claimOut{c, make([]checkOut, 0, len(c.Checks))}
	for i := range c.Checks {
		out.Checks = append(out.Checks, newCheck(&c.Checks[i]))
	}
	return out
}

func newCheck(r *verdict.CheckResult) checkOut {
	out := checkOut{
		Check: r.Check, PublishedRatio: cmp.Or(r.PublishedRatio, declared(r.Check.PublishedRatio)),
		PublishedDifference: cmp.Or(r.PublishedDifference, declared(r.Check.PublishedDifference)),
		Measured:            newComparison(r.Comparison), Reported: r.Reported, Direction: r.Direction, Ratio: r.Ratio,
		Difference: r.Difference, Levels: r.Levels, Holds: r.Holds,
	}
	if out.Kind == study.Effect || out.Kind == study.Interaction || out.BoundRatio != nil {
		out.Against = r.Against
	}
	out.Estimate = r.Measured
	if out.Measured != nil && out.Measured.DecidedBy != nil {
		out.Measured.DecidedBy = new(r.Deciding())
	}
	return out
}

// declared is a check's own figure, or 0. What is worked out hides it, also where nothing could be judged.
func declared(figure *float64) float64 {
	if figure == nil {
		return 0
	}
	return *figure
}

func newGoal(g *verdict.Goal) goalOut {
	out := goalOut{g, make([]checkOut, 0, len(g.Checks))}
	for i := range g.Checks {
		check := newCheck(&g.Checks[i])
		check.Outcome = g.Checks[i].Outcome()
		out.Checks = append(out.Checks, check)
	}
	return out
}
