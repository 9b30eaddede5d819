package report

import (
	"fmt"
	"math"
	"time"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/report/chart"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats/unit"
)

// seriesFigure is how trials went, a pair of small drawings an arm.
type seriesFigure struct {
	Shaded bool // where the trials lie is drawn, not each of them
	Panels []seriesPanel
}

type seriesPanel struct {
	Class, Arm string
	Trials     string
	Rate, P99  chart.Plot
}

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

func newSeries(run *record.Run, workload string, arms []string) *seriesFigure {
	by := map[string]*courses{}
	var end, rate, p99 chart.Extent
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
			rate.Add(0, p.rate)
			p99.Add(p.p99)
		}
	}
	if len(by) == 0 {
		return nil
	}
	x := chart.Axis{Lo: 0, Hi: end.Hi, Span: chart.Across}
	f := &seriesFigure{Shaded: valid > mostTrials}
	for i, arm := range arms {
		if c := by[arm]; c != nil {
			c.shaded = f.Shaded
			f.Panels = append(f.Panels, c.panel(chart.Hue(i), arm, x, extents{rate, p99}))
		}
	}
	return f
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

func (c *courses) panel(class, arm string, x chart.Axis, e extents) seriesPanel {
	p := seriesPanel{Class: class, Arm: arm, Trials: counted(len(c.valid), len(c.valid)+len(c.invalid))}
	y := e.rate.Axis(0.05, seriesHeight)
	y.Lo = 0
	p.Rate = c.draw(class, x, y, func(p point) float64 { return p.rate })
	p.Rate.Title = "Answered a second, " + arm
	for _, v := range chart.Linear(0, y.Hi, 3)[1:] {
		p.Rate.Y = append(p.Rate.Y, chart.Tick{At: seriesHeight - y.At(v), Text: unit.Format(v, unit.PerSecond)})
	}
	z := e.p99.Axis(0.08, seriesHeight)
	p.P99 = c.draw(class, x, z, func(p point) float64 { return p.p99 })
	p.P99.X = []chart.Tick{{At: 0, Text: "0"}, {At: 100, Text: unit.Format(x.Hi*1e9, unit.Nanoseconds)}}
	p.P99.Title = "Response time p99 of each slice, " + arm
	for _, v := range chart.Decades(math.Exp(z.Lo), math.Exp(z.Hi), 3) {
		p.P99.Y = append(p.P99.Y, chart.Tick{At: seriesHeight - z.At(math.Log(v)), Text: unit.Format(v, unit.Nanoseconds)})
	}
	return p
}

// counted says how many trials count.
func counted(valid, all int) string {
	verb := "count"
	if valid == 1 {
		verb = "counts"
	}
	return fmt.Sprintf("%d of %s %s", valid, verdict.Count(all, "trial"), verb)
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
