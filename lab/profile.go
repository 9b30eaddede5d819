package lab

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/exectrace"
	"github.com/tarehq/tare/cost/pprof"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
)

// profileRate is how many samples a second of CPU time are asked for: as many as
// kernels usually have ticks. Where there are fewer, the profile's nanoseconds
// are too few, which scaling to the process's CPU time sets right.
const profileRate = 250

// profiler is the Go runtime's profiler of CPU and allocations.
type profiler struct {
	s       *session
	earlier *pprof.Profile // allocations before the load
	cpu     []byte
}

func (p *profiler) prepare(ctx context.Context) (err error) {
	p.earlier, err = p.heap(ctx)
	return err
}

func (p *profiler) watch(ctx context.Context, d time.Duration) (err error) {
	p.cpu, err = p.s.proc.CPUProfile(ctx, d, profileRate)
	return err
}

// heap is what the process has allocated so far. The collector publishes it, so
// it runs first.
func (p *profiler) heap(ctx context.Context) (*pprof.Profile, error) {
	if err := p.s.proc.GC(ctx); err != nil {
		return nil, err
	}
	raw, err := p.s.proc.Profile(ctx, "heap", 0)
	if err != nil {
		return nil, err
	}
	return pprof.Read(bytes.NewReader(raw))
}

func (p *profiler) tell(ctx context.Context, c *record.Capture) (record.Seen, []record.Profile, error) {
	seen := record.Seen{Source: study.Pprof}
	later, err := p.heap(ctx)
	if err != nil {
		return seen, nil, err
	}
	allocs, err := later.Since(p.earlier)
	if err != nil {
		return seen, nil, err
	}
	cpu, err := pprof.Read(bytes.NewReader(p.cpu))
	if err != nil {
		return seen, nil, err
	}
	var kept bytes.Buffer
	if err := allocs.Write(&kept); err != nil {
		return seen, nil, fmt.Errorf("keeping the allocation profile: %w", err)
	}
	seen.Bill, seen.Share = Bill(c, cpu, allocs)
	return seen, []record.Profile{
		{Source: study.Pprof, Kind: "cpu", Data: p.cpu}, {Source: study.Pprof, Kind: "allocs", Data: kept.Bytes()},
	}, nil
}

// tracer is the Go runtime's execution tracer.
type tracer struct {
	s   *session
	raw []byte
}

// longestTrace bounds an execution trace: some megabytes of a busy server.
const longestTrace = time.Second

func (t *tracer) prepare(ctx context.Context) error {
	_, err := t.s.proc.Facts(ctx) // whether it answers at all
	return err
}

func (t *tracer) watch(ctx context.Context, d time.Duration) (err error) {
	t.raw, err = t.s.proc.Profile(ctx, "trace", min(d, longestTrace))
	return err
}

func (t *tracer) tell(_ context.Context, c *record.Capture) (record.Seen, []record.Profile, error) {
	seen := record.Seen{Source: study.Trace}
	read, err := exectrace.Read(bytes.NewReader(t.raw))
	if err != nil {
		return seen, nil, err
	}
	seen.Bill = WaitBill(c, read)
	return seen, []record.Profile{{Source: study.Trace, Kind: "trace", Data: t.raw}}, nil
}

// Bill is what the profiles of a capture come to, a request. CPU time is scaled
// to what the kernel counted of the process, bytes and objects to what the
// runtime counted, so that the owners add up to the whole; share is how much of
// the CPU time the profile itself saw, 0 if the kernel did not tell.
func Bill(c *record.Capture, cpu, allocs *pprof.Profile) (b *cost.Bill, share float64) {
	window := cost.Window{Duration: c.Elapsed, Requests: float64(c.Requests)}
	scale := 1.0
	if cpu.Duration > 0 {
		scale = c.Elapsed.Seconds() / cpu.Duration.Seconds()
	}
	if sum, _ := total(cpu.Stacks); sum > 0 && c.CPU > 0 {
		share = sum * scale / float64(c.CPU)
		scale = float64(c.CPU) / sum
	}
	var memory []cost.Stack
	if allocs != nil {
		own := slices.DeleteFunc(slices.Clone(allocs.Stacks), answering)
		bytes, objects := total(own)
		memory = scaled(own, ratio(c.Bytes, bytes), ratio(c.Objects, objects))
	}
	b = cost.NewBill(scaled(cpu.Stacks, scale, 1), memory, window)
	b.Source = string(study.Pprof)
	return b, share
}

// WaitBill is what the requests of a capture waited for.
func WaitBill(c *record.Capture, t *exectrace.Trace) *cost.Bill {
	window := cost.Window{Duration: c.Elapsed, Requests: float64(c.Requests)}
	b := cost.NewBill(nil, nil, window)
	b.Source = string(study.Trace)
	b.AddWaits(t.Waits, window.Over(t.Duration))
	return b
}

// answering says whether an arm allocated for the answer to a question of tare's.
// Most of that happens before and after what is measured, and nothing of it for
// a request.
func answering(s cost.Stack) bool {
	return slices.ContainsFunc(s.Frames, func(f cost.Frame) bool {
		return strings.HasPrefix(f.Func, "github.com/tarehq/tare/arms/arm.(*control).")
	})
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

// attributed are the metrics that captures tell, from the first source that
// tells CPU time.
func attributed(all []record.Seen) map[string]float64 {
	for _, s := range all {
		if s.Bill == nil || s.Bill.CPU == 0 {
			continue
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
	return nil
}
