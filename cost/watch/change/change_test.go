package change_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/watch/change"
)

var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// series makes profiles of a service that is made up: two middlewares and a handler, in
// each interval as many stacks as chance has it at 19 Hz on a core, of costs that drift
// from interval to interval by themselves. As tare watch does, it counts requests in one
// interval of twelve, and in the first of a build; in others requests are as many as the CPU
// makes by the last count.
type series struct {
	rng   *rand.Rand
	every time.Duration
	drift float64 // standard deviation of the drift, as a share
	keep  float64 // of the drift that is left after an interval
	state float64

	miscount float64 // standard deviation of a count's error, as a share
	counts   map[string]count
}

// count is what a build's last count came to.
type count struct {
	nth int       // interval
	at  time.Time // when that began
	cpu float64   // a request, µs
}

func stack(name, file string, line int) []cost.Frame {
	around := []cost.Frame{{Func: "net/http.serverHandler.ServeHTTP"}, {Func: "net/http.(*conn).serve"}, {Func: "runtime.goexit"}}
	return append([]cost.Frame{{Func: name + ".work", File: file, Line: line + 3, Decl: line + 1}, {Func: name + ".ServeHTTP", File: file, Line: line + 8, Decl: line}}, around...)
}

var owners = []struct {
	name string
	cost float64 // µs a request
}{{"shop/mw.(*Auth)", 12}, {"shop/mw.(*Log)", 6}, {"shop.(*Orders)", 40}}

// point makes the profile of one interval; more is added to the first owner's cost.
func (s *series) point(i int, build string, more float64) change.Point {
	const hz, load = 19, 0.5 // of a core
	s.state = s.keep*s.state + math.Sqrt(1-s.keep*s.keep)*s.drift*s.rng.NormFloat64()
	seconds := s.every.Seconds()
	requests := load * 1e6 / 58 * seconds
	p := change.Point{Build: build, Begun: noon.Add(time.Duration(i) * s.every), Duration: s.every}
	var cpu float64 // of a request, µs
	for k, o := range owners {
		micros := o.cost * (1 + s.state)
		if k == 0 {
			micros += more
		}
		cpu += micros
		expected := micros / 1e6 * requests * hz
		n := math.Round(expected + math.Sqrt(expected)*s.rng.NormFloat64())
		if n > 0 {
			p.Stacks = append(p.Stacks, cost.Stack{Frames: stack(o.name, "/src/shop/"+strconv.Itoa(k)+".go", 10), Count: n, Value: n / hz * 1e9})
		}
	}
	last, counted := s.counts[build]
	if !counted || i >= last.nth+countedEvery {
		last = count{i, p.Begun, cpu * (1 + s.miscount*s.rng.NormFloat64())}
		s.counts[build] = last
	}
	p.Requests, p.Counted = requests*cpu/last.cpu, last.at
	p.Margin = 1.96 * s.miscount * p.Requests
	return p
}

// countedEvery is in how many intervals requests are counted once.
const countedEvery = 12

func newSeries(seed uint64) *series {
	return &series{rng: rand.New(rand.NewPCG(seed, 1)), every: 10 * time.Second, drift: 0.03, keep: 0.5, miscount: 0.01, counts: map[string]count{}}
}

// TestBuild finds the owner that a new build made dearer, when, by how much and with which
// build, and no other.
func TestBuild(t *testing.T) {
	s := newSeries(7)
	var points []change.Point
	for i := range 240 {
		build, more := "old", 0.0
		if i >= 120 {
			build, more = "new", 3
		}
		points = append(points, s.point(i, build, more))
	}
	s.rng.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
	r := change.Find("shop", points, change.Options{})
	if r.Per != "request" || r.Points != 240 || !slices.Equal(r.Builds, []string{"old", "new"}) {
		t.Errorf("got %+v, want two builds, per request", r)
	}
	k := slices.IndexFunc(r.Changes, func(c change.Change) bool { return c.Owner != "" })
	if k < 0 {
		t.Fatalf("nothing was found: %+v", r)
	}
	c := r.Changes[k]
	if c.Owner != "mw.(*Auth)" && c.Owner != "shop/mw.(*Auth).ServeHTTP" && c.Owner != "mw.(*Auth).ServeHTTP" {
		t.Errorf("got the owner %q, want the one that became dearer", c.Owner)
	}
	if !c.At.Equal(noon.Add(20*time.Minute)) || c.Build != "new" || c.Replaced != "old" {
		t.Errorf("got %s and build %q in place of %q, want 12:20 and new in place of old", c.At, c.Build, c.Replaced)
	}
	if c.Low > 3000 || c.High < 3000 || c.Low < 500 {
		t.Errorf("got %.0f to %.0f ns, want 3,000 in it", c.Low, c.High)
	}
}

// TestStep finds when an owner became dearer though no build took another's place.
func TestStep(t *testing.T) {
	s := newSeries(8)
	var points []change.Point
	for i := range 240 {
		more := 0.0
		if i >= 150 {
			more = 4
		}
		points = append(points, s.point(i, "one", more))
	}
	r := change.Find("shop", points, change.Options{})
	k := slices.IndexFunc(r.Changes, func(c change.Change) bool { return c.Owner != "" })
	if k < 0 {
		t.Fatalf("nothing was found: %+v", r)
	}
	if c := r.Changes[k]; c.At.Sub(noon.Add(25*time.Minute)).Abs() > 3*time.Minute || c.Replaced != "" || c.Diff() < 2000 || c.Diff() > 6000 {
		t.Errorf("got %+v, want 4 µs more from about 12:25 on, by no other build", c)
	}
}

// TestFalseAlarms counts how often something is found where nothing changed: an hour of one
// build, and an hour in which a build takes the place of one that costs the same.
//
//	TARE_MEASURE=1 go test ./cost/watch/change -run FalseAlarms -v
func TestFalseAlarms(t *testing.T) {
	hours := 40
	if os.Getenv("TARE_MEASURE") != "" {
		hours = 300
	}
	for _, keep := range []float64{0, 0.5, 0.9, 0.98} {
		for _, builds := range []int{1, 2} {
			if keep > 0.5 && os.Getenv("TARE_MEASURE") == "" {
				continue
			}
			alarms := 0
			for h := range hours {
				s := newSeries(uint64(h))
				s.keep = keep
				var points []change.Point
				for i := range 360 {
					points = append(points, s.point(i, strconv.Itoa(i*builds/360), 0))
				}
				if r := change.Find("shop", points, change.Options{}); len(r.Changes) > 0 {
					alarms++
				}
			}
			t.Logf("%d builds, drift that keeps %.2f after 10 s: %d alarms in %d hours", builds, keep, alarms, hours)
			if most := 1 + hours/20; keep < 0.9 && alarms > most {
				t.Errorf("%d builds, drift that keeps %.2f: %d alarms in %d hours, want at most %d", builds, keep, alarms, hours, most)
			}
		}
	}
}

// TestCountsErrTogether has counts of requests be wrong by a tenth, each for two minutes. An
// hour in which nothing changes has no more false alarms than if they were right, and the
// interval of what became dearer holds the truth as often as it says. Neither is so if each
// profile is taken for having been counted by itself.
func TestCountsErrTogether(t *testing.T) {
	const hours = 40
	measure := func(alone bool) (alarms, held, found int) {
		for h := range hours {
			s := newSeries(uint64(h))
			s.drift, s.miscount = 0.001, 0.1
			var same, dearer []change.Point
			for i := range 540 {
				p := s.point(i, strconv.Itoa(i/360), 3*float64(i/360))
				if alone {
					p.Counted = time.Time{}
				}
				if i < 360 {
					same = append(same, p)
				}
				if i >= 180 {
					dearer = append(dearer, p)
				}
			}
			if len(change.Find("shop", same, change.Options{}).Changes) > 0 {
				alarms++
			}
			for _, c := range change.Find("shop", dearer, change.Options{}).Changes {
				if strings.Contains(c.Owner, "Auth") && c.Replaced != "" {
					found++
					if c.Low <= 3000 && c.High >= 3000 {
						held++
					}
				}
			}
		}
		return alarms, held, found
	}
	alarms, held, found := measure(false)
	t.Logf("%d alarms in %d hours; %d of %d intervals hold the truth", alarms, hours, held, found)
	if alarms > 1+hours/20 || found < hours/2 || float64(held) < 0.85*float64(found) {
		t.Errorf("%d alarms in %d hours, and %d of %d intervals hold the truth: want at most %d, and nearly all of most", alarms, hours, held, found, 1+hours/20)
	}
	alone, held, found := measure(true)
	t.Logf("each taken by itself: %d alarms in %d hours; %d of %d intervals hold the truth", alone, hours, held, found)
	if alone <= 2*alarms+hours/20 {
		t.Errorf("%d alarms in %d hours if each is taken by itself, and %d if they err together: this test shows nothing", alone, hours, alarms)
	}
}

// TestBlocks has a block go on until the requests are counted anew, and at least for its
// length.
func TestBlocks(t *testing.T) {
	point := func(i int, counted int) change.Point {
		return change.Point{Build: "b", Begun: noon.Add(time.Duration(i) * 10 * time.Second), Duration: 10 * time.Second, Requests: 100, Margin: 10,
			Counted: noon.Add(time.Duration(counted) * 10 * time.Second)}
	}
	for _, tc := range []struct {
		what   string
		counts []int // when the requests of each profile were counted, by profile
		want   []int // profiles in each block
		margin []float64
	}{
		{"one count for all", make([]int, 30), []int{30}, []float64{300}},
		{"counted every two minutes", []int{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 12, 12, 12, 12, 12, 12, 12, 12, 12, 12, 12, 12}, []int{12, 12}, []float64{120, 120}},
		{"counted once more within the first minute", []int{0, 0, 0, 3, 3, 3, 3, 3, 3, 9, 9, 9}, []int{9, 3}, []float64{math.Hypot(30, 60), 30}},
		{"of two processes by turns", []int{-6, -6, -6, -6, -6, -6, 0, 0, 0, 0, 0, 0, 6, 6, 6, 6, 6, 6}, []int{12, 6}, []float64{math.Hypot(60, 60), 60}},
	} {
		var points []change.Point
		for i, counted := range tc.counts {
			points = append(points, point(i, counted))
		}
		got, margins := change.Blocks(points, time.Minute)
		if !slices.Equal(got, tc.want) || !slices.EqualFunc(margins, tc.margin, func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }) {
			t.Errorf("%s: got blocks of %v with margins %v, want %v with %v", tc.what, got, margins, tc.want, tc.margin)
		}
	}
}

// TestPower counts how often a change is found.
func TestPower(t *testing.T) {
	if os.Getenv("TARE_MEASURE") == "" {
		t.Skip("SKIPPED: a table for the page (TARE_MEASURE=1)")
	}
	const hours = 100
	for _, more := range []float64{0.5, 1, 2, 3} {
		found := 0
		for h := range hours {
			s := newSeries(uint64(h))
			var points []change.Point
			for i := range 360 {
				points = append(points, s.point(i, strconv.Itoa(i/180), more*float64(i/180)))
			}
			r := change.Find("shop", points, change.Options{})
			if slices.ContainsFunc(r.Changes, func(c change.Change) bool { return c.Owner != "" && c.Before < 20e3 && c.Before > 9e3 }) {
				found++
			}
		}
		t.Logf("%.1f µs more of 12: found in %d of %d hours", more, found, hours)
	}
}

// TestBuildsOverlap takes builds for what they are that run side by side for a while, as
// when instances are replaced one after another, and a build that comes back for a new
// stretch.
func TestBuildsOverlap(t *testing.T) {
	s := newSeries(9)
	var points []change.Point
	for i := range 100 {
		points = append(points, s.point(i, "a", 0))
	}
	for i := 90; i < 200; i++ {
		points = append(points, s.point(i, "b", 6))
	}
	for i := 200; i < 300; i++ {
		points = append(points, s.point(i, "a", 0))
	}
	r := change.Find("shop", points, change.Options{})
	var told []string
	for _, c := range r.Changes {
		if c.Owner != "" && c.Replaced != "" {
			told = append(told, fmt.Sprintf("%s→%s %v", c.Replaced, c.Build, c.Diff() > 0))
		}
	}
	if want := []string{"a→b true", "b→a false"}; !slices.Equal(told, want) {
		t.Errorf("got %q, want %q", told, want)
	}
}

// TestFew says nothing of what is too short to tell, and does not fail.
func TestFew(t *testing.T) {
	if r := change.Find("shop", nil, change.Options{}); r.Points != 0 || len(r.Changes) != 0 {
		t.Errorf("got %+v of nothing", r)
	}
	s := newSeries(1)
	var points []change.Point
	for i := range 20 {
		p := s.point(i, strconv.Itoa(i/10), float64(i/10)*20)
		p.Requests = 0
		points = append(points, p)
	}
	if r := change.Find("shop", points, change.Options{}); len(r.Changes) != 0 || r.Per != "second" || !slices.Equal(r.Short, []string{"1"}) {
		t.Errorf("got %+v, want to be told that two minutes are too short", r)
	}
}

// What became dearer is told with its interval.
func ExampleFind() {
	s := newSeries(3)
	var points []change.Point
	for i := range 120 {
		points = append(points, s.point(i, strconv.Itoa(i/60), 8*float64(i/60)))
	}
	for _, c := range change.Find("shop", points, change.Options{}).Changes {
		if c.Owner != "" {
			fmt.Printf("%s with build %s: dearer %v\n", c.At.Format("15:04"), c.Build, c.Diff() > 0)
		}
	}
	// Output: 12:10 with build 1: dearer true
}
