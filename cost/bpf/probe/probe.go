// Package probe watches every call of chosen functions in a running Go process,
// or slows one of them down, without the process knowing.
//
// A probe is placed on an instruction, and what it costs depends on which: the
// kernel emulates a few kinds (a push, a call, a jump), which takes half a
// microsecond, and steps over all others one by one, which takes twenty times
// that. So a function's beginning is probed at the push in its prologue, and its
// end not at its return at all but at a mark: the first emulated instruction
// that its caller, or a caller of that, runs after the call. Which those are is
// read from the machine code behind the return addresses that calls really had.
//
// Calls are distinguished by goroutine and by their distance from the top of its
// stack, since goroutines change threads and stacks are moved. Frames that a
// panic left are found by the next call at the same distance.
//
// Promised: calls are counted exactly while probes are attached; time is the wall
// clock's, waiting included, net of the probes' own time as measured on this
// machine; what was lost is counted. Return probes are never used: they change
// return addresses, which kills Go programs. If this process ends, in whatever
// way, the kernel takes its probes away.
//
// Needs Linux 6.6 on amd64, root (or CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE),
// and a process written in Go that package pclntab can read; elsewhere the calls
// answer an error that wraps cost.ErrNotSupported. On arm64 requests are counted and
// owners slowed down, but calls are not timed.
package probe

import (
	"time"

	"github.com/tarehq/tare/cost"
)

// Watched is an owner of cost whose calls can be watched, or not.
type Watched struct {
	Owner cost.Owner
	// Symbols are the functions that the linker made of it: one function literal
	// can be several.
	Symbols []string
	// Reason says why it cannot be watched; "" if it can.
	Reason string
	// Aside says that nobody named it: it is directly inside one that was named,
	// whose own time is what is left when its is taken off.
	Aside bool
	// Met says that it was seen to handle a request, Around that another owner was
	// seen inside it then.
	Met, Around bool

	pushes []uint64 // link-time addresses of the probes on its beginning
}

// Price is what a hit of a probe costs a service that runs into it, by what it costs
// in a loop on this machine.
type Price struct {
	Hit time.Duration
	// Trap is the part of one side of a hit that the probe's own clock cannot see.
	Trap time.Duration
	// Count is what a hit costs of a probe that does nothing but count.
	Count time.Duration
}

// Forecast is what watching will cost.
type Forecast struct {
	Hits  float64 // a second
	Share float64 // of the process's CPU time while probes are attached
	Calls []float64
}

// Options say how long owners are watched.
type Options struct {
	For    time.Duration // in all
	Window time.Duration // probes are attached at a time; 0 means one second
	Share  float64       // of the time that probes are attached; 0 means all of it
}

// Measurement is what was seen while probes were attached.
type Measurement struct {
	Walls    []cost.Wall
	Attached time.Duration // how long probes were attached, in all
	Requests float64       // calls of the function that begins a request; 0 if it is not known
	Hits     float64       // of probes
	CPU      time.Duration // of the process while probes were attached
	Marks    int           // placed at last
	Warnings []error
}

// Share returns the part of the process's CPU time that the probes took while
// they were attached, at a price.
func (m *Measurement) Share(p Price) float64 {
	if m.CPU <= 0 {
		return 0
	}
	return m.Hits * p.Hit.Seconds() / m.CPU.Seconds()
}

// Slowest is the most by which a call may be slowed down.
const Slowest = time.Millisecond

// Reading is what a Brake has counted.
type Reading struct {
	At       time.Time
	Requests uint64
	Calls    uint64        // of the owner
	Taken    time.Duration // in all
	CPU      time.Duration // of the process
	Took     time.Duration // what lies between the readings that this is the difference of
}

// Since returns what was counted between an earlier reading and this one; At is
// the later one's.
func (r Reading) Since(earlier Reading) Reading {
	r.Took = r.At.Sub(earlier.At)
	r.Requests -= earlier.Requests
	r.Calls -= earlier.Calls
	r.Taken -= earlier.Taken
	r.CPU -= earlier.CPU
	return r
}
