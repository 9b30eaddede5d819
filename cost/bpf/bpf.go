// Package bpf samples from outside where a running Go program spends CPU: in its own
// functions, inlined ones included, and in the kernel. The program needs no changes.
//
// At every tick of a timer on each CPU a program in the kernel checks whether a watched
// process runs there, and records its stacks. Stacks are unwound by frame pointers, which
// Go always keeps. Where a function without a frame, or one that has just been entered,
// hides its caller, the stack is repaired. Names come from the tables that every Go
// program carries, stripped or not, on disk or in a container.
//
// Promised: the values of a process's stacks add up to the CPU time that the kernel
// counted for it. Not promised: anything for programs in other languages (they show as
// their file's name), for the C part of a Go program, or for processes that live less
// than a quarter of a second in a watched group.
//
// It needs Linux 5.15 on amd64 or arm64 and the right to load such programs. A missing
// requirement is an error that wraps [cost.ErrNotSupported].
package bpf

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/internal/task"
)

// Rates, in samples a second of each CPU.
const (
	DefaultHz = 499 // what study accuracy holds to the truth, for a price of 1.5 %; not in step with timers of 10 ms
	MaxHz     = 4999
)

// Options say what to watch: a process, a control group, or what Find finds.
type Options struct {
	PID    int    // the process, as its number is seen from here
	Cgroup string // or a directory of a control group: its processes and those of groups inside it
	// Find returns the processes to watch, of which there may be none. It is called at
	// the beginning and at every fetching, from one goroutine at a time.
	Find func() ([]int, error)
	Hz   int // 0: DefaultHz
	// Switches is how many switches of threads a second of each CPU are written down at most;
	// 0: Hz. They share out the CPU time that the clock could not see.
	Switches int
	Fetch    time.Duration // how often samples are fetched, and new processes looked for; 0: a quarter of a second
}

// interval is how often the samples are fetched, and groups looked through for new
// processes, unless the options say otherwise. The program in the kernel wakes nobody up: a
// wake-up a sample costs the service more than the sample.
const interval = 250 * time.Millisecond

// Unseen is the innermost frame of a stack that has CPU which a process used where the
// clock could not look: the kernel switches threads with interrupts off. The frames
// around it are where a thread stopped running; there are none if none was seen to.
const Unseen = "[kernel] not sampled"

// Profile is what a Sampler saw.
type Profile struct {
	Stacks    []cost.Stack  // Count: times seen; Value: nanoseconds of CPU
	Duration  time.Duration // of the sampling
	CPU       time.Duration // that the kernel counted for the processes; the stacks' values add up to it
	Sampled   time.Duration // that the samples stand for by themselves; 0 if the clock counts cycles
	Seen      int           // samples
	Lost      int           // samples that there was no room for
	Clock     string        // what ticked
	Watching  time.Duration // CPU spent on taking the samples, the clock's interrupt not included
	Processes []Process     // by CPU, the largest first
	Warnings  []error
}

// Process is one of those that were watched.
type Process struct {
	PID  int
	Name string // its program's file, without directories
	Go   string // the version of Go that built it; "" if it is no Go program that can be read
	CPU  time.Duration

	Ended  bool         // or runs another program now
	Seen   int          // samples
	Stacks []cost.Stack // those of the profile's that are its own
}

// ErrEnded says that a process was gone before anything was seen of it.
var ErrEnded = task.ErrEnded

// priceOfSample is the CPU that one sample takes from the service, the clock's
// interrupt and what it does to caches included, as measured (docs/cost.md).
const priceOfSample = 30 * time.Microsecond

// Price returns what sampling is expected to cost a service, as a share of the CPU
// it uses.
func Price(hz int) float64 { return float64(hz) * priceOfSample.Seconds() }

func (o *Options) check() error {
	named := 0
	for _, is := range []bool{o.PID != 0, o.Cgroup != "", o.Find != nil} {
		if is {
			named++
		}
	}
	switch {
	case named != 1:
		return errors.New("want either a process or a control group to watch")
	case o.PID < 0:
		return fmt.Errorf("process %d: no such number", o.PID)
	case min(o.Hz, o.Switches) < 0 || max(o.Hz, o.Switches) > MaxHz:
		return fmt.Errorf("%d samples and %d switches a second: want 1 to %d", o.Hz, o.Switches, MaxHz)
	}
	o.Hz, o.Fetch = cmp.Or(o.Hz, DefaultHz), cmp.Or(o.Fetch, interval)
	o.Switches = cmp.Or(o.Switches, o.Hz)
	return nil
}
