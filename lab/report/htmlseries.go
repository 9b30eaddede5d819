package report

import (
	"fmt"
	"math"
	"time"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/unit"
)

// seriesFigure is how trials went, a pair of small drawings an arm.
type seriesFigure struct {
	Panels []seriesPanel
}

type seriesPanel struct {
	Class, Arm string
	Trials     string
	Rate, P99  plot
}

const (
	seriesHeight = 84
	// mostSlices is the number of points that a trial is drawn through; more
	// slices are drawn together.
	mostSlices = 50
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
}

func newSeries(run *record.Run, workload string, arms []string) *seriesFigure {
	by := map[string]*courses{}
	var end, rate, p99 extent
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
		} else {
			c.invalid = append(c.invalid, points)
		}
		for _, p := range points {
			end.add(p.at)
			rate.add(0, p.rate)
			p99.add(p.p99)
		}
	}
	if len(by) == 0 {
		return nil
	}
	x := axis{0, end.hi, across}
	f := &seriesFigure{}
	for i, arm := range arms {
		if c := by[arm]; c != nil {
			f.Panels = append(f.Panels, c.panel(hue(i), arm, x, extents{rate, p99}))
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
type extents struct{ rate, p99 extent }

func (c *courses) panel(class, arm string, x axis, e extents) seriesPanel {
	p := seriesPanel{Class: class, Arm: arm, Trials: fmt.Sprintf("%d of %d trials count", len(c.valid), len(c.valid)+len(c.invalid))}
	y := e.rate.axis(0.05, seriesHeight)
	y.lo = 0
	p.Rate = c.draw(x, y, class, func(p point) float64 { return p.rate })
	p.Rate.Title = "Answered a second, " + arm
	for _, v := range linear(0, y.hi, 3)[1:] {
		p.Rate.Y = append(p.Rate.Y, tick{seriesHeight - y.at(v), unit.Format(v, unit.PerSecond)})
	}
	z := e.p99.axis(0.08, seriesHeight)
	p.P99 = c.draw(x, z, class, func(p point) float64 { return p.p99 })
	p.P99.X = []tick{{0, "0"}, {100, unit.Format(x.hi*1e9, unit.Nanoseconds)}}
	p.P99.Title = "Response time p99 of each slice, " + arm
	for _, v := range decades(math.Exp(z.lo), math.Exp(z.hi), 3) {
		p.P99.Y = append(p.P99.Y, tick{seriesHeight - z.at(math.Log(v)), unit.Format(v, unit.Nanoseconds)})
	}
	return p
}

func (c *courses) draw(x, y axis, class string, value func(point) float64) plot {
	p := plot{
		Height: seriesHeight,
		Desc:   "A thin line a trial, dotted where it does not count; the thick line is the median of those that count.",
	}
	thin := func(trials [][]point, class string) {
		var d path
		for _, points := range trials {
			for _, q := range points {
				if v := value(q); !math.IsNaN(v) {
					d.to(x.at(q.at), y.span-y.at(v))
				} else {
					d.up()
				}
			}
			d.up()
		}
		if len(trials) > 0 {
			p.Lines = append(p.Lines, curve{class, d.String()})
		}
	}
	thin(c.invalid, "invalid")
	thin(c.valid, class+" thin")
	if len(c.valid) > 0 {
		p.Lines = append(p.Lines, curve{class, c.median(x, y, value)})
	}
	return p
}

// median joins the medians of the trials' points at each place in the trial.
func (c *courses) median(x, y axis, value func(point) float64) string {
	var d path
	for k := 0; ; k++ {
		var at, values []float64
		for _, points := range c.valid {
			if k < len(points) && !math.IsNaN(value(points[k])) {
				at, values = append(at, points[k].at), append(values, value(points[k]))
			}
		}
		if 2*len(values) < len(c.valid) || len(values) == 0 {
			return d.String() // most trials have ended
		}
		d.to(x.at(stats.Median(at)), y.span-y.at(stats.Median(values)))
	}
}
