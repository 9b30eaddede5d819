package diff_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/diff"
	"github.com/tarehq/tare/cost/pprof"
)

const (
	conn = "net/http.(*conn).serve"
	call = "net/http.HandlerFunc.ServeHTTP"
	mux  = "net/http.(*ServeMux).ServeHTTP"
)

// stack makes frames from the outermost: "func@file".
func stack(count float64, outermost ...string) cost.Stack {
	s := cost.Stack{Count: count, Value: count * 1e6}
	for i := len(outermost) - 1; i >= 0; i-- {
		f := cost.Frame{}
		f.Func, f.File, _ = strings.Cut(outermost[i], "@")
		s.Frames = append(s.Frames, f)
	}
	return s
}

// service is a program whose costs are known: rates are stacks a capture.
type service struct {
	layers []layer // outermost first
	spread float64 // by which captures differ beyond chance: a share of each rate
}

type layer struct {
	name      string
	rate      float64
	functions int // within it, among which its rate is shared
}

// capture draws one profile of 1000 requests.
func (s service) capture(rng *rand.Rand) diff.Capture {
	c := diff.Capture{Window: cost.Window{Requests: 1000, Duration: time.Second}}
	around := []string{"runtime.goexit", conn, mux}
	for _, l := range s.layers {
		around = append(around, call, fmt.Sprintf("main.%s@/src/%s/%s.go", l.name, l.name, l.name))
		for i := range max(1, l.functions) {
			rate := l.rate / float64(max(1, l.functions)) * (1 + s.spread*rng.NormFloat64())
			if n := poisson(rng, rate); n > 0 {
				c.Stacks = append(c.Stacks, stack(n, append(append([]string{}, around...), fmt.Sprintf("%s.part%d", l.name, i))...))
			}
		}
	}
	return c
}

// allocations draws one allocation profile of 1000 requests as the runtime makes it:
// of every 512 KiB one object is sampled on average, and stands for all of its size.
// A layer's parts allocate objects of other sizes, from 64 bytes to 4 MiB.
func (s service) allocations(rng *rand.Rand) diff.Capture {
	c := s.capture(rng)
	for i := range c.Stacks {
		size := float64(int(64) << (4 * (i % 5)))
		objects := math.Round(c.Stacks[i].Count / -math.Expm1(-size/(512<<10)))
		c.Stacks[i].Count, c.Stacks[i].Value = objects, objects*size
	}
	c.Stacks = pprof.New(pprof.Allocs, time.Second, c.Stacks).Sampled()
	return c
}

func (s service) captures(rng *rand.Rand, n int) []diff.Capture {
	all := make([]diff.Capture, n)
	for i := range all {
		all[i] = s.capture(rng)
	}
	return all
}

func poisson(rng *rand.Rand, mean float64) float64 {
	n := 0.0
	for t := rng.ExpFloat64(); t < mean; t += rng.ExpFloat64() {
		n++
	}
	return n
}

func compare(t *testing.T, a, b []diff.Capture) *diff.Result {
	t.Helper()
	r, err := diff.Compare(a, b, diff.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// many is a service of many layers and functions.
func many(spread float64) service {
	s := service{spread: spread}
	for i := range 8 {
		s.layers = append(s.layers, layer{fmt.Sprintf("layer%02d", i), 40 + 50*float64(i), 4})
	}
	return s
}

// TestNear checks what is said to come near a difference: of a service compared
// with itself some rows do by chance, each by its own interval, the nearest first.
func TestNear(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	seen := 0
	for range 20 {
		s := many(0.1)
		r := compare(t, s.captures(rng, 5), s.captures(rng, 5))
		last := 0.0
		for _, row := range r.Near() {
			seen++
			if !row.Tested || row.Differs || row.P < last || row.P >= 0.05 || row.Lo*row.Hi <= 0 {
				t.Errorf("near: %+v after p = %g, want one not told apart, its own interval without 0, in order", row, last)
			}
			last = row.P
		}
		if n := len(r.Owners); r.Tests() > n || r.Tests() < n-1 {
			t.Errorf("%d of %d owners tested, want all that are seen often", r.Tests(), n)
		}
	}
	if seen == 0 || seen > 40 {
		t.Errorf("%d near misses in 20 comparisons of some 9 owners, want about 9", seen)
	}
}

// TestNothingDiffers compares a service with itself, over and over: of the
// comparisons no more than q may tell anything apart, since whatever they tell is
// false. The bound is that of 60 comparisons at q with a chance of one in ten
// thousand to fail.
func TestNothingDiffers(t *testing.T) {
	for _, spread := range []float64{0, 0.1} {
		for _, n := range []int{1, 2, 5} {
			if n == 1 && spread > 0 {
				continue // nothing tells them apart: that is what the warning is for
			}
			rng := rand.New(rand.NewPCG(1, uint64(n)))
			const tries = 60
			owners, functions, totals := 0, 0, 0
			for range tries {
				s := many(spread)
				r := compare(t, s.captures(rng, n), s.captures(rng, n))
				owners += told(r.Owners)
				functions += told(r.Functions)
				totals += told([]diff.Row{r.Total})
			}
			if limit := 10; owners > limit || functions > limit || totals > limit {
				t.Errorf("spread %g, %d captures: owners told apart in %d of %d comparisons, functions in %d, totals in %d, want at most %d", spread, n, owners, tries, functions, totals, limit)
			}
		}
	}
}

// told is 1 if any row is told to differ.
func told(rows []diff.Row) int {
	for _, r := range rows {
		if r.Differs {
			return 1
		}
	}
	return 0
}

// TestCoverage checks that intervals of 95 % hold the true difference.
func TestCoverage(t *testing.T) {
	for _, spread := range []float64{0, 0.2} {
		rng := rand.New(rand.NewPCG(2, 3))
		a := service{spread: spread, layers: []layer{{"some", 100, 1}, {"other", 400, 1}}}
		b := service{spread: spread, layers: []layer{{"some", 150, 1}, {"other", 400, 1}}}
		const tries = 200
		held := 0
		for range tries {
			r := compare(t, a.captures(rng, 5), b.captures(rng, 5))
			for _, row := range r.Owners {
				if row.Owner == "some.some" && row.Lo <= 50e3 && 50e3 <= row.Hi {
					held++
				}
			}
		}
		if held < 176 {
			t.Errorf("spread %g: the interval held the truth in %d of %d, want at least 176", spread, held, tries)
		}
	}
}

// TestOneLayerDiffers injects cost into one layer, and puts another around all:
// what is found is that, and nothing else but what the rate of false findings
// allows.
func TestOneLayerDiffers(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 5))
	found, false_ := 0, 0
	const tries = 30
	for range tries {
		a, b := many(0.03), many(0.03)
		b.layers[7].rate *= 2
		b.layers = append([]layer{{"added", 100, 1}}, b.layers...)
		r := compare(t, a.captures(rng, 5), b.captures(rng, 5))
		if !r.Total.Differs {
			t.Errorf("the total is not told to differ: %+v", r.Total)
		}
		for _, row := range r.Owners {
			switch injected := row.Owner == "layer07.layer07" || row.Owner == "added.added"; {
			case row.Differs && injected && row.Diff > 0 && row.Lo > 0:
				found++
			case row.Differs:
				false_++
			}
		}
	}
	if found != 2*tries {
		t.Errorf("found %d of %d injected costs", found, 2*tries)
	}
	if false_ > tries/4 { // 2 true ones and q = 0.05 allow about a tenth of a false one each
		t.Errorf("%d layers besides were told to differ in %d comparisons", false_, tries)
	}
}

// TestAllocationsDiffer compares allocations of a service with its own, and with
// those of one of which a layer allocates twice as much, by as many comparisons and
// within the same bound as TestNothingDiffers.
// TestRequestsDoubtful has captures of a program that differ by no more than what is
// not known of their requests: single ones, and several.
func TestRequestsDoubtful(t *testing.T) {
	of := func(requests, margin float64) diff.Capture {
		return diff.Capture{
			Stacks: []cost.Stack{stack(10_000, "runtime.goexit", conn, mux, call, "main.a@/src/a.go", "a.part")},
			Window: cost.Window{Requests: requests, Margin: margin, Duration: time.Second},
		}
	}
	for _, tt := range []struct {
		margin  float64
		differs bool
	}{{0, true}, {20, true}, {200, false}} {
		for n := 1; n <= 3; n++ {
			var a, b []diff.Capture
			for range n {
				a, b = append(a, of(1000, tt.margin)), append(b, of(1100, tt.margin*1.1))
			}
			res, err := diff.Compare(a, b, diff.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got := res.Total.Differs; got != tt.differs {
				t.Errorf("%d captures of 1000 and 1100 requests ± %.0f: differs %t, want %t: %+v", n, tt.margin, got, tt.differs, res.Total)
			}
			if owner := res.Owners[0]; owner.Differs != tt.differs {
				t.Errorf("%d captures of 1000 and 1100 requests ± %.0f: %s differs %t, want %t", n, tt.margin, owner.Owner, owner.Differs, tt.differs)
			}
		}
	}
}

func TestAllocationsDiffer(t *testing.T) {
	for _, n := range []int{1, 2, 5} {
		rng := rand.New(rand.NewPCG(8, uint64(n)))
		const tries = 60
		owners, functions, found := 0, 0, 0
		for range tries {
			var a, same, more []diff.Capture
			service, dearer := many(0), many(0)
			dearer.layers[7].rate *= 2
			for range n {
				a, same, more = append(a, service.allocations(rng)), append(same, service.allocations(rng)), append(more, dearer.allocations(rng))
			}
			r := compare(t, a, same)
			owners += told(r.Owners)
			functions += told(r.Functions)
			for _, row := range compare(t, a, more).Owners {
				if row.Owner == "layer07.layer07" && row.Differs && row.Lo > 0 {
					found++
				}
			}
		}
		if limit := 10; owners > limit || functions > limit {
			t.Errorf("%d captures: owners told apart in %d of %d comparisons, functions in %d, want at most %d", n, owners, tries, functions, limit)
		}
		if n != 2 && found < tries/2 { // two have next to no degrees of freedom
			t.Errorf("%d captures: twice as much found in %d of %d comparisons, want at least half", n, found, tries)
		}
	}
}

func TestRows(t *testing.T) {
	at := func(n float64) diff.Capture {
		return diff.Capture{
			Window: cost.Window{Requests: 100},
			Stacks: []cost.Stack{
				stack(n, conn, call, "main.Auth.func1@/a/src/auth/auth.go", "main.check", "main.check"),
				stack(7, "runtime.gcBgMarkWorker"),
			},
		}
	}
	r := compare(t, []diff.Capture{at(40), at(40), at(40)}, []diff.Capture{at(90), at(90), at(90)})
	if r.Per != "request" || r.Total.A != 470e3 || r.Total.B != 970e3 {
		t.Errorf("total %+v per %s, want 470 and 970 µs per request", r.Total, r.Per)
	}
	o := r.Owners[0]
	if o.Owner != "auth.Auth" || o.Kind != "handler" || o.A != 400e3 || o.B != 900e3 || o.Diff != 500e3 || !o.Differs || o.Lo >= o.Diff || o.Hi <= o.Diff {
		t.Errorf("first owner %+v", o)
	}
	var names []string
	for _, f := range r.Functions {
		if f.Owner == "auth.Auth" {
			names = append(names, f.Function)
			if f.A != 400e3 || f.B != 900e3 { // recursion counts once
				t.Errorf("%s: %g and %g, want 400 and 900 µs", f.Function, f.A, f.B)
			}
		}
	}
	if got := strings.Join(names, " "); got != "auth.Auth.func main.check" {
		t.Errorf("functions of auth.Auth: %s", got)
	}
	var a, b float64
	for _, p := range r.Paths {
		a, b = a+p.A, b+p.B
		if p.Owner == nil || len(p.Functions) == 0 {
			t.Errorf("path %+v lacks its rows", p)
		}
	}
	if math.Abs(a-r.Total.A) > 1 || math.Abs(b-r.Total.B) > 1 {
		t.Errorf("paths come to %g and %g, want the totals %g and %g", a, b, r.Total.A, r.Total.B)
	}
}

// TestSameFunction checks that a middleware is the same wherever it stands in a
// chain, whatever its literal's number and its line.
func TestSameFunction(t *testing.T) {
	a := diff.Capture{Stacks: []cost.Stack{stack(50, conn, call, "main.main.Auth.func3@/a/auth/auth.go")}}
	b := diff.Capture{Stacks: []cost.Stack{stack(50, conn, call, "main.Other@/b/other.go", call, "main.main.Auth.func12@/b/auth/auth.go")}}
	b.Stacks[0].Frames[0].Decl = 99
	for _, row := range compare(t, []diff.Capture{a}, []diff.Capture{b}).Owners {
		if row.Owner == "auth.Auth" && (row.A != 50e6 || row.B != 50e6 || row.Differs) {
			t.Errorf("auth.Auth: %+v, want 50 ms on both sides", row)
		}
	}
}

// TestSameGoroutine checks the same of a literal that is a goroutine's first function,
// and that it stays apart from the middleware in which it is written.
func TestSameGoroutine(t *testing.T) {
	capture := func(literal string, decl int) diff.Capture {
		started := stack(50, "runtime.goexit", literal+".1@/a/auth/auth.go", "main.check")
		started.Frames[1].Decl = decl
		return diff.Capture{Stacks: []cost.Stack{stack(20, conn, call, literal+"@/a/auth/auth.go"), started}}
	}
	got := map[string][2]float64{}
	for _, row := range compare(t, []diff.Capture{capture("main.main.Auth.func3", 9)}, []diff.Capture{capture("main.main.Auth.func12", 30)}).Owners {
		got[row.Owner] = [2]float64{row.A, row.B}
	}
	want := map[string][2]float64{"auth.Auth": {20e6, 20e6}, "auth.Auth.func": {50e6, 50e6}}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestMoved wants two checkouts in folders of different names to be told, since all that
// package main has looks new in the second; but no handler that took another's place.
func TestMoved(t *testing.T) {
	in := func(folder, fn string) []diff.Capture {
		c := diff.Capture{Window: cost.Window{Requests: 1000}, Stacks: []cost.Stack{stack(50, conn, call, fn+"@/src/"+folder+"/mw.go")}}
		return []diff.Capture{c, c, c, c, c}
	}
	for _, tc := range []struct {
		a, b []diff.Capture
		want string
	}{
		{in("shop", "main.(*auth).ServeHTTP"), in("shop-2", "main.(*auth).ServeHTTP"), "owners of shop in A and of shop-2 in B differ only by their folder"},
		{in("shop", "main.(*auth).ServeHTTP"), in("shop", "main.(*auth).ServeHTTP"), ""},
		{in("shop", "main.(*auth).ServeHTTP"), in("shop-2", "main.(*limit).ServeHTTP"), ""},
		{in("shop-1.0", "main.(*auth).ServeHTTP"), in("shop-1.1", "main.(*auth).ServeHTTP"), "owners of shop-1.0 in A and of shop-1.1 in B differ only by their folder"},
		{in("shop", "main.main.func1"), in("shop-2", "main.main.func2"), "owners of shop in A and of shop-2 in B differ only by their folder"},
		{in("users", "example.org/shop/users.(*Handler).ServeHTTP"), in("orders", "example.org/shop/orders.(*Handler).ServeHTTP"), ""},
	} {
		r := compare(t, tc.a, tc.b)
		if got := fmt.Sprint(errors.Join(r.Warnings...)); (tc.want == "") != (len(r.Warnings) == 0) || !strings.Contains(got, tc.want) {
			t.Errorf("got warnings %v of %+v, want %q", r.Warnings, r.Owners, tc.want)
		}
	}
}

func TestPer(t *testing.T) {
	at := func(w cost.Window) []diff.Capture {
		return []diff.Capture{{Window: w, Stacks: []cost.Stack{stack(10, conn)}}}
	}
	for _, tc := range []struct {
		a, b     cost.Window
		per      string
		warnings int
	}{
		{cost.Window{Requests: 5, Duration: 1}, cost.Window{Requests: 5}, "request", 1},
		{cost.Window{Requests: 5, Duration: 1}, cost.Window{Duration: 1}, "second", 2},
		{cost.Window{Requests: 5}, cost.Window{Duration: 1}, "profile", 2},
	} {
		r := compare(t, at(tc.a), at(tc.b))
		if r.Per != tc.per || len(r.Warnings) != tc.warnings {
			t.Errorf("windows %+v and %+v: per %s, warnings %v, want %s and %d", tc.a, tc.b, r.Per, r.Warnings, tc.per, tc.warnings)
		}
	}
	if _, err := diff.Compare(nil, at(cost.Window{}), diff.Options{}); !errors.Is(err, diff.ErrNothing) {
		t.Errorf("without captures: got %v, want ErrNothing", err)
	}
}

func Example() {
	capture := func(n float64) diff.Capture {
		return diff.Capture{
			Window: cost.Window{Requests: 1000},
			Stacks: []cost.Stack{{Count: n, Value: n * 1e6, Frames: []cost.Frame{
				{Func: "example.org/mw.(*auth).ServeHTTP", File: "/src/mw/auth.go", Decl: 9},
				{Func: "net/http.(*conn).serve"},
			}}},
		}
	}
	r, err := diff.Compare([]diff.Capture{capture(100), capture(104)}, []diff.Capture{capture(200), capture(196)}, diff.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, row := range r.Owners {
		fmt.Printf("%s %+.0f ns per %s, differs: %v\n", row.Owner, row.Diff, r.Per, row.Differs)
	}
	// Output: mw.(*auth).ServeHTTP +96000 ns per request, differs: true
}
