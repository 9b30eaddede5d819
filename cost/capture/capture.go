// Package capture takes captures of running services: profiles of CPU and allocations,
// execution traces and times of calls, under a load if one is wanted. All verbs capture
// through it, so that they give the same figures.
//
// [Service] names what to capture. [Service.Find] finds it, [Run] captures it. The sources
// are the profiles that a service exposes (net/http/pprof) or, on Linux and with the
// rights, samples that the kernel takes from outside.
//
// A service's own CPU profile may stand for more or less than the service used: its timer
// ticks no more often than the kernel's, and it does not sample the runtime's system
// monitor. So the profile is scaled to what the kernel counted for the process, if that
// runs on this machine; see [Kernel].
//
// Owners and causes are found by package cost, rules by package doctor.
//
// What is not possible here is an error that wraps [cost.ErrNotSupported]. Values of this
// package are not safe for concurrent use.
package capture

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf/probe"
	"github.com/tarehq/tare/cost/doctor/proc"
	"github.com/tarehq/tare/cost/exectrace"
	"github.com/tarehq/tare/cost/pprof"
	"github.com/tarehq/tare/load"
)

// Options say how to look. Only For is required.
type Options struct {
	For      time.Duration // of the CPU profile; in whole seconds where the service takes it itself
	Hz       int           // samples a second of each CPU, from outside; 0: bpf.DefaultHz
	Waits    time.Duration // of an execution trace afterwards, by the service itself; 0: none
	Requests float64       // that the service answers meanwhile, if they are counted elsewhere
	Count    bool          // from outside: count requests by a probe, unless Load or Requests do
	Calls    *Calls        // from outside: time calls by the clock afterwards; nil: do not
	Load     *load.Options // requests to send meanwhile; nil: none

	// Before, Beside and After run, if not nil, while the load is under way: before the
	// CPU profile, during it, and after everything is recorded.
	Before, Beside, After func(context.Context)
	// Progress receives a line for people before each step; nil: nobody reads them.
	Progress func(line string)
}

// Capture is what was seen of a service.
type Capture struct {
	Source      string         // what was looked at, for people
	PID         int            // the service's process; 0: not known, or several
	CPU, Allocs *pprof.Profile // nil: not there
	Window      cost.Window    // of CPU and Allocs
	Waits       []cost.Wait    // nil: no execution trace was taken
	Traced      cost.Window    // of Waits

	Sampled  *cost.Sampled      // nil: the CPU was not sampled from outside
	Counted  *probe.Counted     // nil: requests were not counted from outside
	Calls    *probe.Measurement // nil: calls were not timed
	CallsErr error              // why, if they were to be
	Load     *load.Result       // nil: there was none, or LoadErr
	LoadErr  error              // why the load came to nothing

	Module, Program string // paths of the module and of package main; "" where PID does not show them

	AllocsErr, WaitsErr error // why these are not there, if they were to be; Warnings say so too
	Warnings            []error
}

// ProfileError says that a service did not hand over a profile.
type ProfileError struct{ Err error }

func (e *ProfileError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *ProfileError) Unwrap() error { return e.Err }

// Run looks at a service. It looks from outside if the service's profiles were not found.
// If that is not possible here, it asks the process for its own profile, and warns of
// that. An interrupted look from outside is a capture with a warning; a service hands
// its own profile over only at the end, so that an interruption is a [ProfileError].
func Run(ctx context.Context, t *Target, o Options) (*Capture, error) {
	r := newRun(t, o)
	if t.Profiles != nil {
		return r.c, r.inside(ctx, t.Profiles)
	}
	why := ExplainForeign(t.PID, r.outside(ctx))
	if t.PID == 0 || !t.cheapest || !errors.Is(why, cost.ErrNotSupported) {
		return r.c, why
	}
	s, err := findProfiles(ctx, t.PID)
	if err != nil {
		r.say("its own profiles cannot be had instead: %v", err)
		return nil, why
	}
	r.say("it cannot be sampled from outside, so it is asked for its own profile: %v", why)
	r = newRun(t, o)
	r.warn(fmt.Errorf("this is the service's own profile, because it cannot be sampled from outside: %w", why))
	if o.Calls != nil {
		r.c.CallsErr = why
	}
	return r.c, r.inside(ctx, s)
}

// run is one look under way.
type run struct {
	Options
	target *Target
	load   *Load // nil: there is none
	c      *Capture
}

func newRun(t *Target, o Options) *run {
	return &run{Options: o, target: t, c: &Capture{Source: t.Name, PID: t.PID, Window: cost.Window{Requests: o.Requests}}}
}

func (r *run) say(format string, args ...any) {
	if r.Progress != nil {
		r.Progress(fmt.Sprintf(format, args...))
	}
}

func (r *run) warn(warnings ...error) { r.c.Warnings = append(r.c.Warnings, warnings...) }

// startLoad starts the load, if one is wanted.
func (r *run) startLoad(ctx context.Context) (err error) {
	if r.Options.Load == nil {
		return nil
	}
	r.checkPort(r.Options.Load.Targets[0].URL)
	r.load, err = StartLoad(ctx, *r.Options.Load)
	if e := (*LoadError)(nil); errors.As(err, &e) && r.target.PID != 0 && InOwnNetwork(r.target.PID) {
		e.Network = &NetworkError{r.target.PID}
	}
	return err
}

// checkPort warns of a load that goes to a port on which another process listens.
func (r *run) checkPort(url string) {
	port, local := localPort(url)
	pid := r.target.PID
	if profiles := r.target.Profiles; profiles != nil && pid == 0 {
		if at, here := localPort(profiles.String()); here {
			pid, _ = proc.Listener(at) // 0 where nobody can say who listens
		}
	}
	if !local || pid == 0 || InOwnNetwork(pid) {
		return
	}
	ports, err := proc.Listening(pid)
	if other, found := proc.Listener(port); err == nil && found == nil && !slices.Contains(ports, port) {
		r.warn(fmt.Errorf("port %d, which the load asks, belongs to process %d, not to %d, which was looked at: costs per request are right only if it passes every request on", port, other, pid))
	}
}

// call runs one of the caller's functions.
func call(ctx context.Context, f func(context.Context)) {
	if f != nil {
		f(ctx)
	}
}

// inside has a service profile CPU and allocations side by side, and then trace.
func (r *run) inside(ctx context.Context, s *pprof.Service) error {
	r.c.Source = s.String()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := r.startLoad(ctx); err != nil {
		return err
	}
	r.say("profiling %s for %s; expected to cost it %s", s, r.For, r.priceOfProfiles())
	call(ctx, r.Before)
	begun, err := r.profile(ctx, s)
	if err != nil {
		return err
	}
	traced := time.Now()
	if r.Waits > 0 {
		r.trace(ctx, s)
	}
	call(ctx, r.After)
	r.endLoad(begun, traced)
	r.c.Module, r.c.Program = Module(r.c.PID)
	return nil
}

// Module returns the paths of the module and of package main that a process was built
// of; "" where they are not known.
func Module(pid int) (module, program string) {
	info, err := buildinfo.ReadFile(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return "", ""
	}
	return info.Main.Path, info.Path
}

// profile has the service profile itself.
func (r *run) profile(ctx context.Context, s *pprof.Service) (begun time.Time, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var beside sync.WaitGroup
	var allocs *pprof.Profile
	var allocsErr error
	beside.Go(func() { allocs, allocsErr = s.Allocs(ctx, r.For) })
	beside.Go(func() { call(ctx, r.Beside) })
	begun = time.Now()
	cpu, pid, err := profileCPU(ctx, s, r.For)
	if err != nil {
		cancel()
		beside.Wait()
		return begun, &ProfileError{err}
	}
	beside.Wait()
	if cpu.Kind != pprof.CPU {
		return begun, fmt.Errorf("%s has no CPU profile", s)
	}
	r.c.CPU, r.c.PID, r.c.Window.Duration = cpu, pid, cpu.Duration
	r.warn(cpu.Warnings...)
	if allocsErr != nil {
		r.c.AllocsErr = allocsErr
		r.warn(fmt.Errorf("no allocation profile, so neither bytes nor shares of the collector: %w", allocsErr))
		return begun, nil
	}
	r.c.Allocs = allocs
	r.c.dateAllocs()
	return begun, nil
}

// trace records what goroutines wait for.
func (r *run) trace(ctx context.Context, s *pprof.Service) {
	raw, err := s.Trace(ctx, r.Waits)
	var t *exectrace.Trace
	if err == nil {
		t, err = exectrace.Read(bytes.NewReader(raw))
	}
	if err != nil {
		r.c.WaitsErr = err
		r.warn(fmt.Errorf("no execution trace, so no waits: %w", err))
		return
	}
	if t.Broken != nil {
		r.warn(t.Broken)
	}
	r.c.Waits, r.c.Traced = append([]cost.Wait{}, t.Waits...), r.c.Window.Over(t.Duration)
}

// endLoad ends the load and works out how many requests the profile saw, and the trace:
// while that is recorded, and read, requests go slower. The times are when each began.
func (r *run) endLoad(profiled, traced time.Time) {
	c := r.c
	if r.load != nil {
		warnings, err := r.load.End()
		if c.LoadErr = err; err == nil {
			c.Load = r.load.Result()
			c.countRequests(r.load, profiled, traced)
		}
		r.warn(warnings...)
	}
}

// countRequests takes over how many requests a load saw answered.
func (c *Capture) countRequests(l *Load, profiled, traced time.Time) {
	c.Window.Requests = math.Round(float64(l.res.Counts.Answered()) * c.Window.Duration.Seconds() / l.res.Elapsed.Seconds())
	if c.Waits == nil {
		return
	}
	c.Traced = c.Window.Over(c.Traced.Duration)
	seen, during := math.Round(l.Requests(profiled, c.Window.Duration)), l.Requests(traced, c.Traced.Duration)
	if seen >= 1 && during >= 1 { // else CPU would be per second and waits per request
		c.Window.Requests, c.Traced.Requests = seen, during
	}
}

// Bill charges every stack to its owner.
func (c *Capture) Bill() *cost.Bill {
	b := cost.NewBill(Stacks(c.CPU), Stacks(c.Allocs), c.Window)
	if c.Module != "" {
		b.NamePackages(c.Module, c.Program)
	}
	if c.Traced.Duration > 0 {
		b.AddWaits(c.Waits, c.Traced)
	}
	if c.Calls != nil {
		addCalls(b, c.Calls)
	}
	b.Source, b.Sampled = c.Source, c.Sampled
	for _, w := range c.Warnings {
		b.Warnings = append(b.Warnings, w.Error())
	}
	return b
}

// Stacks returns a profile's stacks, none of none.
func Stacks(p *pprof.Profile) []cost.Stack {
	if p == nil {
		return nil
	}
	return p.Stacks
}

// Read takes saved profiles for a capture, one of each kind at most. If requests is 0, it
// takes those that the CPU profile has a note of.
func Read(requests float64, files ...string) (*Capture, error) {
	c := &Capture{Window: cost.Window{Requests: requests}}
	for _, name := range files {
		p, err := ReadProfile(name)
		if err != nil {
			return nil, err
		}
		at := &c.CPU
		if p.Kind == pprof.Allocs {
			at = &c.Allocs
		}
		if *at != nil {
			return nil, fmt.Errorf("%s: a second %s profile: %w", name, p.Kind, ErrSecondProfile)
		}
		*at = p
		c.Warnings = append(c.Warnings, p.Warnings...)
	}
	if c.CPU != nil {
		c.Window.Duration = c.CPU.Duration
		if requests == 0 {
			c.Window.Requests, c.Window.Margin = c.CPU.Requests()
		}
	}
	c.dateAllocs()
	return c, nil
}

// ErrSecondProfile says that two saved profiles are of one kind.
var ErrSecondProfile = errors.New("one of each kind can be read")

// ReadProfile reads a saved profile.
func ReadProfile(name string) (*pprof.Profile, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p, err := pprof.Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// dateAllocs warns of an allocation profile that is not of the CPU profile's time, since
// both are divided by the same. One that does not say its time is of all that was
// allocated since the program began.
func (c *Capture) dateAllocs() {
	if c.CPU == nil || c.Allocs == nil {
		return
	}
	const apart, slack = 1.5, 2 // a service takes a moment to begin and to end
	const meant = "so bytes and allocations are not those of the requests or seconds that they are divided by, though their proportions hold: /debug/pprof/allocs?seconds=30 is of 30 s"
	switch all, part := c.Allocs.Duration.Seconds(), c.CPU.Duration.Seconds(); {
	case all == 0:
		c.Warnings = append(c.Warnings, errors.New("the allocation profile is of all since the program began, "+meant))
	case part > 0 && math.Abs(all-part) > slack && (all > apart*part || part > apart*all):
		c.Warnings = append(c.Warnings, fmt.Errorf("the allocation profile is of %.4g s and the CPU profile of %.4g, %s", all, part, meant))
	}
}
