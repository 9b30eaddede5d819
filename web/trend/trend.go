// Package trend shows an arm's ratio to its control over the runs of a study.
package trend

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/lab/report/chart"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/unit"
	"github.com/tarehq/tare/web/history"
	"github.com/tarehq/tare/web/history/change"
	"github.com/tarehq/tare/web/links"
)

// Title is a metric's name for people.
func Title(metric string) string {
	if m, ok := study.MetricNamed(metric); ok {
		return m.Title
	}
	return metric
}

// Trend is an arm's ratio over the runs of a study.
type Trend struct {
	of      history.Choice
	arm     string
	s       *history.Series
	at      []int           // places in s.Entries that have the arm
	changes []change.Change // At counts within at
	floor   float64         // the median of the runs' noise floors, relative; 0 = not known
}

// New follows an arm through a series, and looks for changes.
func New(of history.Choice, arm string, s *history.Series) *Trend {
	t := &Trend{of: of, arm: arm, s: s}
	values, at := s.Values(arm)
	t.at = at
	var floors []float64
	for _, i := range at {
		if f := s.Entries[i].Floor; f > 0 {
			floors = append(floors, f)
		}
	}
	if len(floors) > 0 {
		t.floor = stats.Median(floors)
	}
	t.changes = change.Find(values, change.Options{Floor: math.Log1p(t.floor)})
	return t
}

func (t *Trend) entry(i int) *history.Entry { return &t.s.Entries[t.at[i]] }

func (t *Trend) point(i int) *history.Point { return t.entry(i).Of(t.arm) }

// headline says where the arm is and whether it changed.
func (t *Trend) headline() string {
	if len(t.at) == 0 {
		return "Nothing to follow yet"
	}
	last := t.point(len(t.at) - 1)
	text := fmt.Sprintf("%s of %s: %s against %s", Title(t.of.Metric), t.arm, unit.Change(last.Value), t.entry(len(t.at)-1).Control)
	switch n := len(t.changes); {
	case n > 0:
		text += ", " + unit.Plural(n, "change") + " suspected over " + unit.Plural(len(t.at), "run")
	case len(t.at) >= leastFollowed:
		text += ", no change over " + unit.Plural(len(t.at), "run")
	}
	return text
}

// leastFollowed is the number of runs from which on a change can be found.
const leastFollowed = 8

// Blocks are the trend for people: where the arm is, a drawing, suspected changes, the runs.
func (t *Trend) Blocks() []doc.Block {
	out := []doc.Block{doc.Heading{Level: 1, Text: t.headline()}}
	if len(t.at) == 0 {
		return append(out, doc.Paragraph{Text: doc.Plain("No run has this arm.")})
	}
	if len(t.at) > 1 {
		out = append(out, t.figure())
	}
	out = append(out, t.changeBlocks()...)
	out = append(out, doc.Heading{Level: 2, Text: "Runs"}, t.table(),
		doc.Note("Each ratio is of one run's own blocks, so the machine's speed on that day does not matter. A change counts beyond the noise floor."))
	if n := len(t.s.Others); n > 0 {
		var list doc.List
		for _, r := range t.s.Others[:min(n, 20)] {
			form := ""
			if r.Quick {
				form = ", quick form"
			}
			list.Items = append(list.Items, doc.Plain(fmt.Sprintf("%s: control %s of build %s on %s%s", r.Name, r.Control, cmp.Or(short(r.Build), "unknown"), cmp.Or(r.Machine, "an unknown processor"), form)))
		}
		out = append(out, doc.Fold{Summary: unit.Plural(n, "run") + " excluded: another build of the control, another processor or another form", ID: "others", Blocks: []doc.Block{list}})
	}
	return out
}

func short(build string) string { return build[:min(12, len(build))] }

// changeBlocks name the suspected changes, and how to confirm one.
func (t *Trend) changeBlocks() []doc.Block {
	out := []doc.Block{doc.Heading{Level: 2, Text: "Suspected changes"}}
	if len(t.changes) == 0 {
		text := "None was found."
		if len(t.at) < leastFollowed {
			text = fmt.Sprintf("A change can be found from %d runs on, and this arm has %d.", leastFollowed, len(t.at))
		}
		return append(out, doc.Paragraph{Text: doc.Plain(text)})
	}
	table := doc.Table{Caption: "Suspected changes", Unlabelled: true, Columns: []doc.Column{{Head: "first run after it", Key: true}, {Head: "commit"}, {Head: "before", Right: true}, {Head: "after", Right: true}, {Head: "looks like"}, {Head: "p", Right: true}, {Head: "runs beside it"}}}
	for _, c := range t.changes {
		e, before := t.entry(c.At), t.entry(c.At-1)
		table.Rows = append(table.Rows, doc.Row{Cells: []doc.Cell{links.Cell(links.Run(e.Name), e.Name), {Text: t.commitOf(c.At)}, {Text: unit.Change(math.Expm1(c.Before))}, {Text: unit.Change(math.Expm1(c.After))},
			{Text: string(c.Kind)}, {Text: strconv.FormatFloat(c.P, 'g', 2, 64)}, links.Cell(links.Compare(before.Name, e.Name), "compare")}})
	}
	last := t.entry(t.changes[len(t.changes)-1].At)
	return append(out, table, doc.Note("A suspected change is advice and never a verdict. Confirm it in fresh processes, both versions in one run. The run after it was made by:"),
		doc.Code{Text: cmp.Or(last.Command, "tare run "+last.Study)})
}

// commitOf is the commit of the arm, else the version of tare that made the run.
func (t *Trend) commitOf(i int) string {
	if c := t.point(i).Commit; c != "" {
		return c
	}
	return t.entry(i).Tare
}

// table lists the runs, the newest first.
func (t *Trend) table() doc.Table {
	table := doc.Table{Caption: Title(t.of.Metric) + " of " + t.arm + " as change against the control", Columns: []doc.Column{{Head: "run", Key: true}, {Head: "began", Right: true}, {Head: "commit"},
		{Head: "change", Right: true}, {Head: "interval"}, {Head: "blocks", Right: true}, {Head: "noise floor", Right: true}, {Head: "verdict"}}}
	for i := range slices.Backward(t.at) {
		e, p := t.entry(i), t.point(i)
		floor := "unknown"
		if e.Floor > 0 {
			floor = "±" + strings.TrimPrefix(unit.Change(e.Floor), "+")
		}
		table.Rows = append(table.Rows, doc.Row{Cells: []doc.Cell{links.Cell(links.Run(e.Name), e.Name), {Text: links.Date(e.Started)}, {Text: t.commitOf(i)}, {Text: unit.Change(p.Value)},
			{Text: Range(p)}, {Text: strconv.Itoa(p.Blocks)}, {Text: floor}, {Text: p.Word}}})
	}
	return table
}

// Range is a point's interval for people, with its level, such as "+1.2 to +3.0 % (99 %)".
func Range(p *history.Point) string {
	return fmt.Sprintf("%s (%s)", verdict.Changes(interval(p)), verdict.Confidence(p.Alpha))
}

// interval is a point's, with ends that are not bounded at infinity.
func interval(p *history.Point) stats.Interval {
	i := stats.Interval{Lo: math.Inf(-1), Hi: math.Inf(1)}
	if p.Lo != nil {
		i.Lo = *p.Lo
	}
	if p.Hi != nil {
		i.Hi = *p.Hi
	}
	return i
}

// plotHeight is that of the drawing, px; room is left of the runs, for the figures of the scale.
const (
	plotHeight = 260
	room       = 0.1 // of the runs' width
)

// figure draws the arm over the runs, which stand at equal distances, the noise floor as a
// band about no change, and where the series changed.
func (t *Trend) figure() doc.Figure {
	var e chart.Extent
	e.Add(0, -t.floor, t.floor)
	for i := range t.at {
		p := t.point(i)
		e.Add(p.Value, interval(p).Lo, interval(p).Hi)
	}
	y := e.Axis(0.08, plotHeight)
	n := float64(len(t.at))
	x := chart.Axis{Lo: -0.3 - room*n, Hi: n - 0.7, Span: chart.Across}
	plot := chart.Plot{Title: fmt.Sprintf("%s of %s over %s", Title(t.of.Metric), t.arm, unit.Plural(len(t.at), "run")), Height: plotHeight,
		Desc: "The change against the control by run, a vertical line for its interval, a band for the noise floor, and dashed lines where the series changed. The table below has the figures."}
	for _, v := range chart.Linear(y.Lo, y.Hi, 5) {
		if math.Abs(v) < (y.Hi-y.Lo)/1e6 {
			v = 0
		}
		plot.Y = append(plot.Y, chart.Tick{At: plotHeight - y.At(v), Text: unit.Change(v)})
	}
	every := max(1, (len(t.at)+5)/6)
	for i := 0; i < len(t.at); i += every {
		plot.X = append(plot.X, chart.Tick{At: x.At(float64(i)) / (chart.Across / 100), Text: t.entry(i).Started.UTC().Format("2 Jan")})
	}
	labels := []chart.Label{{Class: chart.Hue(1), Text: t.arm}}
	if t.floor > 0 {
		top, bottom := plotHeight-y.At(t.floor), plotHeight-y.At(-t.floor)
		plot.Areas = append(plot.Areas, chart.Curve{Class: "floor", D: fmt.Sprintf("M0 %.1fH%d V%.1fH0Z", top, chart.Across, bottom)})
	}
	line := chart.Trend{Class: chart.Hue(1)}
	for i := range t.at {
		p := t.point(i)
		line.Points = append(line.Points, chart.Estimate{X: float64(i), Value: p.Value, Interval: interval(p)})
	}
	area, lines := line.Draw(x, y)
	plot.Areas, plot.Lines = append(plot.Areas, area), lines
	for _, c := range t.changes {
		plot.Lines = append(plot.Lines, chart.Curve{Class: "change", D: fmt.Sprintf("M%.1f 0V%d", x.At(float64(c.At)-0.5), plotHeight)})
	}
	if len(t.changes) > 0 {
		labels = append(labels, chart.Label{Class: "change", Text: "suspected change"})
	}
	caption := "Change against the control, with its interval, by run"
	if t.floor > 0 {
		caption += "; the grey band is the noise floor, ±" + strings.TrimPrefix(unit.Change(t.floor), "+")
	}
	return doc.Figure{Alt: plot.Title, Caption: doc.Plain(caption), Drawing: doc.Markup(`<div class="zoom"><div>` + plot.SVG() + "</div></div>" + chart.Legend(labels))}
}
