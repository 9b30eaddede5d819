package report

import (
	"fmt"
	"math"
	"time"

	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/report/chart"
	"github.com/tarehq/tare/stats/unit"
)

const (
	seriesHeight = 84
	// mostSlices is the number of points that a trial is drawn through; more
	// slices are drawn together.
	mostSlices = 50
	// mostTrials is the number of a workload's trials up to which each has its
	// line: more hide one another, and make the report large.
	mostTrials = 100
)

// point is a slice, or several, of a trial.
type point struct {
	at   float64 // s from the start to its end
	rate float64 // answered a second
	p99  float64 // logarithm of ns, the highest of the slices'; NaN where nothing was answered
}

// courses are the trials of an arm in a workload.
type courses struct {
	valid, invalid [][]point
	shaded         bool
}

// seriesBlocks draw how trials went, a pair of small drawings an arm.
func seriesBlocks(run *record.Run, workload string, arms []string) []doc.Block {
	if run == nil {
		return nil
	}
	by := map[string]*courses{}
	var end chart.Extent
	var of extents
	var valid int
	for i := range run.Trials {
		t := &run.Trials[i]
		if t.Workload != workload || t.Block < 0 || len(t.Series) < 2 {
			continue
		}
		c := by[t.Arm]
		if c == nil {
			c = &courses{}
			by[t.Arm] = c
		}
		points := course(t)
		if counts(t) {
			c.valid = append(c.valid, points)
			valid++
		} else {
			c.invalid = append(c.invalid, points)
		}
		for _, p := range points {
			end.Add(p.at)
			of.rate.Add(0, p.rate)
			of.p99.Add(p.p99)
		}
	}
	if len(by) == 0 {
		return nil
	}
	x := chart.Axis{Lo: 0, Hi: end.Hi, Span: chart.Across}
	how := "A thin line a trial, the median thick"
	if valid > mostTrials {
		how = "Shaded: all trials of an arm, darker their middle half. The thick line is their median"
	}
	panels := `<div class="panels">`
	for i, arm := range arms {
		if c := by[arm]; c != nil {
			c.shaded = valid > mostTrials
			panels += c.panel(chart.Hue(i), arm, x, of)
		}
	}
	return []doc.Block{doc.Heading{Level: 3, Text: "How the trials went"},
		doc.Note("Answered a second, then the p99 of each slice (what the generator was late included), by time in the trial. " + how + "; dotted grey ones do not count."),
		drawn("How the trials went", panels+"</div>")}
}

// course is a trial's series. Rates are over the time between slices' starts.
func course(t *record.Trial) []point {
	length := (t.Series[1].AtMs - t.Series[0].AtMs) / 1e3
	if !(length > 0) {
		length = (200 * time.Millisecond).Seconds()
	}
	group := (len(t.Series) + mostSlices - 1) / mostSlices
	var points []point
	for i := 0; i < len(t.Series); i += group {
		slices := t.Series[i:min(i+group, len(t.Series))]
		var answered, p99 float64
		for _, s := range slices {
			answered += float64(s.Answered)
			p99 = max(p99, s.P99)
		}
		if p99 = math.Log(p99); math.IsInf(p99, 0) {
			p99 = math.NaN()
		}
		points = append(points, point{slices[len(slices)-1].AtMs/1e3 + length, answered / (length * float64(len(slices))), p99})
	}
	return points
}

// extents are what the panels of a workload share.
type extents struct{ rate, p99 chart.Extent }

// panel has an arm's rates above its p99s.
func (c *courses) panel(class, arm string, x chart.Axis, e extents) string {
	y := e.rate.Axis(0.05, seriesHeight)
	y.Lo = 0
	rate := c.draw(class, x, y, func(p point) float64 { return p.rate })
	rate.Title = "Answered a second, " + arm
	for _, v := range chart.Linear(0, y.Hi, 3)[1:] {
		rate.Y = append(rate.Y, chart.Tick{At: seriesHeight - y.At(v), Text: unit.Format(v, unit.PerSecond)})
	}
	z := e.p99.Axis(0.08, seriesHeight)
	p99 := c.draw(class, x, z, func(p point) float64 { return p.p99 })
	p99.X = []chart.Tick{{At: 0, Text: "0"}, {At: 100, Text: unit.Format(x.Hi*1e9, unit.Nanoseconds)}}
	p99.Title = "Response time p99 of each slice, " + arm
	for _, v := range chart.Decades(math.Exp(z.Lo), math.Exp(z.Hi), 3) {
		p99.Y = append(p99.Y, chart.Tick{At: seriesHeight - z.At(math.Log(v)), Text: unit.Format(v, unit.Nanoseconds)})
	}
	return `<div class="panel"><p>` + chart.Element("b", arm) + " " + chart.Element("small", counted(len(c.valid), len(c.valid)+len(c.invalid))) + "</p>" + rate.SVG() + p99.SVG() + "</div>"
}

// counted says how many trials count.
func counted(valid, all int) string {
	verb := "count"
	if valid == 1 {
		verb = "counts"
	}
	return fmt.Sprintf("%d of %s %s", valid, unit.Plural(all, "trial"), verb)
}

// draw draws one value of the points.
func (c *courses) draw(class string, x, y chart.Axis, value func(point) float64) chart.Plot {
	one := func(trials [][]point) [][]chart.Point {
		all := make([][]chart.Point, len(trials))
		for i, points := range trials {
			for _, p := range points {
				all[i] = append(all[i], chart.Point{X: p.at, Y: value(p)})
			}
		}
		return all
	}
	course := chart.Course{Class: class, Valid: one(c.valid), Invalid: one(c.invalid), Shaded: c.shaded}
	return course.Plot(x, y)
}
