// Package cost charges the CPU and memory of a Go HTTP service to owners: each
// middleware, router, engine, handler, client call and the runtime.
//
// A source (a CPU profile, an allocation profile) gives stacks with values. Each
// stack is charged to one owner and one cause, so that the table of owners adds
// up to the whole:
//
//   - The owner is the innermost frame that belongs to a middleware, router,
//     engine or handler. It is known by the source file and line of its function
//     and by its caller, never by its name alone: Go names an inlined
//     constructor's closure after its caller.
//   - The cause is what was done for it: its own code, allocation, the
//     collector's assists, a system call, a lock, scheduling, encoding …
//
// Background work of the collector has no owner on its stacks. It is shared out by
// bytes allocated, since the number of cycles is in proportion to them
// ([Table.ShareGC]).
//
// Promised: every stack is counted once, and stacks without an owner have a row of
// their own. Not promised: the effect of removing an owner. It is more or less than
// the owner's cost if it changes how other code runs.
package cost

import (
	"errors"
	"math"
	"time"
)

// ErrNotSupported is wrapped by errors that say what this system, or the process
// looked at, lacks.
var ErrNotSupported = errors.New("not supported here")

// Frame is one function on a stack; inlined functions have frames of their own.
type Frame struct {
	Func string // as the linker names it, such as net/http.(*conn).serve
	File string // "" if unknown
	Line int    // the line that was executing
	Decl int    // the line on which the function begins, 0 if unknown
}

// Stack is what a source saw: where, how often and how much.
type Stack struct {
	Frames []Frame // innermost first
	Count  float64 // times seen (CPU) or objects (allocations)
	Value  float64 // nanoseconds or bytes
}

// Amount is what was seen of something.
type Amount struct {
	Count float64
	Value float64
}

func (a *Amount) add(s *Stack) {
	a.Count += s.Count
	a.Value += s.Value
}

// Margin is half the width of the 95 % interval of Value that comes of having
// seen Count stacks and no more: 1.96 standard deviations of a Poisson count. It
// is for stacks that were sampled; what the interval leaves out is how the load
// itself varies.
func (a Amount) Margin() float64 {
	if a.Count <= 0 {
		return 0
	}
	return 1.96 * a.Value / math.Sqrt(a.Count)
}

// Window is the time and work that a table stands for.
type Window struct {
	Duration time.Duration
	// Requests answered meanwhile; 0 if nobody counted.
	Requests float64
	// Margin is half the width of the 95 % interval of Requests; 0 if they were counted
	// one by one.
	Margin float64
}
