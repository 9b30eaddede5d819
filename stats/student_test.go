package stats_test

import (
	"math"
	"testing"

	"github.com/tarehq/tare/stats"
)

// TestStudent holds the law against values that have a closed form, and tables.
func TestStudent(t *testing.T) {
	for _, tc := range []struct{ t, freedom, want float64 }{
		{0, 5, 1},
		{1, 1, 0.5},                             // Cauchy: 1 − 2·atan(t)/π
		{-12.706204736432095, 1, 0.05},          // tables
		{2.0, 2, 1 - 2/math.Sqrt(6)},            // t/√(2+t²)
		{3.7, 2, 1 - 3.7/math.Sqrt(2+3.7*3.7)},  //
		{2.2281388519649385, 10, 0.05},          // tables
		{4.604094871415897, 4, 0.01},            // tables
		{1.9599639845400545, math.Inf(1), 0.05}, // the normal law's
		{40, 2, 1 - 40/math.Sqrt(2+1600)},       // far out
	} {
		if got := stats.StudentP(tc.t, tc.freedom); math.Abs(got-tc.want) > 1e-8*math.Max(tc.want, 1e-3) && math.Abs(got-tc.want) > 1e-7*tc.want {
			t.Errorf("P(|T| > %g) with %g degrees: got %.12g, want %.12g", tc.t, tc.freedom, got, tc.want)
		}
	}
	for _, freedom := range []float64{0.7, 1, 2.5, 8, 100, math.Inf(1)} {
		for _, alpha := range []float64{0.999, 0.5, 0.05, 1e-6, 1e-12} {
			if got := stats.StudentP(stats.StudentQuantile(alpha, freedom), freedom); math.Abs(got-alpha) > 1e-9*alpha {
				t.Errorf("quantile of %g with %g degrees has p-value %g", alpha, freedom, got)
			}
		}
	}
}

// BenchmarkStudentQuantile is what a report asks for once a comparison.
func BenchmarkStudentQuantile(b *testing.B) {
	for b.Loop() {
		stats.StudentQuantile(0.05, 11)
	}
}
