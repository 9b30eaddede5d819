package pace_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tarehq/tare/load/pace"
)

// all walks every share and merges the starts.
func all(s *pace.Schedule, shares, most int) []time.Duration {
	var starts []time.Duration
	for k := range shares {
		c := s.Cursor(k, shares)
		for range most {
			at, ok := c.Next()
			if !ok {
				break
			}
			starts = append(starts, at)
		}
	}
	slices.Sort(starts)
	return starts
}

func TestConstantDoesNotDrift(t *testing.T) {
	c := pace.Constant(3).Cursor(0, 1)
	var at time.Duration
	for range 3_000_001 {
		at, _ = c.Next()
	}
	if want := 1_000_000 * time.Second; at.Round(time.Microsecond) != want {
		t.Errorf("arrival 3,000,000 at 3/s starts at %v, want %v", at, want)
	}
}

func TestSteps(t *testing.T) {
	got := all(pace.Steps(time.Second, 2, 0, 3), 1, 100)
	want := []float64{0, 0.5, 2, 2 + 1./3, 2 + 2./3}
	if len(got) != len(want) {
		t.Fatalf("starts %v, want %v s", got, want)
	}
	for i := range want {
		if math.Abs(got[i].Seconds()-want[i]) > 1e-6 {
			t.Errorf("start %d is %v, want %v s", i, got[i], want[i])
		}
	}
}

// TestShares holds any even schedule, however it is shared out, against its
// own rate: as many starts by any time as the integral says.
func TestShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s pace.Schedule
		for range rapid.IntRange(1, 4).Draw(t, "phases") {
			s.Phases = append(s.Phases, pace.Phase{
				From: rapid.Float64Range(0, 500).Draw(t, "from"), To: rapid.Float64Range(0, 500).Draw(t, "to"),
				For: time.Duration(rapid.Int64Range(1e6, 2e9).Draw(t, "for")),
			})
		}
		if s.Validate() != nil {
			t.Skip()
		}
		length, _ := s.Length()
		one := all(&s, 1, 10_000)
		if got, want := int64(len(one)), s.Count(length); got < want-1 || got > want {
			t.Fatalf("%+v: %d starts, want %d", s, got, want)
		}
		for i, at := range one {
			if n := s.Count(at); int64(i) < n-1 || int64(i) > n+1 {
				t.Fatalf("%+v: start %d at %v, where the integral is %d", s, i, at, n)
			}
		}
		if many := all(&s, rapid.IntRange(2, 5).Draw(t, "shares"), 10_000); !slices.Equal(one, many) {
			t.Fatalf("%+v: shares start at %v, one alone at %v", s, many, one)
		}
	})
}

func TestPoisson(t *testing.T) {
	const rate, n = 1000, 100_000
	for _, shares := range []int{1, 4} {
		starts := all(pace.Poisson(rate, 7), shares, n/shares)
		gaps := make([]float64, 0, n)
		for i := 1; i < len(starts); i++ {
			gaps = append(gaps, (starts[i] - starts[i-1]).Seconds())
		}
		mean, sq := 0.0, 0.0
		for _, g := range gaps[:n/2] {
			mean += g / float64(n/2)
		}
		for _, g := range gaps[:n/2] {
			sq += (g - mean) * (g - mean) / float64(n/2)
		}
		// Exponential gaps: mean and standard deviation are both 1/rate.
		if math.Abs(mean*rate-1) > 0.02 || math.Abs(math.Sqrt(sq)*rate-1) > 0.03 {
			t.Errorf("%d shares: gaps have mean %v and deviation %v, want both %v", shares, mean, math.Sqrt(sq), 1./rate)
		}
	}
	if !slices.Equal(all(pace.Poisson(rate, 7), 2, 50), all(pace.Poisson(rate, 7), 2, 50)) {
		t.Error("the same seed gives other starts")
	}
	if slices.Equal(all(pace.Poisson(rate, 7), 2, 50), all(pace.Poisson(rate, 8), 2, 50)) {
		t.Error("another seed gives the same starts")
	}
}

func TestParse(t *testing.T) {
	for in, want := range map[string]float64{"1000": 1000, "2.5k/s": 2500, "poisson:10": 10, "1M": 1e6} {
		s, err := pace.Parse(in, 1)
		if err != nil || s.RateAt(time.Second) != want {
			t.Errorf("Parse(%q) = %+v, %v, want a rate of %v", in, s, err, want)
		}
	}
	s, err := pace.Parse("ramp:100-500/4s", 1)
	if err != nil || s.RateAt(time.Second) != 200 || s.RateAt(5*time.Second) != 0 {
		t.Errorf("ramp: %+v, %v", s, err)
	}
	s, err = pace.Parse("steps:1,2,4/1s", 1)
	if d, ok := s.Length(); err != nil || d != 3*time.Second || !ok {
		t.Errorf("steps: %+v, %v", s, err)
	}
	for _, in := range []string{"", "x", "-1", "0", "1e99", "NaN", "ramp:1-2", "ramp:1/3s", "ramp:1-2/x", "steps:1,2/-1s", "steps:0,0/1s", "warp:9"} {
		if s, err := pace.Parse(in, 1); err == nil {
			t.Errorf("Parse(%q) = %+v, want an error", in, s)
		}
	}
}

func TestValidate(t *testing.T) {
	for _, s := range []pace.Schedule{
		{},
		{Phases: []pace.Phase{{From: 1, To: 1}, {From: 1, To: 1, For: 1}}},
		{Phases: []pace.Phase{{From: 1, To: 2}}},
		{Phases: []pace.Phase{{From: 1, To: 1, For: -1}}},
		{Phases: []pace.Phase{{From: math.Inf(1), To: 1, For: 1}}},
	} {
		if s.Validate() == nil {
			t.Errorf("Validate(%+v) = nil, want an error", s)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"1000", "poisson:5k", "ramp:1-2/3s", "steps:1,2/1s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := pace.Parse(text, 1)
		if err != nil {
			return
		}
		c := s.Cursor(0, 1)
		var last time.Duration
		for range 100 {
			at, ok := c.Next()
			if !ok {
				break
			}
			if at < last {
				t.Fatalf("%q: start %v after %v", text, at, last)
			}
			last = at
		}
	})
}

func BenchmarkNext(b *testing.B) {
	for name, s := range map[string]*pace.Schedule{"constant": pace.Constant(1e4), "poisson": pace.Poisson(1e4, 1)} {
		b.Run("kind="+name, func(b *testing.B) {
			b.ReportAllocs()
			c := s.Cursor(0, 1)
			for b.Loop() {
				c.Next()
			}
		})
	}
}

func Example() {
	c := pace.Constant(1000).Cursor(0, 1)
	for range 3 {
		at, _ := c.Next()
		fmt.Println(at)
	}
	// Output:
	// 0s
	// 1ms
	// 2ms
}
