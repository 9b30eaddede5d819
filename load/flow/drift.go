package flow

import (
	"math"

	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/unit"
)

// Drift is how a figure moved over a run: what a soak is for.
type Drift struct {
	Figure   string         `json:"figure"` // p99, or memory
	Unit     string         `json:"unit"`
	Level    float64        `json:"level"`    // median over the run
	PerHour  float64        `json:"per_hour"` // growth an hour, in Unit
	Interval stats.Interval `json:"interval"` // of PerHour, 95 %
	Pairs    int            `json:"pairs"`    // it rests on
	Outcome  Course         `json:"outcome"`
}

// Course is where a figure goes.
type Course string

// The courses. What matters is 5 % of the level over the run.
const (
	Grows     Course = "grows"     // the interval lies above 0, and the growth matters
	Steady    Course = "steady"    // the interval lies below growth that matters
	Undecided Course = "undecided" // a longer run may tell
)

const (
	mattering = 0.05
	mostParts = 48 // that a run is cut into
	leastPart = 12 // fewer give no interval worth showing
	filling   = 5  // the first of so many parts of the run is not looked at
)

// Drifts tells how p99 and the service's memory moved. Figures with too few slices are left
// out, and so is the first fifth of the run, in which a fresh service fills its heap and its
// caches. The rest is cut into parts of equal length, and each part of the first half compared
// with the one half a run later (Cox and Stuart, 1955). The slopes of these pairs are
// independent where parts are long against what makes neighbours alike; the estimate and its
// exact interval are those of [stats.Slope].
func Drifts(r *Result) []Drift {
	var p99, memory []float64
	for _, s := range r.Series {
		v := math.NaN()
		if s.Answered > 0 {
			v = float64(s.P99)
		}
		p99 = append(p99, v)
	}
	for _, m := range r.Memory {
		v := float64(m)
		if m == 0 {
			v = math.NaN()
		}
		memory = append(memory, v)
	}
	var all []Drift
	for _, f := range []struct {
		name, unit string
		values     []float64
	}{{"p99", unit.Nanoseconds, p99}, {"memory", unit.Bytes, memory}} {
		if d, ok := drift(f.values[len(f.values)/filling:], r.Elapsed.Hours()*(filling-1)/filling); ok {
			d.Figure, d.Unit = f.name, f.unit
			all = append(all, d)
		}
	}
	return all
}

// drift looks at a series that took hours; false where it is too short.
func drift(series []float64, hours float64) (Drift, bool) {
	parts := cut(series)
	half := len(parts) / 2
	if len(parts) < leastPart || hours <= 0 {
		return Drift{}, false
	}
	x := []float64{0, hours * float64(half) / float64(len(parts))}
	var pairs [][]float64
	for i := range half {
		pairs = append(pairs, []float64{parts[i], parts[len(parts)-half+i]})
	}
	s := stats.Slope(x, pairs, stats.Rule{})
	d := Drift{Level: stats.Median(parts), PerHour: s.Slope, Interval: s.Interval, Pairs: s.N, Outcome: Undecided}
	matters := mattering * d.Level / hours
	switch {
	case !s.Interval.Bounded():
	case s.Interval.Lo > 0 && s.Slope > matters:
		d.Outcome = Grows
	case s.Interval.Hi < matters:
		d.Outcome = Steady
	}
	return d, true
}

// cut gives the means of parts of equal length, at most mostParts of them; unknown values
// are left out, and so are parts without any.
func cut(series []float64) []float64 {
	n := min(mostParts, len(series))
	var parts []float64
	for i := range n {
		sum, known := 0.0, 0
		for _, v := range series[i*len(series)/n : (i+1)*len(series)/n] {
			if !math.IsNaN(v) {
				sum, known = sum+v, known+1
			}
		}
		if known > 0 {
			parts = append(parts, sum/float64(known))
		}
	}
	return parts
}
