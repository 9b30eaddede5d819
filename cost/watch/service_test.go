package watch

import (
	"testing"
	"time"

	"github.com/tarehq/tare/cost/bpf"
)

// TestCounted says of a build since when its requests rest on the same counts: those of its
// processes are counted by turns, and used until the next.
func TestCounted(t *testing.T) {
	begun := time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)
	build := Build{Service: "shop", ID: "x"}
	two := []*instance{{Build: build, pid: 1}, {Build: build, pid: 2}}
	count := counted{Requests: 100, CPU: time.Second, Margin: 0.1, Windows: 4}
	for k, c := range []struct {
		counts   []counted // of the two processes
		from     int       // the interval of the earliest count that is used; -1: none
		requests float64
	}{
		{[]counted{count, {}}, -1, 0}, // one is not counted yet
		{[]counted{{}, count}, 0, 200},
		{[]counted{{}, {}}, 0, 200},
		{[]counted{count, {}}, 1, 200},
		{[]counted{{}, count}, 3, 200},
	} {
		g := newGroups(10*time.Second, begun.Add(time.Duration(k)*10*time.Second))
		for i, in := range two {
			g.add(in, &bpf.Process{PID: in.pid, CPU: time.Second}, c.counts[i])
		}
		var want time.Time
		if c.from >= 0 {
			want = begun.Add(time.Duration(c.from) * 10 * time.Second)
		}
		if s := g.done()[0]; !s.Counted.Equal(want) || s.Window.Requests != c.requests {
			t.Errorf("interval %d: %v requests counted at %v, want %v at %v", k, s.Window.Requests, s.Counted, c.requests, want)
		}
	}
}
