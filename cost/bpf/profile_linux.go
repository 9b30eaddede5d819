//go:build linux && (amd64 || arm64)

package bpf

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/internal/kallsyms"
)

// profile names what was seen, and has each process's stacks add up to the CPU
// time that the kernel counted for it.
func (s *Sampler) profile(d time.Duration) (*Profile, error) {
	p := &Profile{Duration: d, Clock: s.clock.name, Warnings: s.pending}
	var tallies []samplerTally
	if err := s.objects.Tallies.Lookup(uint32(0), &tallies); err != nil {
		return nil, fmt.Errorf("reading what sampling cost: %w", err)
	}
	var all samplerTally
	for _, t := range tallies {
		all.Lost += t.Lost
		all.Nanoseconds += t.Nanoseconds
	}
	p.Lost, p.Watching = int(all.Lost-s.taken.Lost), time.Duration(all.Nanoseconds-s.taken.Nanoseconds)
	s.taken = all
	symbols, err := s.kernel()
	if err != nil {
		p.Warnings = append(p.Warnings, err)
	}
	stacks, cut := s.nameStacks(symbols)
	for _, w := range s.all {
		p.add(w, s.clock.cycles, stacks[w.nth])
	}
	slices.SortFunc(p.Processes, func(a, b Process) int { return cmp.Or(cmp.Compare(b.CPU, a.CPU), cmp.Compare(a.PID, b.PID)) })
	p.Warnings = append(p.Warnings, foreign(s.all)...)
	for _, w := range p.Processes {
		p.Stacks = append(p.Stacks, w.Stacks...)
	}
	slices.SortFunc(p.Stacks, byValue)
	if cut > 0 {
		p.Warnings = append(p.Warnings, fmt.Errorf("%d of %d stacks are deeper than the %d calls that the kernel follows: what called those is not known, and they may lack their owner", cut, p.Seen, longest()))
	}
	p.caveats(s.o.Find == nil && s.allEnded())
	return p, nil
}

func byValue(a, b cost.Stack) int { return cmp.Compare(b.Value, a.Value) }

// nameStacks names the stacks of every process, and counts those that are not whole.
func (s *Sampler) nameStacks(symbols kallsyms.Symbols) (all [][]cost.Stack, cut int) {
	all = make([][]cost.Stack, len(s.all))
	followed := longest()
	for _, at := range s.stacks {
		if at.p.cut(at.chain, followed) {
			cut += at.count
		}
		frames := append(symbols.Frames(at.kernel), at.p.userFrames(at.chain)...)
		of := &all[at.p.nth]
		if at.count > 0 {
			scale := at.p.scale(s.clock.cycles)
			*of = append(*of, cost.Stack{Frames: frames, Count: float64(at.count), Value: scale * float64(at.weight)})
		}
		if rest := at.p.unseen(s.clock.cycles); at.left > 0 && rest > 0 {
			share := float64(at.leaves) / float64(at.p.leaves)
			*of = append(*of, cost.Stack{
				Frames: slices.Concat([]cost.Frame{{Func: Unseen}}, frames), Count: float64(at.left), Value: share * float64(rest),
			})
		}
	}
	for _, w := range s.all {
		if rest := w.unseen(s.clock.cycles); rest > 0 && w.leaves == 0 {
			all[w.nth] = append(all[w.nth], cost.Stack{Frames: []cost.Frame{{Func: Unseen}}, Value: float64(rest)})
		}
		all[w.nth] = w.settle(all[w.nth], s.clock.cycles)
		slices.SortFunc(all[w.nth], byValue)
	}
	return all, cut
}

// settle gives the thread of Go's system monitor what the kernel counted for it, and the
// others the rest of what the process used.
//
// Note: it runs for some microseconds at a time, begun by a timer. On a virtual machine
// whose timers ring 20 µs late, the next tick comes when that is over: 3.4 µs a request
// were seen of 13, and a middleware of 109 µs was charged with 114.
func (w *process) settle(stacks []cost.Stack, cycles bool) []cost.Stack {
	used := w.used(cycles)
	monitor := min(w.last.monitor-w.begun.monitor, used)
	if monitor <= 0 {
		return stacks
	}
	monitors := func(s *cost.Stack) bool {
		return slices.ContainsFunc(s.Frames, func(f cost.Frame) bool { return f.Func == cost.SystemMonitor })
	}
	var seen, others float64
	for i := range stacks {
		if monitors(&stacks[i]) {
			seen += stacks[i].Value
		} else {
			others += stacks[i].Value
		}
	}
	// Rather that of a library in C, which began a thread before Go's runtime did.
	if missing := float64(monitor) - seen; others == 0 || missing > float64(used)/4 && seen < float64(monitor)/4 {
		return stacks
	}
	for i := range stacks {
		if monitors(&stacks[i]) {
			stacks[i].Value *= float64(monitor) / seen
		} else {
			stacks[i].Value *= float64(used-monitor) / others
		}
	}
	if seen == 0 {
		return append(stacks, cost.MonitorStack(monitor))
	}
	return stacks
}

// used returns the CPU that a process used while it was watched. One that ended
// was last looked at before, and its samples may know of more.
func (w *process) used(cycles bool) time.Duration {
	used := w.last.cpu - w.begun.cpu
	if w.ended && !cycles {
		used = max(used, time.Duration(w.weight))
	}
	return used
}

// scale is what a process's samples are multiplied by. Cycles have to be made
// time; samples of a timer stand for time by themselves, and too many of them, as
// a process has that is pushed aside by others at the timer's interrupts, are
// taken down to what it used. Too few are left: they miss a part of the kernel.
func (w *process) scale(cycles bool) float64 {
	scale := float64(w.used(cycles)) / float64(max(1, w.weight))
	if cycles {
		return scale
	}
	return min(1, scale)
}

// unseen is the CPU that a process used while interrupts were off, the timer's
// among them: mostly while threads are switched. It is shared out to where its threads
// stopped running.
func (w *process) unseen(cycles bool) time.Duration {
	if cycles && w.seen > 0 {
		return 0
	}
	return max(0, w.used(cycles)-time.Duration(w.weight))
}

// add counts a process in.
func (p *Profile) add(w *process, cycles bool, stacks []cost.Stack) {
	one := Process{PID: w.pid, Name: w.name, CPU: w.used(cycles), Ended: w.ended, Seen: w.seen, Stacks: stacks}
	if w.table != nil {
		one.Go = w.table.Go()
	}
	p.Processes = append(p.Processes, one)
	p.Seen += w.seen
	p.CPU += one.CPU
	if !cycles {
		p.Sampled += time.Duration(w.weight)
	}
}

// foreign says of each program that was seen and cannot be read why not, once however
// many processes run it.
func foreign(all []*process) (warnings []error) {
	running := map[*program]int{}
	for _, w := range all {
		if w.why != nil && w.seen > 0 {
			running[w.program]++
		}
	}
	for _, w := range all {
		switch n := running[w.program]; {
		case n == 0 || w.seen == 0:
			continue
		case n == 1:
			warnings = append(warnings, fmt.Errorf("process %d, %s: %w", w.pid, w.name, w.why))
		default:
			warnings = append(warnings, fmt.Errorf("%d processes, %s: %w", n, w.name, w.why))
		}
		delete(running, w.program)
	}
	return warnings
}

// caveats says what keeps the samples from standing for the processes' time.
func (p *Profile) caveats(ended bool) {
	if ended {
		p.Warnings = append(p.Warnings, fmt.Errorf("%w: what was seen until then is shown", ErrEnded))
	}
	if p.Lost > 0 {
		p.Warnings = append(p.Warnings, fmt.Errorf("%d of %d samples were lost for want of room: lower the rate", p.Lost, p.Lost+p.Seen))
	}
}
