//go:build linux

package serve_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// trend says by how much values that were taken at even times grow a minute, and whether that
// is more than chance. It looks at the least value of each of ten parts, since what a collector
// frees rises between its runs, and not at the first third of the time, in which all fills.
// The first figure is the median of the slopes between any two parts. It counts as growth if of
// the 45 pairs of parts those that rise outnumber those that fall by 27: Kendall's test, where
// that is by chance in 0.8 of a hundred cases.
func trend(values []float64, every time.Duration) (perMinute float64, grows bool) {
	const parts, enough = 10, 27
	values = values[len(values)/3:]
	if len(values) < 2*parts {
		return math.NaN(), false
	}
	least := make([]float64, parts)
	for i := range least {
		least[i] = slices.Min(values[i*len(values)/parts : (i+1)*len(values)/parts])
	}
	minutes := every.Minutes() * float64(len(values)) / parts // of a part
	var slopes []float64
	rising := 0
	for i, a := range least {
		for j, b := range least[i+1:] {
			slopes = append(slopes, (b-a)/(float64(j+1)*minutes))
			rising += cmp.Compare(b, a)
		}
	}
	slices.Sort(slopes)
	return slopes[len(slopes)/2], rising >= enough
}

func TestTrend(t *testing.T) {
	const n, every = 120, 2 * time.Second // 30 values a minute
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, tc := range []struct {
		name      string
		at        func(i int) float64
		perMinute float64
		grows     bool
	}{
		{"the same", func(int) float64 { return 7 }, 0, false},
		{"noise", func(int) float64 { return 100 + rnd.Float64() }, 0, false},
		{"a collector's saw", func(i int) float64 { return float64(i % 7) }, 0, false},
		{"grows", func(i int) float64 { return 3 * float64(i) }, 90, true},
		{"grows beneath a saw", func(i int) float64 { return float64(i) + 20*float64(i%5) }, 30, true},
		{"fills and stays", func(i int) float64 { return float64(min(i, n/3)) }, 0, false},
		{"falls", func(i int) float64 { return -float64(i) }, -30, false},
	} {
		var values []float64
		for i := range n {
			values = append(values, tc.at(i))
		}
		perMinute, grows := trend(values, every)
		if grows != tc.grows || math.Abs(perMinute-tc.perMinute) > 0.05*math.Abs(tc.perMinute)+0.5 {
			t.Errorf("%s: %.2f a minute, grows %t, want %.2f and %t", tc.name, perMinute, grows, tc.perMinute, tc.grows)
		}
	}
	if perMinute, grows := trend(make([]float64, 12), every); grows || !math.IsNaN(perMinute) {
		t.Errorf("12 values: %.2f, %t, want that it is not known", perMinute, grows)
	}
}

// TestTrendByChance has values without a trend: few of a thousand series may count as growth.
func TestTrendByChance(t *testing.T) {
	rnd, found := rand.New(rand.NewPCG(3, 4)), 0
	for range 1000 {
		values := make([]float64, 120)
		for i := range values {
			values[i] = rnd.Float64()
		}
		if _, grows := trend(values, time.Second); grows {
			found++
		}
	}
	if found == 0 || found > 20 { // 8 are to be expected, more than 20 once in ten thousand times
		t.Errorf("%d of 1000 series without a trend count as growth, want about 8", found)
	}
}
