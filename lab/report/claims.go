package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/lab/report/chart"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats/bound"
	"github.com/tarehq/tare/stats/unit"
)

// howClaims says what a verdict on a claim rests on.
const howClaims = "A claim has the verdict of its first check, the published headline; the others are parts of it, shown beside it. " +
	"Each is judged at the level of its workload's intervals, not corrected for multiple comparisons."

// howParts says what a verdict on a claim of several parts rests on.
const howParts = " Of a claim with several headlines all must hold; they share that level."

// howDecided says what the verdicts on claims rest on.
func howDecided(claims []verdict.Claim) string {
	if slices.ContainsFunc(claims, func(c verdict.Claim) bool { return c.Deciding > 1 }) {
		return howClaims + howParts
	}
	return howClaims
}

// claimsFold is what became of the published claims.
func claimsFold(a *verdict.Analysis) doc.Fold {
	if len(a.Claims) == 0 {
		return doc.Fold{}
	}
	var verdicts []verdict.Word
	for _, c := range a.Claims {
		verdicts = append(verdicts, c.Verdict)
	}
	f := doc.Fold{Summary: "Published claims: " + tallyOf(verdicts), ID: "claims", Blocks: []doc.Block{doc.Note(howDecided(a.Claims))}}
	for i := range a.Claims {
		c := &a.Claims[i]
		f.Blocks = append(f.Blocks, doc.Heading{Level: 3, Text: c.ID},
			doc.Paragraph{Text: doc.Spans{{Text: capital(string(c.Verdict)) + ". ", Strong: true, Tone: toneOf(c.Verdict)}, {Text: c.Sentence}}}, checksTable(c))
	}
	return f
}

// tallyOf counts verdicts: "2 confirmed, 1 contradicted".
func tallyOf[V ~string](verdicts []V) string {
	var order []V
	n := map[V]int{}
	for _, v := range verdicts {
		if n[v]++; n[v] == 1 {
			order = append(order, v)
		}
	}
	var texts []string
	for _, v := range order {
		texts = append(texts, fmt.Sprintf("%d %s", n[v], v))
	}
	return strings.Join(texts, ", ")
}

// checksTable has a claim's checks. Reasons that its sentence gives are not repeated.
func checksTable(c *verdict.Claim) doc.Table {
	t := doc.Table{Caption: "Checks of " + c.ID, Unlabelled: true, Columns: []doc.Column{
		{Head: "check", Key: true}, {Head: "published and measured, drawn", Drawn: true}, {Head: "published"}, {Head: "measured"}, {Head: "verdict"}}}
	if !slices.ContainsFunc(c.Checks, func(r verdict.CheckResult) bool { return claimBar(&r) != "" }) {
		t.Columns[1].Drawn = false
		t.Columns = slices.Delete(t.Columns, 1, 2)
	}
	said := c.Sentence
	for i := range c.Checks {
		r := &c.Checks[i]
		says := cmp.Or(r.Check.Says, string(r.Check.Kind))
		if i < c.Deciding && len(c.Checks) > 1 {
			says = "Headline: " + says
		}
		key := doc.Cell{Text: says}
		for _, f := range []verdict.Finding{r.Direction, r.Holds, r.Levels} {
			nothing := f.Verdict == verdict.Inconclusive && r.Comparison == nil && r.Measured == nil
			if (nothing || f.Verdict == verdict.NotComparable) && !strings.Contains(said, f.Reason) {
				key.Notes = append(key.Notes, f.Reason)
				said += f.Reason + "\n"
			}
		}
		cells := []doc.Cell{key, {Drawing: claimBar(r)}, {Text: publishedText(r)}, {Text: measuredText(r)}, findingsCell(r)}
		if len(t.Columns) == 4 {
			cells = slices.Delete(cells, 1, 2)
		}
		t.Rows = append(t.Rows, doc.Row{Cells: cells})
	}
	return t
}

// claimBar draws a published difference beside the measured one.
func claimBar(r *verdict.CheckResult) doc.Markup {
	c := r.Comparison
	if c == nil || c.Withheld != "" || r.Difference.Verdict == "" {
		return ""
	}
	var e chart.Extent
	e.Add(0, r.PublishedDifference, c.Difference.Value, c.Difference.Interval.Lo, c.Difference.Interval.Hi)
	b := chart.NewBar(chart.Effect{
		Value: c.Difference.Value, Interval: c.Difference.Interval, Published: &r.PublishedDifference,
	}, e.Axis(0.08, chart.Across))
	b.Label = "published " + verdict.ShowSigned(r.Metric, r.PublishedDifference) + ", measured " +
		verdict.ShowSigned(r.Metric, c.Difference.Value) + ", " + c.Difference.Called() + " " + verdict.SpanSigned(r.Metric, c.Difference.Interval)
	return doc.Markup(b.SVG())
}

// findingsCell has the verdicts on the parts that a check speaks of.
func findingsCell(r *verdict.CheckResult) doc.Cell {
	var cell doc.Cell
	var texts []string
	for _, p := range []struct {
		name string
		verdict.Finding
	}{{"direction", r.Direction}, {"ratio", r.Ratio}, {"difference", r.Difference}, {"absolute figures", r.Levels}, {string(r.Check.Kind), r.Holds}} {
		if p.Verdict == "" {
			continue
		}
		text := p.name + " " + string(p.Verdict)
		if more := p.More(); more != "" {
			text += " (~" + more + ")"
		}
		texts = append(texts, text)
		cell.Tone = cmp.Or(cell.Tone, toneOf(p.Verdict))
	}
	cell.Text = strings.Join(texts, " · ")
	return cell
}

// howGoals says what a verdict on a goal rests on.
const howGoals = "What the study's authors, not a publication, ask of its arms. A bound held or failed where the interval lies " +
	"wholly on one side of it, else it is inconclusive. That is not corrected for the number of bounds. A goal held where all its bounds did, and failed where one did."

// goalsFold is what became of the goals of the study.
func goalsFold(a *verdict.Analysis) doc.Fold {
	if len(a.Goals) == 0 {
		return doc.Fold{}
	}
	var outcomes []bound.Outcome
	for _, g := range a.Goals {
		outcomes = append(outcomes, g.Outcome)
	}
	f := doc.Fold{Summary: "Goals: " + tallyOf(outcomes), ID: "goals", Blocks: []doc.Block{doc.Note(howGoals)}}
	for i := range a.Goals {
		g := &a.Goals[i]
		t := doc.Table{Caption: "Bounds of: " + g.Says, Unlabelled: true, Columns: []doc.Column{
			{Head: "workload", Key: true}, {Head: "metric", Key: true}, {Head: "arm", Key: true}, {Head: "asked for"}, {Head: "measured"}, {Head: "outcome"}}}
		for j := range g.Checks {
			r := &g.Checks[j]
			outcome := doc.Cell{Text: string(r.Outcome()), Tone: toneOf(r.Outcome())}
			if more := r.Holds.More(); more != "" {
				outcome.Text += ", ~" + more
			}
			t.Rows = append(t.Rows, doc.Row{Cells: []doc.Cell{{Text: r.Check.Workload}, {Text: r.Metric.Title}, {Text: r.Check.Arm},
				{Text: publishedText(r)}, {Text: cmp.Or(measuredText(r), r.Holds.Reason)}, outcome}})
		}
		f.Blocks = append(f.Blocks, doc.Heading{Level: 3, Text: g.Says},
			doc.Paragraph{Text: doc.Spans{{Text: capital(string(g.Outcome)), Strong: true, Tone: toneOf(g.Outcome)}, {Text: ": " + g.Tally()}}}, t)
	}
	return f
}

// publishedText is what the claim says, in figures.
func publishedText(r *verdict.CheckResult) string {
	k := r.Check
	switch {
	case k.Kind == study.Fact:
		return k.Fact + " " + k.Value
	case k.Kind == study.Bound && k.BoundRatio != nil:
		return fmt.Sprintf("%s %s that of %s", k.Op, verdict.Times(*k.BoundRatio), r.Against)
	case k.Kind == study.Bound && k.Paired():
		return fmt.Sprintf("%s %s more than %s", k.Op, verdict.Show(r.Metric, *k.Bound), r.Against)
	case k.Kind == study.Bound && k.Bound != nil:
		return k.Op + " " + verdict.Show(r.Metric, *k.Bound)
	case k.PublishedDifference != nil:
		return verdict.ShowSigned(r.Metric, *k.PublishedDifference)
	case k.PublishedRatio != nil:
		return unit.Change(*k.PublishedRatio - 1)
	case k.PublishedArm == nil || k.PublishedAgainst == nil:
		return ""
	}
	text := fmt.Sprintf("%s against %s", verdict.Show(r.Metric, *k.PublishedArm), verdict.Show(r.Metric, *k.PublishedAgainst))
	if r.Difference.Verdict != "" {
		text += " (" + verdict.ShowSigned(r.Metric, r.PublishedDifference)
		if r.PublishedRatio > 0 {
			text += ", " + unit.Change(r.PublishedRatio-1)
		}
		text += ")"
	}
	return text
}

// measuredText is what this run says of the same.
func measuredText(r *verdict.CheckResult) string {
	switch {
	case r.Check.Kind == study.Fact && r.Reported != "":
		return r.Check.Fact + " " + r.Reported
	case r.Measured != nil && r.Check.BoundRatio != nil:
		return fmt.Sprintf("%s (%s %s)", verdict.Times(r.Measured.Value), r.Measured.Called(), verdict.SpanTimes(r.Measured.Interval))
	case r.Measured != nil && (r.Check.Kind == study.Interaction || r.Check.Paired()):
		return fmt.Sprintf("%s (%s %s)", verdict.ShowSigned(r.Metric, r.Measured.Value), r.Measured.Called(), verdict.SpanSigned(r.Metric, r.Measured.Interval))
	case r.Measured != nil:
		return fmt.Sprintf("%s (%s %s)", verdict.Show(r.Metric, r.Measured.Value), r.Measured.Called(), verdict.Span(r.Metric, r.Measured.Interval))
	case r.Comparison == nil:
		return ""
	}
	c := r.Comparison
	text := fmt.Sprintf("%s against %s", verdict.Show(r.Metric, c.ArmMedian), verdict.Show(r.Metric, c.AgainstMedian))
	if c.Withheld != "" {
		return text
	}
	text += " (" + verdict.ShowSigned(r.Metric, c.Difference.Value) + ", "
	if e, ok := c.Relative(); ok {
		text += e.Called() + " " + verdict.SpanSigned(r.Metric, c.Difference.Interval) + "; " + unit.Change(e.Value) + ", "
	}
	return text + r.Deciding().Text(c) + ")"
}
