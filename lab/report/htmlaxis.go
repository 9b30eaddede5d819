package report

import (
	"math"
	"strconv"
	"strings"

	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats/unit"
)

// Drawings are as wide as the page lets them: their horizontal coordinates run
// from 0 to across whatever the width, and strokes and text do not scale.
const across = 1000

// axis maps values to coordinates. On a logarithmic one, lo and hi and all
// values given are logarithms already.
type axis struct {
	lo, hi float64 // lo < hi
	span   float64 // coordinates from 0 to span
}

// at is the coordinate of v, kept within the axis; infinities are its ends.
func (x axis) at(v float64) float64 {
	return x.span * min(1, max(0, (v-x.lo)/(x.hi-x.lo)))
}

// extent grows to hold finite values.
type extent struct {
	lo, hi float64
	some   bool
}

func (e *extent) add(values ...float64) {
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		if !e.some {
			e.lo, e.hi, e.some = v, v, true
		}
		e.lo, e.hi = min(e.lo, v), max(e.hi, v)
	}
}

// axis leaves a share of room at either end and never has zero length.
func (e extent) axis(room, span float64) axis {
	d := e.hi - e.lo
	if !(d > 0) {
		d = max(math.Abs(e.hi), 1) * 1e-3
	}
	return axis{e.lo - room*d, e.hi + room*d, span}
}

// tick is a labelled place on an axis.
type tick struct {
	At   float64
	Text string
}

// step is the 1, 2 or 5 times a power of ten that divides length into at most
// n parts.
func step(length float64, n int) float64 {
	raw := length / float64(n)
	ten := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, f := range []float64{1, 2, 5} {
		if f*ten >= raw {
			return f * ten
		}
	}
	return 10 * ten
}

// linear are round values between lo and hi.
func linear(lo, hi float64, n int) []float64 {
	s := step(hi-lo, n)
	var all []float64
	for k := math.Ceil(lo / s); k*s <= hi && len(all) <= 2*n; k++ {
		all = append(all, k*s)
	}
	return all
}

// decades are at most n powers of ten between lo and hi, or 1, 2 and 5 times
// them, or 1 and 3 times: the most that fit.
func decades(lo, hi float64, n int) []float64 {
	const most = 308 // the largest power of a float64
	pick := func(factors ...float64) (all []float64) {
		for e := max(-most, math.Floor(math.Log10(lo))); e <= min(most, math.Ceil(math.Log10(hi))); e++ {
			for _, f := range factors {
				if v := f * math.Pow(10, e); v >= lo && v <= hi {
					all = append(all, v)
				}
			}
		}
		return all
	}
	if all := pick(1, 2, 5); len(all) <= n {
		return all
	}
	if all := pick(1, 3); len(all) <= n {
		return all
	}
	all := pick(1)
	every := max(1, (len(all)+n-1)/n)
	var some []float64
	for i := 0; i < len(all); i += every {
		some = append(some, all[i])
	}
	return some
}

// manifold is the log-ratio from which on an axis counts in multiples.
const manifold = 1.1 // threefold

// effectTicks label an axis of effects: relative changes where they are small,
// multiples where they are large, plain differences off the ratio scale.
func effectTicks(x axis, m *verdict.Metric) []tick {
	const most = 4
	var ticks []tick
	switch {
	case m.Scale != verdict.Ratio:
		for _, v := range linear(x.lo, x.hi, most) {
			ticks = append(ticks, tick{x.at(v), verdict.ShowSigned(m.Metric, v)})
		}
	case x.hi-x.lo > manifold:
		for _, v := range decades(math.Exp(x.lo), math.Exp(x.hi), most+2) {
			ticks = append(ticks, tick{x.at(math.Log(v)), "× " + strconv.FormatFloat(v, 'g', 3, 64)})
		}
	default:
		for _, v := range linear(math.Expm1(x.lo), math.Expm1(x.hi), most) {
			ticks = append(ticks, tick{x.at(math.Log1p(v)), strings.Replace(unit.Change(v), ".0 %", " %", 1)})
		}
	}
	return ticks
}

// path is the data of an SVG path.
type path struct {
	b    []byte
	down bool // the pen is
}

// to draws to a point, or begins there.
func (p *path) to(x, y float64) {
	c := byte('L')
	if !p.down {
		c, p.down = 'M', true
	}
	p.b = append(p.b, c)
	p.number(x)
	p.b = append(p.b, ' ')
	p.number(y)
}

func (p *path) number(v float64) {
	p.b = strconv.AppendFloat(p.b, math.Round(v*10)/10, 'f', -1, 64)
}

// up lifts the pen: the next point begins a new line.
func (p *path) up() { p.down = false }

// dot is a line of no length, which round caps make a dot of the stroke's
// width.
func (p *path) dot(x, y float64) {
	p.up()
	p.to(x, y)
	p.b = append(p.b, "h0"...)
	p.up()
}

func (p *path) String() string { return string(p.b) }
