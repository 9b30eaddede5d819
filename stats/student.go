package stats

import "math"

// StudentP is the two-sided p-value of t under Student's law with that many
// degrees of freedom, which are positive and need not be whole; +Inf is the normal law.
func StudentP(t, freedom float64) float64 {
	if math.IsInf(freedom, 1) {
		return math.Erfc(math.Abs(t) / math.Sqrt2)
	}
	return beta(freedom/(freedom+t*t), freedom/2, 0.5)
}

// StudentQuantile is the t whose two-sided p-value is alpha, in (0,1): 1 − alpha/2 of
// the law lies below it. The p-value is convex in t, so Newton's steps from 0 do not pass it.
func StudentQuantile(alpha, freedom float64) float64 {
	t := 0.0
	for range 1000 {
		step := (StudentP(t, freedom) - alpha) / (2 * studentDensity(t, freedom))
		t += step
		if !(step > 1e-14*t) {
			break
		}
	}
	return t
}

func studentDensity(t, freedom float64) float64 {
	if math.IsInf(freedom, 1) {
		return math.Exp(-t*t/2) / math.Sqrt(2*math.Pi)
	}
	return math.Exp(-(freedom+1)/2*math.Log1p(t*t/freedom)-logBeta(freedom/2, 0.5)) / math.Sqrt(freedom)
}

// Mean is the mean of v with Student's interval, of level 1 − alpha; unbounded for fewer
// than two values.
func Mean(v []float64, alpha float64) (m float64, i Interval) {
	half := math.Inf(1)
	if len(v) > 0 {
		m = mean(v)
	}
	if len(v) > 1 {
		half = HalfWidthAfter(len(v), v, alpha)
	}
	return m, Interval{m - half, m + half}
}

// HalfWidthAfter is about half the width that an interval of level 1 − alpha will have after n ≥ 2
// blocks if they differ as the two or more d do: Student's.
func HalfWidthAfter(n int, d []float64, alpha float64) float64 {
	m, squares := mean(d), 0.0
	for _, x := range d {
		squares += (x - m) * (x - m)
	}
	return StudentQuantile(alpha, float64(n-1)) * math.Sqrt(squares/float64(len(d)-1)/float64(n))
}

// beta is the regularised incomplete beta function I_x(a, b).
func beta(x, a, b float64) float64 {
	switch {
	case x <= 0:
		return 0
	case x >= 1:
		return 1
	case x > (a+1)/(a+b+2): // where the fraction converges slowly
		return 1 - beta(1-x, b, a)
	}
	return math.Exp(a*math.Log(x)+b*math.Log1p(-x)-logBeta(a, b)) / a * betaFraction(x, a, b)
}

func logBeta(a, b float64) float64 {
	la, _ := math.Lgamma(a)
	lb, _ := math.Lgamma(b)
	lab, _ := math.Lgamma(a + b)
	return la + lb - lab
}

// betaFraction evaluates the continued fraction of I_x(a, b) by Lentz's method.
//
// Source: NIST Digital Library of Mathematical Functions, 8.17.22.
func betaFraction(x, a, b float64) float64 {
	const tiny = 1e-300
	nonzero := func(v float64) float64 {
		if math.Abs(v) < tiny {
			return tiny
		}
		return v
	}
	c, d := 1.0, 1/nonzero(1-(a+b)*x/(a+1))
	f := d
	for i := 1; i <= 500; i++ {
		m := float64(i)
		for _, term := range [2]float64{
			m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m)),
			-(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1)),
		} {
			d = 1 / nonzero(1+term*d)
			c = nonzero(1 + term/c)
			f *= c * d
		}
		if math.Abs(c*d-1) < 1e-15 {
			break
		}
	}
	return f
}
