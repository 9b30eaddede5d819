package watch

import "testing"

// TestThrottle halves the rate only for what is above the budget for long, and takes that
// back once it is far below.
func TestThrottle(t *testing.T) {
	c := throttle{budget: 0.005}
	note := func(share float64, times int) (changed int) {
		for range times {
			if c.note(share) {
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
	if note(0.02, 1); c.level != 1 || c.hz(19) != 9 || !c.counts() {
		t.Errorf("got level %d, %d Hz, want 1 and 9", c.level, c.hz(19))
	}
	if c.note(0.003); c.counts() {
		t.Error("requests are counted in every interval, want in one of twelve")
	}
	if n := note(0.02, 100); c.level != mostHalved || n != mostHalved-1 || c.hz(19) != 1 {
		t.Errorf("got level %d after %d changes, want %d", c.level, n, mostHalved)
	}
	if note(0.003, 100); c.level != mostHalved {
		t.Error("what is within the budget, but would not be at twice the rate, has raised it")
	}
	if note(0.001, 2*rowBelow+5); c.level != mostHalved-2 {
		t.Errorf("got level %d, want two steps back", c.level)
	}
}
