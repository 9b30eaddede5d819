package report

import (
	"fmt"
	"math"

	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats"
)

// forest is the drawing of one metric's effects, a row an arm.
type forest struct {
	Title, Role, Band, Floor string
	Confidence               string
	Better                   string // which way is better
	Ticks                    []tick
	Rows                     []forestRow
	Notes                    []string
	order                    int
}

type forestRow struct {
	Name, Title   string
	Median        string
	Figure, Range string
	N             int
	Verdict       mark
	Needs         string // or why there is no verdict
	Bar           *bar
}

// bar is an interval drawn across a forest's axis. Up and down it runs from 0
// to barHeight.
type bar struct {
	BandX, BandW float64
	Zero         float64
	Dots         string // the blocks' single differences
	Line, Point  string // interval and estimate
	Published    string // the published figure
	Label        string // the same in words
}

const barHeight = 28

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
	for i := range f.Ticks {
		f.Ticks[i].At /= across / 100
	}
	for _, l := range m.Levels {
		f.Rows = append(f.Rows, newForestRow(a, m, l, x))
	}
	return f
}

// forestAxis holds all intervals, the band and no effect.
func forestAxis(m *verdict.Metric) axis {
	var e extent
	e.add(0, m.Band, -m.Band)
	for _, l := range m.Levels {
		if c := comparison(m, l); c != nil && c.Withheld == "" {
			e.add(c.Effect.Effect, c.Effect.Interval.Lo, c.Effect.Interval.Hi)
			if math.IsInf(c.Effect.Interval.Width(), 0) { // the blocks are all there is
				e.add(c.Paired...)
			}
		}
	}
	return e.axis(0.08, across)
}

func newForestRow(a *verdict.Analysis, m *verdict.Metric, l verdict.Level, x axis) forestRow {
	row := forestRow{Name: name(l), Title: a.Called(l.Arm), Median: verdict.Show(m.Metric, l.Median), N: l.N}
	if row.Title == l.Arm || l.Twin {
		row.Title = ""
	}
	c := comparison(m, l)
	row.Bar = emptyBar(m.Band, x)
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
	row.Figure, row.Range = c.Figure(), c.Range()
	if c.Verdict == stats.Inconclusive {
		row.Needs = moreBlocks(c.Needs)
	}
	row.Bar = newBar(c, x)
	row.Bar.Label = fmt.Sprintf("%s: %s, interval %s", row.Name, row.Figure, row.Range)
	return row
}

// emptyBar has the band and no effect.
func emptyBar(band float64, x axis) *bar {
	return &bar{BandX: x.at(-band), BandW: x.at(band) - x.at(-band), Zero: x.at(0)}
}

func newBar(c *verdict.Comparison, x axis) *bar {
	b := emptyBar(c.Band, x)
	var dots path
	for i, d := range c.Paired {
		if d >= x.lo && d <= x.hi { // beyond the axis it would stand at its end
			dots.dot(x.at(d), barHeight/2+float64(i%5-2)*3)
		}
	}
	b.Dots = dots.String()
	b.Line = whiskers(c.Effect.Interval, x)
	var point path
	point.dot(x.at(c.Effect.Effect), barHeight/2)
	b.Point = point.String()
	return b
}

// whiskers draws an interval; an end that is not bounded has no stop.
func whiskers(i stats.Interval, x axis) string {
	const mid, stop = barHeight / 2, 5
	var p path
	for _, end := range []float64{i.Lo, i.Hi} {
		if !math.IsInf(end, 0) {
			p.to(x.at(end), mid-stop)
			p.to(x.at(end), mid+stop)
			p.up()
		}
	}
	p.to(x.at(i.Lo), mid)
	p.to(x.at(i.Hi), mid)
	return p.String()
}
