package watch

import (
	"fmt"
	"hash/maphash"
	"testing"

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
