package stats

import (
	"errors"
	"fmt"
	"math"
)

// Scaling is how a metric grows with a study's scale: nanoseconds a layer,
// bytes a route.
type Scaling struct {
	N        int      // blocks fitted
	Slope    float64  // metric's unit per unit of x
	Interval Interval // of the slope
	Warnings []error
}

// Slope fits a straight line to every block by least squares and takes the
// Hodges-Lehmann estimate of the slopes with its interval. Of r only Alpha and
// Anytime count. x holds the arms' positions on the scale, a row of perBlock the
// arms' values in the same order and in the metric's own unit, NaN where one is
// missing. A block needs values at two different positions.
//
// Least squares is linear in the values: whatever is symmetric about the line
// makes slopes that are symmetric about the true one, which is all that the
// interval asks. A wild trial spoils its own block's slope, and the estimate
// across blocks shrugs that off.
//
// Where the points bend away from the line beyond chance, a warning says so:
// then "per layer" is an average, not a law.
func Slope(x []float64, perBlock [][]float64, r Rule) Scaling {
	var slopes, bends []float64
	for _, y := range perBlock {
		fit, ok := fitBlock(x, y)
		if !ok {
			continue
		}
		slopes = append(slopes, fit.slope)
		if !math.IsNaN(fit.bend) {
			bends = append(bends, fit.bend)
		}
	}
	r = Rule{Alpha: r.Alpha, Anytime: r.Anytime}
	c := Compare(slopes, r)
	scaling := Scaling{N: len(slopes), Slope: c.Effect, Interval: c.Interval}
	if lost := len(perBlock) - len(slopes); lost > 0 {
		scaling.Warnings = append(scaling.Warnings,
			fmt.Errorf("leaving out %d of %d blocks: too few values for a line", lost, len(perBlock)))
	}
	if len(bends) > 0 && !Compare(bends, r).Interval.Contains(0) {
		scaling.Warnings = append(scaling.Warnings,
			errors.New("the points bend away from a straight line: the slope is an average"))
	}
	return scaling
}

// blockFit is the line through one block.
type blockFit struct {
	slope float64
	bend  float64 // coefficient of the square of x left over by the line; NaN with fewer than three positions
}

func fitBlock(x, y []float64) (blockFit, bool) {
	var xs, ys []float64
	for i := range min(len(x), len(y)) {
		if v := x[i] + y[i]; !math.IsNaN(v) && !math.IsInf(v, 0) {
			xs, ys = append(xs, x[i]), append(ys, y[i])
		}
	}
	one := make([]float64, len(xs))
	square := make([]float64, len(xs))
	for i, v := range xs {
		one[i] = 1
		square[i] = v * v
	}
	// Gram and Schmidt: what each power of x adds to the lower ones.
	line := without(xs, one)
	if dot(line, line) <= 1e-18*dot(xs, xs) {
		return blockFit{}, false
	}
	curve := without(without(square, one), line)
	fit := blockFit{slope: dot(line, ys) / dot(line, line), bend: math.NaN()}
	if dot(curve, curve) > 1e-18*dot(square, square) {
		fit.bend = dot(curve, ys) / dot(curve, curve)
		if math.Abs(dot(curve, ys)) <= 1e-9*math.Sqrt(dot(curve, curve)*dot(ys, ys)) {
			fit.bend = 0 // rounding; exact counts lie on their line
		}
	}
	return fit, true
}

// without is v less its projection on the vector on.
func without(v, on []float64) []float64 {
	share := dot(v, on) / dot(on, on)
	rest := make([]float64, len(v))
	for i := range v {
		rest[i] = v[i] - share*on[i]
	}
	return rest
}

func dot(a, b []float64) float64 {
	var s float64
	for i := range a {
		s += a[i] * b[i]
	}
	return s
}
