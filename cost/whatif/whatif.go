// Package whatif measures what time in one owner costs whole requests, by
// slowing that owner down in a running service.
//
// Time that an owner spends is not the time that removing it would save. A slower
// server changes how everything else runs: clients sleep and have to be woken, the
// garbage collector runs at other times. So a probe makes every call of the owner
// spin for [Options].Slow, and the CPU time of whole requests is compared.
//
// # Model
//
// Windows with the probe on alternate with windows with it off. Two neighbours form
// a pair, in random order, so that drift of the machine hits both alike. The first
// tenth of a window is dropped, because requests from before it are still running.
// A window gives the process's CPU time per request. Of each pair,
//
//	effect = CPU per request, on - off
//	ratio  = effect / time that the probe took per request
//
// Each is estimated by the Hodges-Lehmann centre of all pairs, with the 95 % interval
// of Wilcoxon's signed-rank distribution. A ratio of 1.4 says that a microsecond in
// the owner costs a request 1.4 µs of CPU. Removing the owner then saves about
//
//	saved = ratio * the owner's own time per request
//
// The own time is sampled in the windows without the probe, or else it is the time of
// a call by the clock. The intervals of the two factors add up as errors do, in
// quadrature: own time and ratio are measured apart.
//
// # Safety
//
// [Run] slows a running service down. The probe takes at most Slow a call, stops by
// itself when a window is over, and goes when this process ends in whatever way.
// Response times are watched meanwhile: the p99 of a second above a bound ends the run
// with a [TooSlow]. The bound holds for the load that Run starts. Without one, the
// service's answers are timed from outside.
//
// It needs Linux 6.6 on amd64, root, and a service written in Go (see package probe).
// Elsewhere Run returns an error that wraps cost.ErrNotSupported. Do not use it where
// a service has no spare capacity, or to compare two programs: that is a study's task.
package whatif

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf/probe"
	"github.com/tarehq/tare/cost/capture"
	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/stats/unit"
)

// Options say what to slow down, and for how long. Only PID and Owner are required.
type Options struct {
	PID      int
	Owner    string        // as cost names it: package.Function, or file.go:line
	Slow     time.Duration // added to each of its calls, 100 ns to 1 ms; 0: 20 µs
	For      time.Duration // of all windows, at most 10 minutes; 0: 30 s
	Window   time.Duration // on, or off, at a time, 50 ms to 10 s; 0: 500 ms
	Layers   time.Duration // of sampling afterwards, to learn who spends the difference; 0: none
	AbortP99 time.Duration // bound of a second's p99; 0: ten times that of the first second, at least 100 ms
	// MaxOverhead is the largest share of the process's CPU that timing the owner's
	// calls beforehand may cost, up to 1; 0: 0.05.
	MaxOverhead float64
	Seed        uint64 // of the order of windows; 0: 1
	// Load is what requests to send to the service; nil: somebody else sends them.
	Load *load.Options
	// Progress receives a line for people before each step; nil: nobody reads them.
	Progress func(line string)
}

// Check reports the first option that is out of range. Its text begins with the
// option's name as tare whatif's flags have it, such as "slow 2ms".
func (o Options) Check() error {
	o = o.withDefaults()
	switch {
	case o.Slow < 100*time.Nanosecond || o.Slow > probe.Slowest:
		return fmt.Errorf("slow %s: at least 100ns, at most %s", o.Slow, probe.Slowest)
	case o.Window < 50*time.Millisecond || o.Window > 10*time.Second:
		return fmt.Errorf("window %s: at least 50ms, at most 10s", o.Window)
	case o.For < leastPairs*2*o.Window || o.For > 10*time.Minute:
		return fmt.Errorf("for %s: at least %s, which is %d pairs of windows, at most 10m", o.For, leastPairs*2*o.Window, leastPairs)
	case o.Layers < 0 || o.Layers > 10*time.Minute || o.Layers > 0 && o.Layers < time.Second:
		return fmt.Errorf("layers %s: 0, or at least 1s, at most 10m", o.Layers)
	case !(o.MaxOverhead > 0 && o.MaxOverhead <= 1):
		return fmt.Errorf("max-overhead %v%%: more than 0 %%, at most 100 %%", 100*o.MaxOverhead)
	case o.AbortP99 < 0:
		return fmt.Errorf("abort-p99 %s: at least 0", o.AbortP99)
	}
	return nil
}

func (o Options) withDefaults() Options {
	o.Slow = cmp.Or(o.Slow, 20*time.Microsecond)
	o.For = cmp.Or(o.For, 30*time.Second)
	o.Window = cmp.Or(o.Window, 500*time.Millisecond)
	o.MaxOverhead = cmp.Or(o.MaxOverhead, 0.05)
	o.Seed = cmp.Or(o.Seed, 1)
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	return o
}

// Run slows the owner down, on and off, and compares. If it ends early (the context
// is done, response times exceed their bound, the process ends), it returns the
// windows until then, if there are any, together with the reason as an error. The
// result is nil if no pair of windows was complete.
func Run(ctx context.Context, o Options) (res *Result, err error) {
	defer func() {
		if res == nil && ctx.Err() == nil {
			err = capture.ExplainForeign(o.PID, err)
		}
	}()
	if err := o.Check(); err != nil {
		return nil, err
	}
	target, err := probe.Open(o.PID)
	if err != nil {
		return nil, err
	}
	defer target.Close()
	under, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &run{Options: o.withDefaults(), target: target}
	if r.sentry, err = r.startSentry(under, cancel); err != nil {
		return nil, err
	}
	res, err = r.measure(under)
	if under.Err() != nil {
		err = context.Cause(under)
	}
	cancel(nil)
	warnings, watchErr := r.sentry.end()
	if res != nil {
		res.warn(warnings...)
	}
	return res, cmp.Or(err, watchErr)
}

// run is one what-if under way.
type run struct {
	Options
	target *probe.Target
	sentry *sentry
}

// measure finds the owner and compares windows with and without the probe.
func (r *run) measure(ctx context.Context) (*Result, error) {
	owner, err := r.findOwner(ctx)
	if err != nil {
		return nil, err
	}
	own, ownErr := r.timeCalls(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if ownErr == nil && len(probe.Uncalled([]probe.Watched{owner}, own.Walls)) > 0 {
		return nil, r.target.ErrUncalled(ctx, owner.Owner, own.Requests)
	}
	brake, err := r.target.NewBrake(owner)
	if err != nil {
		return nil, err
	}
	defer brake.Close()
	brake.Counted = brake.Counted && (own == nil || own.SeesRequests())
	if err := r.announce(owner.Owner, own); err != nil {
		return nil, err
	}
	pairs, cut := r.alternate(ctx, brake)
	if len(pairs) == 0 {
		return nil, cut
	}
	least := leastPairs
	if cut != nil {
		least = 1 // without an interval
	}
	res, err := newResult(pairs, least)
	if err != nil {
		return nil, cmp.Or(cut, fmt.Errorf("slowing %s down: %w", owner.Owner.Name, err))
	}
	res.Package = new(cost.Rules).Package(owner.Owner) // unless samples show more
	res.PID, res.Owner, res.Where, res.Slow = r.PID, owner.Owner.Name, owner.Owner.Where(), float64(r.Slow)
	if r.Layers > 0 && cut == nil {
		res.addLayers(r.sampleLayers(ctx, brake))
	}
	res.addOwnTime(own, ownErr, owner.Owner)
	if !brake.Counted {
		res.warn(fmt.Errorf("this program has no known function where requests begin: each call of %s counts as a request", res.Owner))
	}
	if ctx.Err() != nil {
		cut = context.Cause(ctx)
	}
	if cut == nil {
		return res, brake.Close()
	}
	res.warn(earlyEnd(cut))
	return res, cut
}

// earlyEnd says why there are fewer windows than planned.
func earlyEnd(cut error) error {
	switch {
	case errors.Is(cut, context.Canceled), errors.Is(cut, context.DeadlineExceeded):
		return errors.New("interrupted: the windows until then are shown")
	case errors.As(cut, new(*TooSlow)):
		return fmt.Errorf("stopped because %w: the windows until then are shown", cut)
	}
	return fmt.Errorf("%w: the windows until then are shown", cut)
}

// announce says what is going to happen, what it takes, and who watches.
func (r *run) announce(o cost.Owner, own *probe.Measurement) error {
	line := fmt.Sprintf("slowing %s (%s) of process %d down by %s a call, half of the next %s", o.Name, o.Where(), r.PID, r.Slow, r.For+r.Layers)
	if own != nil {
		for _, w := range own.Walls {
			if w.Owner == o && w.Calls > 0 {
				rate := w.Calls / own.Attached.Seconds()
				line += fmt.Sprintf("; at %s calls a second this takes %s of a CPU", unit.Number(math.Round(rate)), unit.Format(rate*r.Slow.Seconds(), unit.Share))
			}
		}
	}
	r.Progress(line)
	watched, err := r.sentry.describe(r.AbortP99)
	if watched != "" {
		r.Progress(watched)
	}
	return err
}
