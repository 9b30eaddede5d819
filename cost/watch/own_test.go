package watch

import (
	"cmp"
	"slices"
	"testing"
	"time"
)

// TestThrottle halves what watching does only for what is above the budget for long, and takes
// that back once it is far below.
func TestThrottle(t *testing.T) {
	c := throttle{budget: 0.005}
	note := func(share float64, times int) (changed int) {
		for range times {
			if c.note(share, 1) {
				changed++
			}
		}
		return changed
	}
	if note(0.5, 1); c.level != 0 {
		t.Error("what beginning costs has lowered the rate")
	}
	if note(0.02, rowAbove-1); c.level != 0 {
		t.Error("a short excess has lowered the rate")
	}
	if note(0.02, 1); c.level != 1 || c.hz(19) != 9 || c.every(10*time.Second) != 20*time.Second {
		t.Errorf("got level %d, %d Hz, intervals of %s, want 1, 9 and 20s", c.level, c.hz(19), c.every(10*time.Second))
	}
	if n := note(0.02, 100); c.level != mostHalved || n != mostHalved-1 || c.hz(19) != 1 || c.every(10*time.Second) != 160*time.Second {
		t.Errorf("got level %d after %d changes, want %d", c.level, n, mostHalved)
	}
	if c.every(time.Minute) != longest || c.every(time.Hour) != time.Hour {
		t.Errorf("got intervals of %s and %s, want %s and an hour", c.every(time.Minute), c.every(time.Hour), longest)
	}
	if note(0.003, 100); c.level != mostHalved {
		t.Error("what is within the budget, but would not be at twice the rate, has raised it")
	}
	if note(0.001, 100); c.level != 0 {
		t.Errorf("got level %d, want all the way back", c.level)
	}
}

// TestThrottleByServices allows what services use a share of it, be they many or few.
func TestThrottleByServices(t *testing.T) {
	for _, tt := range []struct {
		share, services float64
		level           int
	}{
		{0.0009, 0, 0}, {0.0011, 0.1, 1}, // a thousandth of a core at least
		{0.003, 0.8, 0}, {0.003, 0.5, 1},
		{0.07, 16, 0}, {0.09, 16, 1},
	} {
		c := throttle{budget: 0.005}
		for range rowAbove + 1 {
			c.note(tt.share, tt.services)
		}
		if c.level != tt.level {
			t.Errorf("%v of a core for services that use %v: got level %d, want %d", tt.share, tt.services, c.level, tt.level)
		}
	}
}

// TestDue counts each process's requests in one interval of twelve, never those of many in the
// same one, and does not go on asking one that answers nobody.
func TestDue(t *testing.T) {
	const intervals, one = 120, 12
	all := make([]*counter, mostCounted)
	for k := range all {
		all[k] = &counter{nth: k, known: k > 0}
	}
	times, most := map[int]int{}, 0
	for n := range intervals {
		now := 0
		for k, o := range all {
			if o.due(n) {
				o.tries++
				times[k]++
				now++
			}
		}
		most = max(most, now)
	}
	for k := 1; k < len(all); k++ {
		if times[k] != intervals/one {
			t.Errorf("process %d was counted in %d of %d intervals, want %d", k, times[k], intervals, intervals/one)
		}
	}
	if want := (mostCounted + one - 1) / one; most > want {
		t.Errorf("%d were counted in one interval, want at most %d", most, want)
	}
	if least := intervals / one; times[0] < least || times[0] > least+3 {
		t.Errorf("one that answers nobody was counted in %d intervals, want %d and a few at first", times[0], least)
	}
}

// TestBusiest has the processes that are looked at stay the same where all use about as much
// CPU, whichever of them use most, and gives up one that uses far less than others.
func TestBusiest(t *testing.T) {
	const most = 16
	var all []*instance
	for k := range 50 {
		all = append(all, &instance{pid: k})
	}
	if first, near := busiest(all, most); first != nil || near != nil {
		t.Errorf("got %d of which nothing is known, want none", len(first))
	}
	chosen := map[*instance]bool{}
	for n := range 100 {
		for k, in := range all {
			in.used = time.Second + time.Duration((k*7+n*13)%50)*6*time.Millisecond
		}
		slices.SortFunc(all, func(a, b *instance) int { return cmp.Compare(b.used, a.used) })
		first, near := busiest(all, most)
		for in := range chosen {
			if !near[in] {
				t.Fatalf("interval %d: process %d was given up", n, in.pid)
			}
		}
		for _, in := range first {
			if len(chosen) < most {
				chosen[in] = true
			}
		}
	}
	idle := all[0]
	idle.used = time.Second / 4
	slices.SortFunc(all, func(a, b *instance) int { return cmp.Compare(b.used, a.used) })
	if first, near := busiest(all, most); len(first) != most || near[idle] {
		t.Errorf("got %d, and one that uses a quarter of what they do near: %t", len(first), near[idle])
	}
	if first, near := busiest(all[:3], most); len(first) != 3 || len(near) != 3 {
		t.Errorf("of three: got %d and %d near, want all", len(first), len(near))
	}
}
