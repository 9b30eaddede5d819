package change_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tarehq/tare/web/history/change"
)

func Example() {
	series := []float64{1.00, 1.02, 0.99, 1.01, 1.00, 0.98, 1.10, 1.09, 1.11, 1.12, 1.10, 1.08}
	for _, c := range change.Find(series, change.Options{}) {
		fmt.Printf("%s at %d: %.2f, then %.2f\n", c.Kind, c.At, c.Before, c.After)
	}
	// Output:
	// step at 6: 1.00, then 1.10
}

// noise makes n figures of a kind of noise with the standard deviation 1, or about that.
type noise func(rng *rand.Rand, n int) []float64

func normal(rng *rand.Rand, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = rng.NormFloat64()
	}
	return x
}

// outliers are normal but for one in twenty, which is five times as wide.
func outliers(rng *rand.Rand, n int) []float64 {
	x := normal(rng, n)
	for i := range x {
		if rng.IntN(20) == 0 {
			x[i] *= 5
		}
	}
	return x
}

// sticky figures hang together, as those of one week on one machine do: correlation 0.3.
func sticky(rng *rand.Rand, n int) []float64 {
	x := normal(rng, n)
	for i := 1; i < n; i++ {
		x[i] = 0.3*x[i-1] + math.Sqrt(1-0.3*0.3)*x[i]
	}
	return x
}

// months is the length of the series: figures of about six weeks' nights.
const months = 40

// share counts series of which something holds, of so many.
func share(stream uint64, of int, holds func(rng *rand.Rand) bool) float64 {
	n := 0
	for i := range of {
		if holds(rand.New(rand.NewPCG(20261126+stream, uint64(i)))) {
			n++
		}
	}
	return float64(n) / float64(of)
}

// TestFalseAlarms bounds how many series without any change are told to have one. The
// figures are those of docs/web.md: go test -run 'FalseAlarms|Misses|Drift' -v.
func TestFalseAlarms(t *testing.T) {
	const of = 300
	for _, c := range []struct {
		name  string
		noise noise
		floor float64
		most  float64
	}{
		{"normal", normal, 0, 0.03}, // 0.01, and three times the standard error of so many
		{"outliers", outliers, 0, 0.03},
		{"correlated", sticky, 0, 0.15},
		{"correlated, beyond a floor of 2 sd", sticky, 2, 0.03},
	} {
		got := share(1, of, func(rng *rand.Rand) bool {
			return len(change.Find(c.noise(rng, months), change.Options{Floor: c.floor, Seed: rng.Uint64()})) > 0
		})
		t.Logf("%-40s %.1f %% of %d series of %d figures have a change that is none", c.name, 100*got, of, months)
		if got > c.most {
			t.Errorf("%s: %.3f of the series have a change, want at most %.3f", c.name, got, c.most)
		}
	}
}

// TestMisses bounds how many planted steps are not found within two figures of their place.
func TestMisses(t *testing.T) {
	const of = 100
	for _, c := range []struct {
		name  string
		noise noise
		size  float64 // in standard deviations
		floor float64 // likewise
		most  float64
	}{
		{"1 sd", normal, 1, 0.5, 1}, // told, not promised
		{"2 sd", normal, 2, 0.5, 0.25},
		{"3 sd", normal, 3, 0.5, 0.05},
		{"5 sd", normal, 5, 0.5, 0.01},
		{"3 sd, outliers", outliers, 3, 0.5, 0.1},
		{"3 sd, correlated", sticky, 3, 0.5, 0.1},
		{"3 sd, floor 2 sd", normal, 3, 2, 0.1},
	} {
		steps := 0
		missed := share(2, of, func(rng *rand.Rand) bool {
			x, at := c.noise(rng, months), 10+rng.IntN(months-20)
			for i := at; i < months; i++ {
				x[i] += c.size
			}
			found := change.Find(x, change.Options{Floor: c.floor, Seed: rng.Uint64()})
			i := slices.IndexFunc(found, func(f change.Change) bool { return f.At >= at-2 && f.At <= at+2 })
			if i >= 0 && found[i].Kind == change.Step {
				steps++
			}
			return i < 0
		})
		t.Logf("step of %-18s %5.1f %% of %d missed, %.0f %% of those found told as a step", c.name, 100*missed, of, 100*float64(steps)/max(1, math.Round((1-missed)*of)))
		if missed > c.most {
			t.Errorf("a step of %s: %.3f missed, want at most %.3f", c.name, missed, c.most)
		}
	}
}

// TestDrift plants a slope, of which the ends are so many standard deviations apart, and
// looks at how many changes are told as steps, which it has none of.
func TestDrift(t *testing.T) {
	const of = 100
	for _, rise := range []float64{4, 8} {
		steps, drifts := 0, 0
		silent := share(3, of, func(rng *rand.Rand) bool {
			x := normal(rng, months)
			for i := range x {
				x[i] += rise * float64(i) / months
			}
			found := change.Find(x, change.Options{Floor: 0.5, Seed: rng.Uint64()})
			for _, f := range found {
				if f.Kind == change.Step {
					steps++
				} else {
					drifts++
				}
			}
			return len(found) == 0
		})
		told := float64(drifts) / max(1, float64(steps+drifts))
		t.Logf("drift of %.0f sd: %.1f %% of %d series without any change, %.0f %% of %d changes told as drift", rise, 100*silent, of, 100*told, steps+drifts)
		if silent > 0.05 || told < 0.6 {
			t.Errorf("a drift of %.0f sd: %.3f not found, %.3f of the changes told as drift; want at most 0.05 and at least 0.6", rise, silent, told)
		}
	}
}

func TestFind(t *testing.T) {
	steps := func(levels ...float64) (x []float64) {
		for i, l := range levels {
			for j := range 10 {
				x = append(x, l+0.01*float64((i+j)%3))
			}
		}
		return x
	}
	for _, c := range []struct {
		name   string
		series []float64
		o      change.Options
		want   []int
	}{
		{"nothing", nil, change.Options{}, nil},
		{"too short", []float64{1, 1, 1, 2, 2, 2}, change.Options{}, nil},
		{"all of one figure", make([]float64, 50), change.Options{}, nil},
		{"two steps", steps(1, 2, 1), change.Options{}, []int{10, 20}},
		{"within the floor", steps(1, 2, 1), change.Options{Floor: 1.5}, nil},
		{"the small one is dropped", steps(1, 1.2, 3), change.Options{Floor: 0.5}, []int{20}},
		{"only the last count", append(steps(1, 9), make([]float64, change.Most)...), change.Options{}, nil},
	} {
		var got []int
		found := change.Find(c.series, c.o)
		for _, f := range found {
			got = append(got, f.At)
			if f.P <= 0 || f.P > 0.01 || f.Before == f.After {
				t.Errorf("%s: %+v, want two levels and a p-value up to 0.01", c.name, f)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got changes at %v, want %v", c.name, got, c.want)
		}
		if again := change.Find(c.series, c.o); !slices.Equal(again, found) {
			t.Errorf("%s: the second time got %v, want %v", c.name, again, found)
		}
	}
}

func BenchmarkFind(b *testing.B) {
	b.ReportAllocs()
	x := normal(rand.New(rand.NewPCG(1, 2)), change.Most)
	for i := range x {
		x[i] += float64(i / 100)
	}
	for b.Loop() {
		change.Find(x, change.Options{})
	}
}
