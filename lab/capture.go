package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf"
	"github.com/tarehq/tare/lab/arm"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/load"
)

// errNoSource says that the source asked for cannot look at the arm.
var errNoSource = errors.New("no source can look at it")

// observer is a source at work on one process.
type observer interface {
	// prepare is called before the load.
	prepare(ctx context.Context) error
	// watch looks for so long, beside the load.
	watch(ctx context.Context, d time.Duration) error
	// readProfiles says what was seen in a capture whose figures are known, with the raw
	// profiles.
	readProfiles(ctx context.Context, c *record.Capture) (record.Seen, []record.Profile, error)
}

// observe starts the capture's arm, loads it, and lets the source look. It fills
// in the capture and returns the raw profiles.
func (r *runner) observe(ctx context.Context, c study.Capture, out *record.Capture) ([]record.Profile, error) {
	w := r.workload(c.Workload)
	t := record.Trial{Metrics: map[string]float64{}}
	s, err := r.startProgram(ctx, sampled(*r.programs[c.Arm]), w, &t)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	if err := s.idle(ctx, &t); err != nil {
		return nil, err
	}
	ob, err := s.observer(ctx, c.Source)
	if err != nil {
		return nil, err
	}
	if err := s.watched(ctx, ob, c.For, out); err != nil {
		return nil, err
	}
	seen, raw, err := ob.readProfiles(ctx, out)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Source, err)
	}
	out.Seen, out.Metrics = []record.Seen{seen}, attributed(&seen)
	return raw, nil
}

// observer prepares a source.
func (s *session) observer(ctx context.Context, source study.Source) (observer, error) {
	var o observer
	switch source {
	case study.Pprof:
		o = &profiler{s: s}
	case study.Trace:
		o = &tracer{s: s}
	case study.EBPF:
		o = &sampler{s: s}
	}
	err := o.prepare(ctx)
	if untold(err) || errors.Is(err, cost.ErrNotSupported) {
		return nil, fmt.Errorf("%w: %s: %w", errNoSource, source, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	return o, nil
}

// margin is how much before the end of the measured part the sources stop looking:
// what they saw of an idle arm behind it would be taken for the load's.
const margin = 20 * time.Millisecond

// watched loads the arm while the observer looks, and fills in what the kernel,
// the runtime and the arm itself say of the same time.
func (s *session) watched(ctx context.Context, ob observer, d time.Duration, out *record.Capture) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	o := s.r.loadOptions(s.w, s.proc.URL())
	o.Duration = d
	var ended chan error // nil until the observer looks
	var before, after truth
	var begun, done time.Duration // CPU time of the system monitor
	o.Mark = func(begin bool) {
		if !begin {
			s.after, after = s.read(), s.readTruth(ctx)
			done = s.monitor(ob)
			return
		}
		end := time.Now().Add(o.Duration - margin)
		s.before, before = s.read(), s.readTruth(ctx)
		begun = s.monitor(ob)
		ended = make(chan error, 1)
		go func() { ended <- lookUntil(ctx, ob, end) }()
	}
	res, err := s.offer(ctx, o)
	if err != nil {
		cancel()
	}
	if ended != nil {
		err = errors.Join(err, <-ended)
	} else if err == nil {
		err = errors.New("the load ended before its measured part began")
	}
	if err == nil {
		err = s.fit(res)
	}
	if err = errors.Join(err, before.err, after.err); err != nil {
		return err
	}
	out.Elapsed, out.Requests = res.Elapsed, res.Counts.Answered()
	if s.seen != nil { // users may stay long after what was looked at
		out.Elapsed, out.Requests = res.Window, res.Within+res.Carried
	}
	out.CPU = s.after.usage.CPU - s.before.usage.CPU
	out.Monitor = min(max(0, done-begun), out.CPU)
	out.Bytes = s.after.metrics[heapBytes] - s.before.metrics[heapBytes]
	out.Objects = s.after.metrics[heapObjects] - s.before.metrics[heapObjects]
	out.Truth = after.since(before, float64(out.Requests))
	return nil
}

// monitor is the CPU time so far of a thread that the observer does not see; 0 where
// it sees all, or the kernel does not tell.
func (s *session) monitor(ob observer) time.Duration {
	if _, ok := ob.(*profiler); !ok {
		return 0
	}
	used, err := bpf.SystemMonitor(s.proc.PID())
	if err != nil {
		return 0
	}
	return used
}

// lookUntil has a source look until then, if anything is left of it: on a busy
// machine even reading an arm's counters takes long.
func lookUntil(ctx context.Context, o observer, end time.Time) error {
	d := time.Until(end)
	if d < shortest {
		return fmt.Errorf("reading the arm left %s to profile it, less than %s", max(d, 0).Round(time.Millisecond), shortest)
	}
	return o.watch(ctx, d)
}

// shortest is the least time that a source looks.
const shortest = 100 * time.Millisecond

// The runtime's metrics of what was allocated since the process began.
const (
	heapBytes   = "/gc/heap/allocs:bytes"
	heapObjects = "/gc/heap/allocs:objects"
)

// fit refuses a load that does not say what the arm costs. That the generator
// was late does not matter here.
func (s *session) fit(res *load.Result) error {
	c := res.Counts
	switch {
	case s.before.err != nil || s.before.untold != nil:
		return fmt.Errorf("reading the arm before the load: %w", cmp.Or(s.before.err, s.before.untold))
	case s.after.err != nil || s.after.untold != nil:
		return fmt.Errorf("reading the arm after the load: %w", cmp.Or(s.after.err, s.after.untold))
	case c.Unverified > 0 && s.w.Flow == nil:
		return errors.New(unverified(&c))
	case c.Answered() == 0:
		return errors.New("no request was answered")
	}
	if failed := s.failed(&c); failed != "" {
		return errors.New(failed)
	}
	return s.proc.Failure(nil)
}

// allocRate is how many bytes an arm allocates to one allocation that is sampled
// while it is profiled: an eighth of the runtime's own, so that small ones show,
// for about a tenth of a microsecond a request.
const allocRate = 64 << 10

// sampled is the program with that rate, which Go programs read from their
// environment.
func sampled(p arm.Program) arm.Program {
	settings := os.Getenv("GODEBUG")
	for _, e := range p.Env {
		if v, ok := strings.CutPrefix(e, "GODEBUG="); ok {
			settings = v
		}
	}
	settings = strings.TrimPrefix(fmt.Sprintf("%s,memprofilerate=%d", settings, allocRate), ",")
	p.Env = append(slices.Clip(p.Env), "GODEBUG="+settings)
	return p
}
