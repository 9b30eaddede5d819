package work

import (
	"runtime"
	"sync/atomic"
	"time"
)

// account is what /truth says of one cost.
type account struct {
	Calls    int64   `json:"calls"`
	Wall     int64   `json:"ns"`
	CPU      float64 `json:"cpu_ns,omitempty"`    // of all calls, reckoned from cpu_calls of them
	CPUCalls int64   `json:"cpu_calls,omitempty"` // those whose CPU time was taken
	Bytes    int64   `json:"bytes,omitempty"`
	Wait     int64   `json:"wait_ns,omitempty"`
}

// meter adds calls up. It is safe for concurrent use.
type meter struct {
	calls, wall   atomic.Int64
	cpu, cpuCalls atomic.Int64
	asking        time.Duration // what asking for the CPU time adds to it
}

func (m *meter) account() account {
	a := account{Calls: m.calls.Load(), Wall: m.wall.Load(), CPUCalls: m.cpuCalls.Load()}
	if a.CPUCalls > 0 {
		a.CPU = float64(m.cpu.Load()) / float64(a.CPUCalls) * float64(a.Calls)
	}
	return a
}

// every is how many calls there are to one whose CPU time is taken.
const every = 16

// reading is a call that is under way.
type reading struct {
	begun time.Time
	cpu   time.Duration // the thread's when the call began, if that was asked
	tid   int           // of the thread; 0: not asked, or not to be had
}

func (m *meter) begin() reading {
	r := reading{begun: time.Now()}
	if m.calls.Add(1)%every == 0 {
		r.cpu, r.tid = threadCPU()
	}
	return r
}

// longest is how long a call may take for its CPU time to count: the scheduler
// takes a goroutine off its thread after 10 ms at most, and lets others run there.
const longest = 5 * time.Millisecond

// end counts the call.
func (r reading) end(m *meter) {
	wall := time.Since(r.begun)
	if r.tid != 0 && wall < longest {
		now, tid := threadCPU()
		if spent := now - r.cpu; tid == r.tid && spent <= time.Since(r.begun) {
			m.cpu.Add(int64(max(0, spent-m.asking)))
			m.cpuCalls.Add(1)
		}
	}
	m.wall.Add(int64(wall))
}

// asking measures what is between two questions for the CPU time with nothing in
// between, at its least.
func asking() time.Duration {
	least := time.Duration(1 << 62)
	for range 1000 {
		before, thread := threadCPU()
		after, same := threadCPU()
		if spent := after - before; thread == same {
			least = min(least, spent)
		}
	}
	return least
}

// sink keeps the compiler from leaving burn out.
var sink atomic.Uint64

// burn takes a time in proportion to n: xorshift, which nothing can skip.
//
//go:noinline
func burn(n int) uint64 {
	x := uint64(88172645463325252)
	for range n {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}

// perSecond returns how many rounds of burn a second has, at its best of many
// tries: what else ran meanwhile only makes it less.
func perSecond() float64 {
	const rounds = 200_000
	best := time.Duration(1 << 62)
	for range 50 {
		begun := time.Now()
		sink.Store(burn(rounds))
		best = min(best, time.Since(begun))
	}
	return rounds / best.Seconds()
}

func rounds(perSecond float64, d time.Duration) int { return max(1, int(perSecond*d.Seconds())) }

// newAlloc asks the runtime what one call takes of the heap: sizes are rounded up
// to classes. What else was allocated meanwhile only makes it more.
func newAlloc(bytes int, asking time.Duration) *Alloc {
	a := &Alloc{meter: meter{asking: asking}, bytes: bytes, weight: 1 << 62}
	const calls = 16
	for range 8 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range calls {
			a.take()
		}
		runtime.ReadMemStats(&after)
		a.weight = min(a.weight, int64(after.TotalAlloc-before.TotalAlloc)/calls)
	}
	return a
}
