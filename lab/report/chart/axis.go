package chart

import "math"

// Axis maps values to coordinates. On a logarithmic one, Lo and Hi and all
// values given are logarithms already.
type Axis struct {
	Lo, Hi float64 // Lo < Hi
	Span   float64 // coordinates from 0 to Span
}

// At is the coordinate of v, kept within the axis; infinities are its ends.
func (x Axis) At(v float64) float64 {
	return x.Span * min(1, max(0, (v-x.Lo)/(x.Hi-x.Lo)))
}

// down is At from the top, for values that grow upwards.
func (x Axis) down(v float64) float64 { return x.Span - x.At(v) }

// Extent grows to hold finite values. The zero value holds none.
type Extent struct {
	Lo, Hi float64
	some   bool
}

// Add takes values in; what is not finite is left out.
func (e *Extent) Add(values ...float64) {
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		if !e.some {
			e.Lo, e.Hi, e.some = v, v, true
		}
		e.Lo, e.Hi = min(e.Lo, v), max(e.Hi, v)
	}
}

// Axis leaves a share of room at either end and never has zero length.
func (e Extent) Axis(room, span float64) Axis {
	d := e.Hi - e.Lo
	if !(d > 0) {
		d = max(math.Abs(e.Hi), 1) * 1e-3
	}
	return Axis{e.Lo - room*d, e.Hi + room*d, span}
}

// Tick is a labelled place on an axis.
type Tick struct {
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

// Linear are round values between lo and hi, some n of them: their distance is
// 1, 2 or 5 times a power of ten and divides hi−lo into at most n parts.
func Linear(lo, hi float64, n int) []float64 {
	s := step(hi-lo, n)
	var all []float64
	for k := math.Ceil(lo / s); k*s <= hi && len(all) <= 2*n; k++ {
		all = append(all, k*s)
	}
	return all
}

// Decades are at most n powers of ten between lo and hi, or 1, 2 and 5 times
// them, or 1 and 3 times: the most that fit.
func Decades(lo, hi float64, n int) []float64 {
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
