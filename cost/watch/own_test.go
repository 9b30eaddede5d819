package watch

import (
	"fmt"
	"hash/maphash"
	"testing"
	"time"

	"github.com/tarehq/tare/cost"
)

// TestPast keeps each chain once, the latest first, whatever the runtime did inside it.
func TestPast(t *testing.T) {
	chain := func(inner, handler string) cost.Stack {
		return cost.Stack{Value: 1, Frames: []cost.Frame{{Func: inner}, {Func: handler}, {Func: "net/http.(*conn).serve"}, {Func: "runtime.goexit"}}}
	}
	p := &past{seed: maphash.MakeSeed()}
	now := []cost.Stack{chain("runtime.mallocgc", "main.a"), chain("[kernel] tcp_sendmsg", "main.a"), chain("runtime.mapaccess1", "main.b"), {Frames: []cost.Frame{{Func: "runtime.gcBgMarkWorker"}}}}
	if all := p.join(now); len(all) != len(now) || len(p.stacks) != 2 || p.stacks[0].Frames[0].Func != "main.a" || p.stacks[0].Value != 0 {
		t.Errorf("of nothing: got %d stacks, and %v kept", len(all), p.stacks)
	}
	if all := p.join([]cost.Stack{chain("runtime.memmove", "main.b")}); len(all) != 3 || len(p.stacks) != 2 || p.stacks[0].Frames[0].Func != "main.b" {
		t.Errorf("then: got %d stacks, and %v kept", len(all), p.stacks)
	}
	for k := range 2 * remembered {
		p.join([]cost.Stack{chain("runtime.memmove", fmt.Sprint("main.", k))})
	}
	if n := len(p.stacks); n != remembered || p.stacks[0].Frames[0].Func != fmt.Sprint("main.", 2*remembered-1) {
		t.Errorf("got %d kept, %v, want the latest %d", n, p.stacks[0], remembered)
	}
}

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

// TestDue counts each process's requests in one interval of six, never those of many in the
// same one, and does not go on asking one that answers nobody.
func TestDue(t *testing.T) {
	const intervals, one = 60, 6
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
