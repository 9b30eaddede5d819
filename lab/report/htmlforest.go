package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tarehq/tare/lab/report/chart"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/unit"
)

// forest is the drawing of one metric's effects, a row an arm.
type forest struct {
	Title, Role, Band, Floor string
	Confidence               string
	Better                   string // which way is better
	Ticks                    []chart.Tick
	Rows                     []forestRow
	Notes                    []string
	order                    int
}

type forestRow struct {
	Name, Title   string
	Median        string
	Trials        int // that the median is of
	Figure, Range string
	N             int // of the comparison: blocks
	Verdict       mark
	Needs         string // or why there is no verdict
	Bar           *chart.Bar
}

// mark is a verdict as a symbol, a word and a class of the style sheet.
type mark struct{ Symbol, Word, Class string }

func markFor(c *verdict.Comparison) mark {
	return mark{markOf(c), c.Word(), classOf(c)}
}

func classOf(c *verdict.Comparison) string {
	switch {
	case c.Withheld != "":
		return "none"
	case c.Verdict == stats.Faster:
		return "better"
	case c.Verdict == stats.Slower:
		return "worse"
	case c.Verdict == stats.Inconclusive:
		return "open"
	}
	return "same"
}

// inFull says whether a metric is drawn: what decides, what resolves best, and
// the response times that are asked about most.
func inFull(a *verdict.Analysis, w *verdict.Workload, m *verdict.Metric) bool {
	if m.Withheld != "" || m.Instrument || len(m.Compared) == 0 {
		return false
	}
	return forestOrder(a, w, m) < last
}

// last is the order of what is not drawn.
const last = 5

func forestOrder(a *verdict.Analysis, w *verdict.Workload, m *verdict.Metric) int {
	switch {
	case m.Primary:
		return 0
	case m.Name == fallback(a, w):
		return 1
	case m.Name == "loop_time":
		return 2
	case m.Name == "response_p50":
		return 3
	case m.Name == "response_p99":
		return 4
	}
	return last
}

func newForest(a *verdict.Analysis, w *verdict.Workload, m *verdict.Metric) forest {
	f := forest{
		Title: m.Title, Role: "descriptive", Band: unbroken(m.BandText()), Confidence: verdict.Confidence(w.Alpha),
		Better: "left is better", order: forestOrder(a, w, m), Notes: notesOf(m),
	}
	if m.Primary {
		f.Role = "primary"
	}
	if m.Higher {
		f.Better = "right is better"
	}
	if m.FloorBy != "" {
		f.Floor = unbroken(fmt.Sprintf("noise floor %s, by %s", m.FloorText(), m.FloorBy))
	}
	x := forestAxis(m)
	f.Ticks = effectTicks(x, m)
	for _, l := range m.Levels {
		f.Rows = append(f.Rows, newForestRow(a, m, l, x))
	}
	return f
}

// forestAxis holds all intervals, the band and no effect.
func forestAxis(m *verdict.Metric) chart.Axis {
	var e chart.Extent
	e.Add(0, m.Band(), -m.Band())
	for _, l := range m.Levels {
		if c := comparison(m, l); c != nil && c.Withheld == "" {
			e.Add(c.Effect.Effect, c.Effect.Interval.Lo, c.Effect.Interval.Hi)
			if math.IsInf(c.Effect.Interval.Width(), 0) { // the blocks are all there is
				e.Add(c.Paired...)
			}
		}
	}
	return e.Axis(0.08, chart.Across)
}

func newForestRow(a *verdict.Analysis, m *verdict.Metric, l verdict.Level, x chart.Axis) forestRow {
	row := forestRow{Name: name(l), Title: a.Called(l.Arm), Median: verdict.Show(m.Metric, l.Median), Trials: l.N, N: l.N}
	if row.Title == l.Arm || l.Twin {
		row.Title = ""
	}
	c := comparison(m, l)
	row.Bar = chart.EmptyBar(m.Band(), x)
	switch {
	case c == nil && l.Arm == a.Manifest.Study.Control && !l.Twin:
		row.Verdict = mark{Word: "control", Class: "none"}
	case c == nil:
		row.Verdict = mark{"·", "not compared", "none"}
		row.Needs = "no block has both"
	default:
		row.N, row.Verdict = c.N, markFor(c)
	}
	if c == nil || c.Withheld != "" {
		row.Bar.Label = row.Name + ": " + row.Verdict.Word
		return row
	}
	row.Figure, row.Range = c.Figure(), c.DecidingRange()
	if c.Verdict == stats.Inconclusive {
		row.Needs = moreBlocks(c.Needs)
	}
	row.Bar = chart.NewBar(chart.Effect{Value: c.Effect.Effect, Interval: c.Effect.Interval, Band: c.Band(), Singles: c.Paired}, x)
	row.Bar.Label = fmt.Sprintf("%s: %s, interval %s", row.Name, row.Figure, row.Range)
	return row
}

// manifold is the log-ratio from which on an axis counts in multiples.
const manifold = 1.1 // threefold

// effectTicks label an axis of effects, in percent of the width: relative
// changes where they are small, multiples where they are large, plain
// differences off the ratio scale.
func effectTicks(x chart.Axis, m *verdict.Metric) []chart.Tick {
	const most = 4
	var ticks []chart.Tick
	add := func(v float64, text string) {
		ticks = append(ticks, chart.Tick{At: x.At(v) / (chart.Across / 100), Text: text})
	}
	switch {
	case m.Scale != verdict.Ratio:
		for _, v := range chart.Linear(x.Lo, x.Hi, most) {
			add(v, verdict.ShowSigned(m.Metric, v))
		}
	case x.Hi-x.Lo > manifold:
		for _, v := range chart.Decades(math.Exp(x.Lo), math.Exp(x.Hi), most+2) {
			add(math.Log(v), "× "+strconv.FormatFloat(v, 'g', 3, 64))
		}
	default:
		for _, v := range chart.Linear(math.Expm1(x.Lo), math.Expm1(x.Hi), most) {
			add(math.Log1p(v), strings.Replace(unit.Change(v), ".0 %", " %", 1))
		}
	}
	return ticks
}
