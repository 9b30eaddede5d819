package work

import (
	"runtime"
	"slices"
	"sync/atomic"
	"time"
)

// account is what /truth says of one cost.
type account struct {
	Calls    int64   `json:"calls"`
	Wall     int64   `json:"ns,omitempty"`        // of what waits alone
	CPU      float64 `json:"cpu_ns,omitempty"`    // of all calls, reckoned from cpu_calls of them
	CPUCalls int64   `json:"cpu_calls,omitempty"` // those whose CPU time was taken
	Bytes    int64   `json:"bytes,omitempty"`
	Wait     int64   `json:"wait_ns,omitempty"`
}

// meter adds calls up. It is safe for concurrent use.
//
// What it does at a call is in a profile but not in the account, but for what settle learns
// of it with nobody else there. So it is one addition where no clock is read.
type meter struct {
	calls         atomic.Int64
	cpu, cpuCalls atomic.Int64
	missed        float64 // nanoseconds that a call takes more than is counted of it
}

func (m *meter) account() account {
	a := account{Calls: m.calls.Load(), CPUCalls: m.cpuCalls.Load()}
	if a.CPUCalls > 0 {
		a.CPU = (float64(m.cpu.Load())/float64(a.CPUCalls) + m.missed) * float64(a.Calls)
	}
	return a
}

// timer adds up calls that wait. It is safe for concurrent use.
type timer struct{ calls, wall atomic.Int64 }

func (t *timer) count(begun time.Time) {
	t.calls.Add(1)
	t.wall.Add(int64(time.Since(begun)))
}

func (t *timer) account() account { return account{Calls: t.calls.Load(), Wall: t.wall.Load()} }

// every is how many calls there are to one whose CPU time is taken.
const every = 16

// reading is a call that is under way.
type reading struct {
	thread int           // where the call began; 0 if that was not asked, or cannot be told
	cpu    time.Duration // the thread's then
}

// begin asks for the CPU time last, and end asks for it first, so that as little of
// the asking as can be is in the call's.
func (m *meter) begin() reading {
	if m.calls.Add(1)%every != 0 {
		return reading{}
	}
	r := reading{thread: thread()}
	r.cpu = threadCPU()
	return r
}

// end counts the call. The CPU time of one that came back on another thread does
// not count: that thread has a clock of its own.
//
// Note: a call amid which others got the processor counts. On a server that is idle
// half of the time one spin in eight is interrupted so by the runtime's system
// monitor, and those take 10 µs more, interrupt and switching included. Without them
// the account was 6 % short of what the CPU spent there.
func (r reading) end(m *meter) {
	if r.thread == 0 {
		return
	}
	if cpu := threadCPU(); thread() == r.thread {
		m.cpu.Add(int64(cpu - r.cpu))
		m.cpuCalls.Add(1)
	}
}

// settle holds the account against a thread that does nothing but these calls,
// whose CPU time is known without asking amid them. Asking adds to a call, and
// counting itself is in a profile but not in the account: what is missed, or counted
// too much, is the median of many tries.
func (m *meter) settle(do func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const tries, calls = 50, 10 * every
	var missed []float64
	for range tries {
		m.reset()
		before := threadCPU()
		for range calls {
			do()
		}
		after := threadCPU()
		if a := m.account(); a.CPUCalls > 0 {
			missed = append(missed, (float64(after-before)-a.CPU)/calls)
		}
	}
	m.reset()
	if len(missed) > 0 {
		slices.Sort(missed)
		m.missed = missed[len(missed)/2]
	}
}

// reset forgets all calls.
func (m *meter) reset() {
	for _, n := range []*atomic.Int64{&m.calls, &m.cpu, &m.cpuCalls} {
		n.Store(0)
	}
}

// burn takes a time in proportion to n: xorshift, which nothing can skip.
//
//go:noinline
func burn(n int) {
	x := uint64(88172645463325252)
	for range n {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	if x == 0 {
		panic("xorshift came to 0, which it cannot") // so that the compiler needs x
	}
}

// perSecond returns how many rounds of burn a second has, at its best of many
// tries: what else ran meanwhile only makes it less.
func perSecond() float64 {
	const rounds = 200_000
	best := time.Duration(1 << 62)
	for range 50 {
		begun := time.Now()
		burn(rounds)
		best = min(best, time.Since(begun))
	}
	return rounds / best.Seconds()
}

func rounds(perSecond float64, d time.Duration) int { return max(1, int(perSecond*d.Seconds())) }

// newAlloc asks the runtime what one call takes of the heap: sizes are rounded up
// to classes. What else was allocated meanwhile only makes it more.
func newAlloc(bytes int) *Alloc {
	a := &Alloc{bytes: bytes, weight: 1 << 62}
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
	a.settle(a.Do)
	return a
}
