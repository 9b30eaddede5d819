package diff

import (
	"math"

	"github.com/tarehq/tare/stats"
)

// tester compares the first a captures with the others.
type tester struct {
	s *sums
	a int
	o Options
}

// row compares the two sides of one row.
func (t *tester) row(k key, cells []cell) Row {
	owner := t.s.owners[key{owner: k.owner, file: k.file}]
	r := Row{Owner: k.owner, Function: k.function, Where: owner.Where(), Package: t.s.rules.Package(owner), File: owner.File, Line: owner.Decl, id: k}
	if f, ok := t.s.frames[k]; ok {
		r.File, r.Line = f.File, f.Decl
	}
	if k != (key{}) {
		r.Kind = owner.Kind.String()
	}
	one := weight(cells)
	a, b := sideOf(cells[:t.a], one), sideOf(cells[t.a:], one)
	r.A, r.B, r.Diff = a.mean, b.mean, b.mean-a.mean
	r.Tested = a.count+b.count >= t.o.Least
	spread := math.Sqrt(a.variance + b.variance)
	if spread == 0 { // nothing was seen, or weighs nothing
		r.Lo, r.Hi, r.P = r.Diff, r.Diff, 1
		return r
	}
	freedom := math.Inf(1)
	if a.n > 1 && b.n > 1 {
		// Welch and Satterthwaite's.
		freedom = (a.variance + b.variance) * (a.variance + b.variance) /
			(a.variance*a.variance/float64(a.n-1) + b.variance*b.variance/float64(b.n-1))
	}
	r.P = stats.StudentP(r.Diff/spread, freedom)
	half := stats.StudentQuantile(0.05, freedom) * spread
	r.Lo, r.Hi = r.Diff-half, r.Diff+half
	return r
}

// side is the captures of one side.
type side struct {
	n              int
	mean, variance float64 // the variance is the mean's
	count          float64
}

// weight is what one stack weighs in a row, on average.
func weight(cells []cell) float64 {
	var count, value float64
	for _, c := range cells {
		count, value = count+c.count, value+c.value
	}
	if count == 0 {
		return 0
	}
	return value / count
}

// sideOf takes the variance from how captures differ, but no less than that of a
// Poisson count of one stack more than was seen: a row that was never seen on a
// side may still be there.
func sideOf(cells []cell, one float64) side {
	s := side{n: len(cells)}
	floor := one * one
	for _, c := range cells {
		s.mean += c.value / float64(s.n)
		s.count += c.count
		floor += c.chance
	}
	s.variance = floor / float64(s.n*s.n)
	if s.n < 2 {
		return s
	}
	var squares float64
	for _, c := range cells {
		squares += (c.value - s.mean) * (c.value - s.mean)
	}
	s.variance = max(s.variance, squares/float64(s.n-1)/float64(s.n))
	return s
}
