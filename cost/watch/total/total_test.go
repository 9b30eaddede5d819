package total_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/watch"
	"github.com/tarehq/tare/cost/watch/total"
)

// interval makes one of services, by name, whose owners cost something.
func interval(at time.Time, owners map[string][]cost.Item) *watch.Interval {
	i := &watch.Interval{Begun: at, Duration: 10 * time.Second}
	for _, name := range slices.Sorted(maps.Keys(owners)) {
		items := owners[name]
		b := &cost.Bill{Seconds: 10, Requests: 1000, Per: "request", Items: items}
		for _, it := range items {
			b.CPU += it.Self
		}
		i.Services = append(i.Services, watch.Service{Name: name, CPU: time.Duration(b.CPU * 1000), Bill: b, Builds: []watch.Seen{{Build: watch.Build{Service: name, ID: "x"}, PIDs: []int{1}}}})
	}
	return i
}

func item(kind, owner string, ns float64) cost.Item {
	return cost.Item{Kind: kind, Owner: owner, Self: ns, Causes: []cost.Share{{Cause: "own", Value: ns}}}
}

// TestTotals bounds the rows, loses nothing, and lets a middleware that was taken for a
// handler be one from its beginning.
func TestTotals(t *testing.T) {
	t0 := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	totals := total.Totals{Owners: 3, Services: 2, Keep: time.Minute}
	totals.Add(interval(t0, map[string][]cost.Item{"shop": {item("handler", "auth", 1000), item("handler", "orders", 9000), item("other", "little", 1)}}))
	totals.Add(interval(t0.Add(10*time.Second), map[string][]cost.Item{"shop": {item("middleware", "auth", 2000), item("handler", "stock", 500), item("handler", "late", 7000)}}))
	totals.Add(interval(t0.Add(20*time.Second), map[string][]cost.Item{
		"shop": {item("handler", "auth", 4000)}, "cart": {item("handler", "cart", 100)}, "third": {item("handler", "x", 100)},
	}))
	all := totals.All()
	var names []string
	for _, s := range all {
		names = append(names, s.Service)
		var sum float64
		for _, r := range s.Rows {
			sum += r.CPU
		}
		if math.Abs(sum-s.CPU) > 1e-9 {
			t.Errorf("%s: rows come to %v s of %v", s.Service, sum, s.CPU)
		}
	}
	if len(all) != 3 || !slices.Contains(names, total.Rest) {
		t.Fatalf("got services %q, want two and %s", names, total.Rest)
	}
	shop := all[slices.Index(names, "shop")]
	row := func(kind, owner string, cpu float64) total.Row {
		return total.Row{Kind: kind, Owner: owner, Cause: "own", CPU: cpu}
	}
	want := []total.Row{row("handler", "orders", 0.009), row("handler", "stock", 0.0005), row("middleware", "auth", 0.007), row("other", "other", 0.007001)}
	for k := range shop.Rows {
		shop.Rows[k].CPU = math.Round(shop.Rows[k].CPU*1e9) / 1e9
	}
	if !slices.Equal(shop.Rows, want) {
		t.Errorf("got %v\nwant %v", shop.Rows, want)
	}
	if shop.Requests != 3000 || !shop.Counted || shop.CountedCPU != shop.CPU {
		t.Errorf("got %+v, want 3,000 requests", shop)
	}
	for k := range 10 {
		totals.Add(interval(t0.Add(time.Duration(30+10*k)*time.Second), map[string][]cost.Item{"cart": {item("handler", "cart", 100)}}))
	}
	if all := totals.All(); len(all) != 1 || all[0].Service != "cart" {
		t.Errorf("got %d services after a minute, want the one that runs", len(all))
	}
	if _, took := totals.Own(); took.Intervals != 13 {
		t.Errorf("got %d intervals, want 13", took.Intervals)
	}
}

// TestOwnersGone has a new build's functions get the rows of those of the old build, once these
// were not seen for long.
func TestOwnersGone(t *testing.T) {
	t0 := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	totals := total.Totals{Owners: 2, Keep: time.Minute}
	add := func(k int, items ...cost.Item) (owners []string) {
		totals.Add(interval(t0.Add(time.Duration(k)*10*time.Second), map[string][]cost.Item{"shop": items}))
		for _, r := range totals.All()[0].Rows {
			owners = append(owners, r.Owner)
		}
		return owners
	}
	before, after, stays := item("handler", "func1", 5000), item("handler", "func2", 5000), item("handler", "stays", 5000)
	add(0, before, stays)
	for k := 1; k < 7; k++ {
		if got := add(k, after, stays); !slices.Equal(got, []string{"func1", "stays", total.Rest}) {
			t.Errorf("after %d intervals: got rows of %q, want the first owners to keep theirs", k, got)
		}
	}
	for k, items := range [][]cost.Item{{after, stays}, {before, after, stays}} {
		if got := add(7+k, items...); !slices.Equal(got, []string{"func2", "stays", total.Rest}) {
			t.Errorf("after %d intervals: got rows of %q, want those of what runs now", 7+k, got)
		}
	}
}

// Intervals are added up, and read whenever somebody asks.
func Example() {
	var totals total.Totals
	for k := range 3 {
		totals.Add(interval(time.Unix(int64(10*k), 0), map[string][]cost.Item{"shop": {item("handler", "orders", 40_000)}}))
	}
	for _, s := range totals.All() {
		fmt.Printf("%s: %.2f s, %.0f requests\n", s.Service, s.CPU, s.Requests)
	}
	// Output: shop: 0.12 s, 3000 requests
}
