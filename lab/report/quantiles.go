package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/report/chart"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats/hist"
	"github.com/tarehq/tare/stats/unit"
)

const (
	// quantilePoints is how many places a curve is drawn through.
	quantilePoints = 48
	// behind is how many requests of a trial must lie beyond a quantile for it
	// to be shown: p99.9 takes 10,000.
	behind = 10
	// mostShaded is the number of arms up to which each has its spread shown;
	// of more only the control has.
	mostShaded = 4
)

// spectrum is an arm's response times: all its trials in one, and each for
// itself at the places of the curve.
type spectrum struct {
	arm    string
	merged *hist.Hist
	trials [][]int64 // by place
	limit  float64   // the place up to which every trial counts
}

// quantileBlocks draw the response times of a workload by quantile, a line an arm, and
// have the figures in a table.
func quantileBlocks(run *record.Run, w *verdict.Workload, arms []string) []doc.Block {
	fewest := fewestRequests(run, w.Name)
	if fewest < 10*behind { // not even p90
		return nil
	}
	places := chart.Places(fewest/behind, quantilePoints)
	var all []spectrum
	missing := ""
	for _, arm := range arms {
		s, err := newSpectrum(run, w.Name, arm, places)
		if err != nil && missing == "" {
			missing = err.Error()
		}
		all = append(all, s)
	}
	blocks := []doc.Block{doc.Heading{Level: 3, Text: "Response time by quantile"}}
	if missing != "" {
		blocks = append(blocks, doc.Warning{Text: doc.Plain("Histograms are missing: " + missing)})
	}
	if !slices.ContainsFunc(all, func(s spectrum) bool { return s.merged.Count() > 0 }) {
		if missing == "" {
			return nil
		}
		return blocks
	}
	highest := places[len(places)-1]
	note := "From the intended start, all trials of an arm together; both axes are logarithmic. Shaded: the middle half of the trials of each arm."
	if len(all) > mostShaded {
		note = strings.Replace(note, "each arm", all[0].arm, 1)
	}
	if slices.ContainsFunc(all, func(s spectrum) bool { return s.limit < highest }) {
		note += " Dotted, and in brackets: in some trials the generator’s own lag was more than a tenth of the response time there, so it is not the arm’s alone."
	}
	if m := w.Metric("response_p50"); m != nil && slices.ContainsFunc(m.Compared, func(c verdict.Comparison) bool { return c.Withheld != "" }) {
		note += " The arms answered at different rates: what follows describes each of them and compares none."
	}
	return append(blocks, doc.Note(note), drawQuantiles(all, places), quantileTable(all, highest))
}

// fewestRequests is the least of a workload's valid trials, 0 without a run.
func fewestRequests(run *record.Run, workload string) float64 {
	if run == nil {
		return 0
	}
	fewest := math.Inf(1)
	for _, t := range run.Trials {
		if counts(&t) && t.Workload == workload {
			fewest = min(fewest, float64(t.Requests))
		}
	}
	if math.IsInf(fewest, 1) {
		return 0
	}
	return fewest
}

func counts(t *record.Trial) bool { return len(t.Invalid) == 0 && t.Block >= 0 }

// newSpectrum reads an arm's trials one by one, since they are large.
func newSpectrum(run *record.Run, workload, arm string, places []float64) (spectrum, error) {
	s := spectrum{arm: arm, merged: hist.New(), trials: make([][]int64, len(places)), limit: math.Inf(1)}
	var first error
	for _, t := range run.Trials {
		if !counts(&t) || t.Workload != workload || t.Arm != arm {
			continue
		}
		h, err := run.Histograms(t)
		if err != nil {
			if first == nil {
				first = err
			}
			continue
		}
		if h.Response == nil || h.Response.Count() == 0 {
			continue
		}
		s.limit = min(s.limit, limit(&t))
		s.merged.Merge(h.Response)
		for i, place := range places {
			s.trials[i] = append(s.trials[i], h.Response.Quantile(chart.QuantileAt(place)))
		}
	}
	return s, first
}

// limit is the place up to which a trial's response times are the arm's: a
// quantile that its requests suffice for, and that it has not, was left out
// for the generator's lag.
func limit(t *record.Trial) float64 {
	held := math.Inf(-1)
	for _, s := range shown {
		m, known := study.MetricNamed(s.metric)
		if !known || t.Requests < uint64(m.Requests) {
			break
		}
		if _, ok := t.Metrics[s.metric]; !ok {
			return held
		}
		held = chart.PlaceOf(s.q) + 1e-9
	}
	return math.Inf(1)
}

func drawQuantiles(all []spectrum, places []float64) doc.Figure {
	lines := make([]chart.Spectrum, len(all))
	for i, s := range all {
		lines[i] = chart.Spectrum{Name: s.arm, Class: chart.Hue(i), Limit: s.limit}
		if s.merged.Count() == 0 {
			continue
		}
		for _, place := range places {
			lines[i].Times = append(lines[i].Times, s.merged.Quantile(chart.QuantileAt(place)))
		}
		if i == 0 || len(all) <= mostShaded {
			lines[i].Trials = s.trials
		}
	}
	plot, legend := chart.Quantiles(lines, places)
	plot.Title = "Response time by quantile"
	plot.Desc = fmt.Sprintf("One line an arm, all its trials together; the time grows from bottom to top, the quantile from left to right. "+
		"The table below has the figures. Drawn as far as %d requests of every trial lie beyond.", behind)
	plot.X = quantileTicks(chart.Axis{Lo: places[0], Hi: places[len(places)-1], Span: chart.Across})
	labels := slices.Clone(legend)
	chart.Spread(labels, chart.QuantilesHeight)
	return drawn(plot.Title, `<div class="chart"><div class="zoom"><div>`+plot.SVG()+"</div></div>"+chart.Names(labels, plot.Height)+"</div>"+chart.Legend(legend))
}

// shown are the quantiles that have names.
var shown = [...]struct {
	q            float64
	name, metric string
}{
	{0.5, "p50", "response_p50"}, {0.9, "p90", "response_p90"}, {0.95, "p95", "response_p95"}, {0.99, "p99", "response_p99"},
	{0.999, "p99.9", "response_p999"}, {0.9999, "p99.99", "response_p9999"}, {0.99999, "p99.999", ""},
}

// quantileTicks label the named quantiles, in percent of the width.
func quantileTicks(x chart.Axis) []chart.Tick {
	var ticks []chart.Tick
	for _, s := range shown {
		if place := chart.PlaceOf(s.q); place <= x.Hi+1e-9 {
			ticks = append(ticks, chart.Tick{At: x.At(place) / (chart.Across / 100), Text: s.name})
		}
	}
	return ticks
}

// quantileTable has the curves' figures at the named quantiles.
func quantileTable(all []spectrum, highest float64) doc.Table {
	ns := study.Metric{Unit: unit.Nanoseconds}
	t := doc.Table{Caption: "Response time by quantile, figures", Unlabelled: true, Columns: []doc.Column{{Head: "arm", Key: true}, {Head: "requests", Right: true}}}
	for _, s := range shown {
		if chart.PlaceOf(s.q) <= highest+1e-9 {
			t.Columns = append(t.Columns, doc.Column{Head: s.name, Right: true})
		}
	}
	for _, s := range all {
		if s.merged.Count() == 0 {
			continue
		}
		cells := doc.Cells(s.arm, unit.Number(float64(s.merged.Count())))
		for _, q := range shown[:len(t.Columns)-2] {
			text := verdict.Show(ns, float64(s.merged.Quantile(q.q)))
			if chart.PlaceOf(q.q) > s.limit {
				text = "(" + text + ")"
			}
			cells = append(cells, doc.Cell{Text: text})
		}
		t.Rows = append(t.Rows, doc.Row{Cells: cells})
	}
	return t
}
