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
// the law lies below it.
func StudentQuantile(alpha, freedom float64) float64 {
	lo, hi := 0.0, 1.0
	for StudentP(hi, freedom) > alpha && hi < 1e9 {
		hi *= 2
	}
	for range 60 {
		mid := (lo + hi) / 2
		if StudentP(mid, freedom) > alpha {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

// Mean is the mean of v with Student's interval, of level 1 − alpha; unbounded for fewer
// than two values.
func Mean(v []float64, alpha float64) (m float64, i Interval) {
	n, half := float64(len(v)), math.Inf(1)
	if n > 0 {
		m = mean(v)
	}
	if n > 1 {
		squares := 0.0
		for _, x := range v {
			squares += (x - m) * (x - m)
		}
		half = StudentQuantile(alpha, n-1) * math.Sqrt(squares/(n-1)/n)
	}
	return m, Interval{m - half, m + half}
}

// HalfWidthAfter is about half the width that an interval of level 1 − alpha will have after n ≥ 2
// blocks if they differ as the two or more d do: Student's.
func HalfWidthAfter(n int, d []float64, alpha float64) float64 {
	_, i := Mean(d, alpha)
	have, will := float64(len(d)), float64(n)
	return i.Width() / 2 * math.Sqrt(have/will) * StudentQuantile(alpha, will-1) / StudentQuantile(alpha, have-1)
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
