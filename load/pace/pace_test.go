package pace_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tarehq/tare/load/pace"
)

// starts walks every share to its end, or to most starts, and merges them.
func starts(s *pace.Schedule, shares, most int) []time.Duration {
	var all []time.Duration
	for k := range shares {
		c := s.Cursor(k, shares)
		for range most {
			at, ok := c.Next()
			if !ok {
				break
			}
			all = append(all, at)
		}
	}
	slices.Sort(all)
	return all
}

// schedules draws ones of up to four phases that end.
func schedules() *rapid.Generator[*pace.Schedule] {
	rate := rapid.OneOf(rapid.Float64Range(0, 500), rapid.SampledFrom([]float64{0, 0.1, 1, 3, 10, 100, 333}))
	length := rapid.OneOf(rapid.Int64Range(1e6, 2e9), rapid.SampledFrom([]int64{1e8, 1e9, 11e8, 3e9}))
	return rapid.Custom(func(t *rapid.T) *pace.Schedule {
		s := &pace.Schedule{}
		for range rapid.IntRange(1, 4).Draw(t, "phases") {
			p := pace.Phase{From: rate.Draw(t, "from"), For: time.Duration(length.Draw(t, "for"))}
			p.To = p.From
			if rapid.Bool().Draw(t, "ramp") {
				p.To = rate.Draw(t, "to")
			}
			s.Phases = append(s.Phases, p)
		}
		return s
	}).Filter(func(s *pace.Schedule) bool { return s.Validate() == nil })
}

// integral adds up the rate in small steps: the mass, come by otherwise.
func integral(s *pace.Schedule, to time.Duration) (mass float64) {
	const steps = 20_000
	dt := float64(to) / steps
	for i := range steps {
		mass += s.RateAt(time.Duration((float64(i)+0.5)*dt)) * dt / 1e9
	}
	return mass
}

func TestStartsFollowTheRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := schedules().Draw(t, "schedule")
		length, ok := s.Length()
		all := starts(s, 1, 10_000)
		if !ok || len(all) == 0 || all[len(all)-1] >= length {
			t.Fatalf("%+v of %v, %v: starts %v", s, length, ok, all)
		}
		if got, want := float64(len(all)), math.Ceil(integral(s, length)); math.Abs(got-want) > 1 {
			t.Fatalf("%+v: %v starts, want %v", s, got, want)
		}
		i := rapid.IntRange(0, len(all)-1).Draw(t, "i")
		if m := integral(s, all[i]); math.Abs(m-float64(i)) > 0.1 {
			t.Fatalf("%+v: start %d is at %v, where the mass is %v", s, i, all[i], m)
		}
	})
}

func TestCountIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := schedules().Draw(t, "schedule")
		all := starts(s, 1, 10_000)
		at := rapid.OneOf(rapid.SampledFrom(all), rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.Int64Range(-1e9, 12e9).Draw(t, "ns"))
		})).Draw(t, "at")
		var want int64
		for _, v := range all {
			if v < at {
				want++
			}
		}
		if got := s.Count(at); got != want {
			t.Fatalf("Count(%v) of %+v = %d, want %d", at, s, got, want)
		}
	})
}

func TestSharesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := schedules().Draw(t, "schedule")
		shares := rapid.IntRange(2, 9).Draw(t, "shares")
		if one, many := starts(s, 1, 10_000), starts(s, shares, 10_000); !slices.Equal(one, many) {
			t.Fatalf("%+v: %d shares start at %v, one alone at %v", s, shares, many, one)
		}
	})
}

// TestNoDrift looks at far starts through cursors of as many shares, whose
// first start they are.
func TestNoDrift(t *testing.T) {
	for _, c := range []struct {
		rate float64
		i    int
		want time.Duration
	}{
		{1000, 1009, 1009 * time.Millisecond},
		{1000, 1e9, 1e6 * time.Second},
		{3, 15e8, 5e8 * time.Second},
		{3, 1, 333333333},
		{1e4, 1e9 + 1, 1e5*time.Second + 100*time.Microsecond},
		{0.1, 1e6, 1e7 * time.Second},
		{7, 7e8 + 1, 1e8*time.Second + 142857142},
	} {
		at, ok := pace.Constant(c.rate).Cursor(c.i, c.i+1).Next()
		if d := at - c.want; !ok || d < -16 || d > 16 {
			t.Errorf("start %d at %v/s is %d ns, %v, want %d", c.i, c.rate, at, ok, c.want)
		}
	}
}

func TestSteps(t *testing.T) {
	got := starts(pace.Steps(time.Second, 2, 0, 3), 1, 100)
	want := []time.Duration{0, 5e8, 2e9, 2333333333, 2666666666}
	if !slices.Equal(got, want) {
		t.Errorf("steps of 2, 0 and 3 start at %v, want %v", got, want)
	}
}

func TestRamps(t *testing.T) {
	// Up from nothing, the mass is t²·10/2: start i is at √(i/5) s. Down it is
	// the mirror image, seen from the mass of 5 at the end.
	up, down := starts(pace.Ramp(0, 10, time.Second), 1, 100), starts(pace.Ramp(10, 0, time.Second), 1, 100)
	if len(up) != 5 || len(down) != 5 {
		t.Fatalf("ramps between 0 and 10 in 1 s start at %v and %v, want 5 each", up, down)
	}
	for i := range 5 {
		if got, want := up[i].Seconds(), math.Sqrt(float64(i)/5); math.Abs(got-want) > 1e-8 {
			t.Errorf("up: start %d at %v, want %v s", i, got, want)
		}
		if got, want := down[i].Seconds(), 1-math.Sqrt(float64(5-i)/5); math.Abs(got-want) > 1e-8 {
			t.Errorf("down: start %d at %v, want %v s", i, got, want)
		}
	}
}

func TestEndsBeyondTime(t *testing.T) {
	c := pace.Constant(1e-9).Cursor(0, 1)
	n := 0
	for at := time.Duration(-1); n < 100; n++ {
		next, ok := c.Next()
		if !ok {
			break
		}
		if next <= at {
			t.Fatalf("start %d at %v after %v", n, next, at)
		}
		at = next
	}
	if n != 10 { // 292 years are 9.2e9 s
		t.Errorf("one request in 1e9 s starts %d times, want 10", n)
	}
}

// TestPoisson holds the gaps of the union against the exponential law.
func TestPoisson(t *testing.T) {
	const rate, n = 1000, 100_000
	for _, shares := range []int{1, 4} {
		all := starts(pace.Poisson(rate, 7), shares, n/shares)
		all = all[:n/2] // beyond it some share may have stopped
		gaps := make([]float64, len(all))
		last := time.Duration(0)
		for i, at := range all {
			gaps[i] = (at - last).Seconds() * rate
			last = at
		}
		slices.Sort(gaps)
		worst := 0.0
		for i, g := range gaps {
			worst = max(worst, math.Abs(1-math.Exp(-g)-float64(i)/float64(len(gaps))))
		}
		// Kolmogorov's distance exceeds 1.95/√n once in a thousand seeds.
		if limit := 1.95 / math.Sqrt(float64(len(gaps))); worst > limit {
			t.Errorf("%d shares: gaps are %v from the exponential law, want at most %v", shares, worst, limit)
		}
		// A Poisson process has as much variance as mean in every window.
		if got, want := dispersion(all, 100*time.Millisecond), 1.0; math.Abs(got-want) > 0.3 {
			t.Errorf("%d shares: counts in windows vary %v times their mean, want about %v", shares, got, want)
		}
	}
}

// dispersion is the variance of the number of starts in a window by its mean.
func dispersion(all []time.Duration, window time.Duration) float64 {
	counts := make([]float64, all[len(all)-1]/window)
	for _, at := range all {
		if i := int(at / window); i < len(counts) {
			counts[i]++
		}
	}
	mean, squares := 0.0, 0.0
	for _, c := range counts {
		mean += c / float64(len(counts))
	}
	for _, c := range counts {
		squares += (c - mean) * (c - mean) / float64(len(counts)-1)
	}
	return squares / mean
}

func TestPoissonRepeats(t *testing.T) {
	first := starts(pace.Poisson(1000, 7), 2, 50)
	if !slices.Equal(first, starts(pace.Poisson(1000, 7), 2, 50)) {
		t.Error("the same seed gives other starts")
	}
	if slices.Equal(first, starts(pace.Poisson(1000, 8), 2, 50)) {
		t.Error("another seed gives the same starts")
	}
}

func TestPoissonFollowsPhases(t *testing.T) {
	s := pace.Steps(10*time.Second, 1000, 0, 4000)
	s.Random = true
	var counts [3]float64
	for _, at := range starts(s, 3, 100_000) {
		counts[at/(10*time.Second)]++
	}
	for i, want := range []float64{10_000, 0, 40_000} {
		if math.Abs(counts[i]-want) > 5*math.Sqrt(want) {
			t.Errorf("phase %d has %v random starts, want about %v", i+1, counts[i], want)
		}
	}
	if got := s.Count(time.Minute); got != 50_000 {
		t.Errorf("Count = %d, want 50000", got)
	}
}

func TestRateAt(t *testing.T) {
	s := &pace.Schedule{Phases: []pace.Phase{{From: 10, To: 20, For: time.Second}, {From: 5, To: 5}}}
	for _, c := range []struct {
		at   time.Duration
		want float64
	}{{-1, 0}, {0, 10}, {500 * time.Millisecond, 15}, {time.Second, 5}, {time.Hour, 5}} {
		if got := s.RateAt(c.at); got != c.want {
			t.Errorf("RateAt(%v) = %v, want %v", c.at, got, c.want)
		}
	}
	if got := pace.Ramp(1, 2, time.Second).RateAt(time.Second); got != 0 {
		t.Errorf("rate at the end = %v, want 0", got)
	}
	if d, ok := s.Length(); ok {
		t.Errorf("Length = %v, want none", d)
	}
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		name   string
		phases []pace.Phase
	}{
		{"none", nil},
		{"endless before the last", []pace.Phase{{From: 1, To: 1}, {From: 1, To: 1, For: 1}}},
		{"endless ramp", []pace.Phase{{From: 1, To: 2}}},
		{"endless pause", []pace.Phase{{From: 1, To: 1, For: 1}, {}}},
		{"only a pause", []pace.Phase{{For: 1}}},
		{"negative length", []pace.Phase{{From: 1, To: 1, For: -1}}},
		{"negative rate", []pace.Phase{{From: 1, To: -1, For: 1}}},
		{"infinite rate", []pace.Phase{{From: math.Inf(1), To: 1, For: 1}}},
		{"no number", []pace.Phase{{From: math.NaN(), To: 1, For: 1}}},
		{"too fast", []pace.Phase{{From: 2 * pace.MaxRate, To: 1, For: 1}}},
		{"too long", []pace.Phase{{From: 1, To: 1, For: math.MaxInt64}, {From: 1, To: 1, For: 1}}},
	} {
		if err := (&pace.Schedule{Phases: c.phases}).Validate(); err == nil {
			t.Errorf("%s: Validate(%v) = nil, want an error", c.name, c.phases)
		}
	}
}

func TestShareThatIsNone(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("share 2 of 2: no panic")
		}
	}()
	pace.Constant(1).Cursor(2, 2)
}

func TestNextAllocatesNothing(t *testing.T) {
	for _, s := range []*pace.Schedule{pace.Constant(1e6), pace.Poisson(1e6, 1), pace.Ramp(0, 1e6, time.Hour)} {
		c := s.Cursor(0, 1)
		if n := testing.AllocsPerRun(100, func() { c.Next() }); n != 0 {
			t.Errorf("%+v: Next allocates %v times, want 0", s, n)
		}
	}
}

// Parts of a schedule, each shared out as its generator likes, add up to it.
func TestPartsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := schedules().Draw(t, "schedule")
		parts := rapid.IntRange(1, 5).Draw(t, "parts")
		var all []time.Duration
		for k := range parts {
			s := *whole
			s.Part, s.Parts = k, parts
			if err := s.Validate(); err != nil {
				t.Fatal(err)
			}
			all = append(all, starts(&s, rapid.IntRange(1, 4).Draw(t, "shares"), 10_000)...)
		}
		slices.Sort(all)
		if want := starts(whole, 1, 10_000); !slices.Equal(all, want) {
			t.Fatalf("%+v: %d parts start at %v, the whole at %v", whole, parts, all, want)
		}
	})
}

// Parts of a Poisson process are independent ones of a part of its rate.
func TestPoissonParts(t *testing.T) {
	var all []time.Duration
	seen, twice := map[time.Duration]bool{}, 0
	for k := range 4 {
		s := pace.Poisson(1000, 7)
		s.Part, s.Parts = k, 4
		c := s.Cursor(0, 1)
		for at, _ := c.Next(); at < 100*time.Second; at, _ = c.Next() {
			if seen[at] {
				twice++
			}
			seen[at] = true
			all = append(all, at)
		}
	}
	slices.Sort(all)
	if n := float64(len(all)); math.Abs(n-100_000) > 5*math.Sqrt(100_000) {
		t.Errorf("four parts have %v starts in 100 s, want about 100000", n)
	}
	if got := dispersion(all, 100*time.Millisecond); math.Abs(got-1) > 0.3 {
		t.Errorf("counts in windows vary %v times their mean, want about once", got)
	}
	if twice > 10 { // by chance, of 100,000 starts in 10¹¹ ns
		t.Errorf("%d starts of two parts are the same: they are not independent", twice)
	}
}

func TestPartsThatAreNone(t *testing.T) {
	for _, c := range [][2]int{{1, 1}, {-1, 2}, {0, -1}, {1, 0}} {
		s := pace.Constant(1)
		s.Part, s.Parts = c[0], c[1]
		if s.Validate() == nil {
			t.Errorf("part %d of %d: no error", c[0], c[1])
		}
	}
}
