package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/capture"
	"github.com/tarehq/tare/cost/exectrace"
	"github.com/tarehq/tare/cost/pprof"
	"github.com/tarehq/tare/lab/arm"
	"github.com/tarehq/tare/lab/inside"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
)

// profiler is the Go runtime's profiler of CPU and allocations.
type profiler struct {
	s   *session
	rec *inside.Recorder
}

func (p *profiler) prepare(ctx context.Context) (err error) {
	p.rec, err = inside.New(ctx, p.s.proc)
	return err
}

func (p *profiler) watch(ctx context.Context, d time.Duration) error { return p.rec.Watch(ctx, d) }

func (p *profiler) readProfiles(ctx context.Context, c *record.Capture) (record.Seen, []record.Profile, error) {
	seen := record.Seen{Source: study.Pprof}
	taken, err := p.rec.Profiles(ctx)
	if err != nil {
		return seen, nil, err
	}
	var kept bytes.Buffer
	if err := taken.Allocs.Write(&kept); err != nil {
		return seen, nil, fmt.Errorf("keeping the allocation profile: %w", err)
	}
	if len(taken.CPU.Stacks) == 0 {
		return seen, nil, errNothingSeen
	}
	seen.Bill, seen.Share = bill(study.Pprof, c, taken.CPU, taken.Allocs)
	return seen, []record.Profile{
		{Source: study.Pprof, Kind: "cpu", Data: taken.RawCPU}, {Source: study.Pprof, Kind: "allocs", Data: kept.Bytes()},
	}, nil
}

// errNothingSeen says that owners cannot be told: the arm was idle, or others had
// the CPU.
var errNothingSeen = errors.New("there is not one sample of the arm's CPU time")

// tracer is the Go runtime's execution tracer.
type tracer struct {
	s   *session
	raw []byte
}

func (t *tracer) prepare(ctx context.Context) error {
	_, err := t.s.proc.Facts(ctx) // whether it answers at all
	if errors.Is(err, arm.ErrDeclined) {
		return nil
	}
	return err
}

func (t *tracer) watch(ctx context.Context, d time.Duration) (err error) {
	t.raw, err = t.s.proc.Profile(ctx, "trace", d)
	return err
}

func (t *tracer) readProfiles(_ context.Context, c *record.Capture) (record.Seen, []record.Profile, error) {
	seen := record.Seen{Source: study.Trace}
	read, err := exectrace.Read(bytes.NewReader(t.raw))
	if err != nil {
		return seen, nil, err
	}
	seen.Bill = cost.NewBill(nil, nil, Traced(c, read))
	seen.Bill.Source = string(study.Trace)
	seen.Bill.AddWaits(read.Waits, Traced(c, read))
	if read.Broken != nil {
		c.Warnings = append(c.Warnings, read.Broken.Error())
	}
	return seen, []record.Profile{{Source: study.Trace, Kind: "trace", Data: t.raw}}, nil
}

// bill is what the profiles of a capture come to, a request; share is how much of
// the CPU time the CPU profile saw itself, 0 if the kernel did not report it. Of
// allocs nil, there are neither bytes nor shares of the collector.
func bill(source study.Source, c *record.Capture, cpu, allocs *pprof.Profile) (b *cost.Bill, share float64) {
	time, memory, share := Scaled(c, cpu, allocs)
	b = cost.NewBill(time, memory, cost.Window{Duration: c.Elapsed, Requests: float64(c.Requests)})
	b.Source = string(source)
	return b, share
}

// Scaled returns the stacks of a capture's profiles, of which allocs may be nil.
// CPU time is scaled to what the kernel counted of the process, bytes and objects
// to what the runtime counted, so that they add up to the whole; share is how
// much of the CPU time the profile itself saw, 0 if the kernel did not report it. What
// an arm allocates to be profiled is left out. The CPU profile itself is scaled.
func Scaled(c *record.Capture, cpu, allocs *pprof.Profile) (time, memory []cost.Stack, share float64) {
	long := 1.0 // how much longer requests were counted than the profile took
	if cpu.Duration > 0 {
		long = c.Elapsed.Seconds() / cpu.Duration.Seconds()
	}
	counted := capture.Kernel{All: c.CPU, Monitor: c.Monitor}
	if covered := counted.Scale(cpu); covered > 0 {
		share = covered * long * float64(c.CPU-c.Monitor) / float64(c.CPU)
	} else {
		cpu.Scale(long)
	}
	time = cpu.Stacks
	if allocs == nil {
		return time, nil, share
	}
	memory = slices.DeleteFunc(slices.Clone(allocs.Stacks), asked)
	bytes, objects := total(memory)
	memory = scaled(memory, ratio(c.Bytes, bytes), ratio(c.Objects, objects))
	return time, slices.DeleteFunc(memory, profiling), share
}

// Traced is the part of a capture that its trace saw.
func Traced(c *record.Capture, t *exectrace.Trace) cost.Window {
	return cost.Window{Duration: c.Elapsed, Requests: float64(c.Requests)}.Over(t.Duration)
}

// asked reports whether an arm allocated for the answer to a question of tare's. That
// happens before and after what is measured.
func asked(s cost.Stack) bool {
	return hasFrame(s, "github.com/tarehq/tare/arms/arm.(*control).")
}

// profiling reports whether an arm allocated for the profile. That happens within
// what is measured, and not for a request.
func profiling(s cost.Stack) bool { return hasFrame(s, "runtime/pprof.") }

func hasFrame(s cost.Stack, prefix string) bool {
	return slices.ContainsFunc(s.Frames, func(f cost.Frame) bool { return strings.HasPrefix(f.Func, prefix) })
}

func total(stacks []cost.Stack) (values, counts float64) {
	for i := range stacks {
		values += stacks[i].Value
		counts += stacks[i].Count
	}
	return values, counts
}

// ratio is whole over part; 1 where either is not known.
func ratio(whole, part float64) float64 {
	if whole <= 0 || part <= 0 {
		return 1
	}
	return whole / part
}

// scaled returns the stacks with their values and counts multiplied.
func scaled(stacks []cost.Stack, value, count float64) []cost.Stack {
	all := make([]cost.Stack, len(stacks))
	for i, s := range stacks {
		s.Value *= value
		s.Count *= count
		all[i] = s
	}
	return all
}

// attributed are the metrics that a source tells; none if it does not tell CPU time.
func attributed(s *record.Seen) map[string]float64 {
	if s.Bill == nil || s.Bill.CPU == 0 {
		return nil
	}
	m := map[string]float64{"handlers_cpu": 0, "memory_cpu": 0, "scheduling_cpu": 0, "kernel_cpu": 0}
	for _, it := range s.Bill.Items {
		for _, part := range it.Causes {
			switch part.Cause {
			case cost.GC.String(), cost.Alloc.String():
				m["memory_cpu"] += part.Value
			case cost.Scheduling.String(), cost.Locks.String(), cost.Channels.String():
				m["scheduling_cpu"] += part.Value
			case cost.Kernel.String():
				m["kernel_cpu"] += part.Value
			default:
				if it.Kind == cost.Middleware.String() || it.Kind == cost.Handler.String() {
					m["handlers_cpu"] += part.Value
				}
			}
		}
	}
	return m
}
