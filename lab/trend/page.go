package trend

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/lab/report/chart"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/unit"
)

// plotHeight is that of the drawing, px.
const plotHeight = 260

// Page is the trend for people: a drawing, and the figures as a table, the newest run first.
func (t *Trend) Page() doc.Page {
	p := doc.Page{Title: "Trend of " + t.Study}
	p.Add(doc.Note(fmt.Sprintf("Study %s, workload %s, control %s", t.Study, t.Workload, t.Control)), doc.Heading{Level: 1, Text: t.Headline()})
	runs := t.runs()
	if len(runs) > 1 {
		p.Add(t.figure(runs))
	}
	table := doc.Table{Caption: t.Metric.Title + " as change against the control", Columns: []doc.Column{{Head: "run", Key: true}, {Head: "arm"}, {Head: "change", Right: true},
		{Head: "interval"}, {Head: "blocks", Right: true}, {Head: "verdict"}, {Head: "control", Optional: true}, {Head: "control’s build", Optional: true}}}
	tones := map[stats.Verdict]doc.Tone{stats.Faster: doc.Good, stats.Slower: doc.Bad}
	for _, run := range slices.Backward(runs) {
		for _, x := range t.Points {
			if x.Run != run {
				continue
			}
			cells := doc.Cells(run, x.Arm, unit.Change(x.Change.Value), x.Deciding.Text(&verdict.Comparison{Scale: verdict.Ratio}),
				strconv.Itoa(x.Blocks), x.Word, x.Control, x.Baseline[:min(12, len(x.Baseline))])
			cells[5].Tone = tones[x.Verdict]
			table.Rows = append(table.Rows, doc.Row{Cells: cells})
		}
	}
	p.Add(table, doc.Note("Each ratio is of one run's own blocks. Where the control's build differs between runs, part of a change may be the control's."))
	if len(t.LeftOut) > 0 {
		var list doc.List
		for _, l := range t.LeftOut {
			list.Items = append(list.Items, doc.Plain(l.Run+": "+l.Why))
		}
		p.Add(doc.Fold{Summary: unit.Plural(len(t.LeftOut), "run") + " of the study not shown", Blocks: []doc.Block{list}})
	}
	return p
}

// runs are the runs in order, each once.
func (t *Trend) runs() []string {
	var all []string
	for _, p := range t.Points {
		if len(all) == 0 || all[len(all)-1] != p.Run {
			all = append(all, p.Run)
		}
	}
	return all
}

// figure draws the arms over the runs, which stand at equal distances. The y axis holds the
// values and their bounded intervals.
func (t *Trend) figure(runs []string) doc.Figure {
	var e chart.Extent
	e.Add(0)
	for _, p := range t.Points {
		e.Add(p.Change.Value, p.Change.Interval.Lo, p.Change.Interval.Hi)
	}
	y := e.Axis(0.08, plotHeight)
	x := chart.Axis{Lo: -0.3, Hi: float64(len(runs)) - 0.7, Span: chart.Across}
	plot := chart.Plot{Title: t.Metric.Title + " over " + unit.Plural(len(runs), "run"), Height: plotHeight,
		Desc: "For each arm the change against the control, a vertical line for its interval, and the area between the intervals' ends."}
	for _, v := range chart.Linear(y.Lo, y.Hi, 5) {
		if math.Abs(v) < (y.Hi-y.Lo)/1e6 {
			v = 0
		}
		plot.Y = append(plot.Y, chart.Tick{At: plotHeight - y.At(v), Text: unit.Change(v)})
	}
	every := max(1, (len(runs)+5)/6)
	for i := 0; i < len(runs); i += every {
		plot.X = append(plot.X, chart.Tick{At: x.At(float64(i)) / (chart.Across / 100), Text: t.dayOf(runs[i])})
	}
	var labels []chart.Label
	for i, arm := range t.Arms {
		line := chart.Trend{Class: chart.Hue(i + 1)}
		for _, p := range t.Of(arm) {
			line.Points = append(line.Points, chart.Estimate{X: float64(slices.Index(runs, p.Run)), Value: p.Change.Value, Interval: p.Change.Interval})
		}
		area, lines := line.Draw(x, y)
		plot.Areas, plot.Lines = append(plot.Areas, area), append(plot.Lines, lines...)
		labels = append(labels, chart.Label{Class: line.Class, Text: arm})
	}
	return doc.Figure{Alt: plot.Title, Caption: doc.Plain("Change against the control, with its interval, by run"), Drawing: doc.Markup(plot.SVG() + chart.Legend(labels))}
}

func (t *Trend) dayOf(run string) string {
	i := slices.IndexFunc(t.Points, func(p Point) bool { return p.Run == run })
	return t.Points[i].Started.UTC().Format("2 Jan")
}
