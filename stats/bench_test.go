package stats_test

import (
	"fmt"
	"testing"

	"github.com/tarehq/tare/stats"
)

func BenchmarkCompare(b *testing.B) {
	for _, n := range []int{8, 30, 100} {
		b.Run(fmt.Sprintf("blocks=%d", n), func(b *testing.B) {
			rng := seeded(1)
			d := make([]float64, n)
			for i := range d {
				d[i] = rng.NormFloat64()
			}
			b.ReportAllocs()
			for b.Loop() {
				stats.Compare(d, stats.Rule{Alpha: 0.01, Threshold: 0.01})
			}
		})
	}
}

func BenchmarkNoiseFloor(b *testing.B) {
	for _, n := range []int{8, 30} {
		b.Run(fmt.Sprintf("blocks=%d", n), func(b *testing.B) {
			rows := identicalArms(60, 4, 0.02, 1)
			rng := seeded(2)
			b.ReportAllocs()
			for b.Loop() {
				stats.NoiseFloor(rows, n, stats.LeastSubStudies, rng)
			}
		})
	}
}
