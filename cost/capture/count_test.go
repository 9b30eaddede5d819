package capture

import (
	"math"
	"testing"
	"time"

	"github.com/tarehq/tare/cost/bpf"
	"github.com/tarehq/tare/cost/bpf/probe"
)

// TestTakeLater has programs begin while others' requests are counted: a process goes on
// as another one, or new ones take over from those of the same program. What they used
// stands for requests as well.
func TestTakeLater(t *testing.T) {
	process := func(pid int, name string, cpu time.Duration) bpf.Process {
		return bpf.Process{PID: pid, Name: name, CPU: cpu}
	}
	seen := func(requests float64, cpu time.Duration) probe.Counted {
		return probe.Counted{Requests: requests, CPU: cpu, Margin: 0.1, Windows: 3}
	}
	for _, tt := range []struct {
		name             string
		pids             []int
		seen             []probe.Counted
		all              []bpf.Process
		requests, margin float64
		warnings         int
	}{
		{"one", []int{1}, []probe.Counted{seen(100, time.Second)}, []bpf.Process{process(1, "shop", 10*time.Second)}, 1000, 100, 0},
		{"renewed in place", []int{1}, []probe.Counted{seen(100, time.Second)}, []bpf.Process{process(1, "shop", 8*time.Second), process(1, "shop.new", 2*time.Second)}, 1000, 100, 1},
		{"taken over", []int{1}, []probe.Counted{seen(100, time.Second)}, []bpf.Process{process(2, "shop", 8*time.Second), process(1, "shop", 2*time.Second)}, 1000, 100, 1},
		{"a third", []int{1, 2}, []probe.Counted{seen(100, time.Second), seen(300, 3*time.Second)}, []bpf.Process{process(1, "shop", 4*time.Second), process(2, "shop", 4*time.Second), process(3, "shop", 2*time.Second)}, 1000, math.Hypot(45, 55), 1},
		{"no server", []int{1}, []probe.Counted{seen(100, time.Second)}, []bpf.Process{process(1, "shop", 10*time.Second), process(2, "ships-logs", time.Second)}, 1000, 100, 0},
		{"one without requests", []int{1, 2}, []probe.Counted{seen(100, time.Second), {}}, []bpf.Process{process(1, "shop", 10*time.Second), process(2, "shop", time.Second)}, 1000, 100, 0},
	} {
		c := &Capture{}
		c.takeCount(&counting{pids: tt.pids, seen: tt.seen, counters: make([]*probe.Counter, len(tt.pids))}, tt.all)
		if got := c.Window; got.Requests != tt.requests || math.Abs(got.Margin-tt.margin) > 1e-6 {
			t.Errorf("%s: got %v ± %v requests, want %v ± %v", tt.name, got.Requests, got.Margin, tt.requests, tt.margin)
		}
		if len(c.Warnings) != tt.warnings {
			t.Errorf("%s: got warnings %v, want %d", tt.name, c.Warnings, tt.warnings)
		}
	}
}
