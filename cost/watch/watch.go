// Package watch shows continuously what each part of the Go services of a machine spends,
// at a cost low enough to stay on.
//
// One sampler in the kernel serves all processes, at a low rate. At the end of every
// interval its stacks are charged to owners, service by service. If processes cannot be
// sampled, services' own profiles are polled, each for a tenth of the time.
//
// A service is named by the variable OTEL_SERVICE_NAME of its environment, or else by its
// program's file; in a pod, by namespace, workload and container. Processes of one name
// are one service. They may be replaced by other builds: a [Build] says which one was seen.
//
// An interval has few samples. So earlier intervals also count in deciding an owner's kind,
// and an interval's own figures have wide margins: add them up, as package total does.
//
// It measures its own use. Above its budget it samples less often, and its intervals are
// longer.
package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf"
	"github.com/tarehq/tare/cost/bpf/reply"
	"github.com/tarehq/tare/cost/capture"
	"github.com/tarehq/tare/cost/watch/past"
)

// What holds unless the options say otherwise.
const (
	DefaultEvery  = 10 * time.Second
	DefaultHz     = 19 // not in step with timers of 10 or 100 ms
	DefaultBudget = 0.005
)

// Options say what to watch, and how. What is watched is the sum of the first five.
type Options struct {
	PIDs   []int
	Groups []string // directories of control groups
	AllGo  bool     // every Go program of this machine, this one excluded
	Pods   bool     // every Go program in a pod of this node of Kubernetes, this one excluded
	URLs   []string // services' own profiles

	Logs string // where the kubelet has the logs of pods; "": pods.Logs

	Every   time.Duration // an interval, at least a second, longer to keep to the budget; 0: DefaultEvery
	Hz      int           // samples a second of each CPU; 0: DefaultHz
	NoCount bool          // requests are not counted
	Answers int           // of how many processes answers are timed, of those that use most CPU
	Budget  float64       // what it may use itself, as a share of the CPU that the services use, or of a fifth of a core if they use less; 0: DefaultBudget
}

// Build is a program of a service.
type Build struct {
	Service  string `json:"service"`
	ID       string `json:"build"`              // the beginning of the linker's build ID
	Revision string `json:"revision,omitempty"` // of version control; "" if the program does not say
	Go       string `json:"go,omitempty"`

	module, program string // paths
}

// Seen is what one build of a service did in an interval.
type Seen struct {
	Build
	PIDs     []int          `json:"pids,omitempty"`
	Pods     []string       `json:"pods,omitempty"` // namespace and name
	CPU      time.Duration  `json:"-"`
	Stacks   []cost.Stack   `json:"-"`
	Window   cost.Window    `json:"-"`
	Counted  time.Time      `json:"-"` // when the requests were that Window rests on, of several counts the earliest; zero: they were not
	Answers  []reply.Bucket `json:"-"` // nil: they were not timed
	Warnings []error        `json:"-"`

	uncounted bool // requests, of a process that used CPU
}

// Service is what a service did in an interval.
type Service struct {
	Name    string
	Builds  []Seen // by name of the build
	CPU     time.Duration
	Bill    *cost.Bill
	Rules   *cost.Rules // by which it was made
	Answers []reply.Bucket
}

// Own is what watching took in an interval.
type Own struct {
	CPU     float64 `json:"cpu"`     // of this process, as a share of one core
	Kernel  float64 `json:"kernel"`  // of the services' CPU time, for taking samples, likewise
	Memory  uint64  `json:"memory"`  // of this process, resident, in bytes
	Hz      int     `json:"hz"`      // at which was sampled
	Backoff int     `json:"backoff"` // how often the rate was halved, and the length of intervals doubled
	Lost    int     `json:"lost"`    // samples
}

// Share is all of it, as a share of one core.
func (o Own) Share() float64 { return o.CPU + o.Kernel }

// Interval is what was seen in one.
type Interval struct {
	Begun    time.Time
	Duration time.Duration
	Services []Service // by CPU, the largest first
	Own      Own
	Warnings []error
}

// Watcher watches until it is closed. It is not safe for concurrent use.
type Watcher struct {
	o       Options
	find    *finder
	sampler *bpf.Sampler // nil: no process is watched
	count   *counters
	answers *timers
	polls   []*poll
	past    map[string]*past.Chains // by service

	begun    time.Time
	meter    meter
	throttle throttle
	warnings []error
	ended    bool // nobody may call Next again
}

// check fills in defaults.
func (o *Options) check() error {
	o.Every, o.Hz, o.Budget = cmp.Or(o.Every, DefaultEvery), cmp.Or(o.Hz, DefaultHz), cmp.Or(o.Budget, DefaultBudget)
	switch {
	case len(o.PIDs)+len(o.Groups)+len(o.URLs) == 0 && !o.AllGo && !o.Pods:
		return errors.New("nothing to watch: neither a process, a control group, pods nor a URL")
	case len(o.PIDs)+len(o.Groups) > 0 && o.Pods:
		return errors.New("pods are watched alone, with all Go programs, or with URLs")
	case o.Every < time.Second || o.Every > time.Hour:
		return fmt.Errorf("an interval of %s: want at least 1s, at most 1h", o.Every)
	case o.Hz < 1 || o.Hz > bpf.DefaultHz:
		return fmt.Errorf("%d samples a second: want 1 to %d", o.Hz, bpf.DefaultHz)
	case o.Budget < 0 || o.Budget > 1:
		return fmt.Errorf("a budget of %v times what the services use: want more than 0, at most 1", o.Budget)
	}
	return nil
}

// Start begins to watch. If a process cannot be sampled here, and shows its own profiles on
// a port on which it listens, these are polled; Interval.Warnings say so.
func Start(ctx context.Context, o Options) (*Watcher, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	w := &Watcher{o: o, find: newFinder(o), past: map[string]*past.Chains{}, throttle: throttle{budget: o.Budget}}
	for _, url := range o.URLs {
		if err := w.addTarget(ctx, capture.Service{URL: url}, capture.Cheapest); err != nil {
			return nil, err
		}
	}
	if w.find.any() {
		if err := w.outside(ctx); err != nil {
			return nil, err
		}
	}
	w.meter.since(time.Now())
	w.begin(ctx)
	return w, nil
}

// outside begins to sample, or to poll instead.
func (w *Watcher) outside(ctx context.Context) error {
	if err := w.find.check(); err != nil {
		return err
	}
	err := w.sample()
	if err == nil || !errors.Is(err, cost.ErrNotSupported) || len(w.o.Groups) > 0 || w.o.AllGo || w.o.Pods {
		return err
	}
	for _, pid := range w.o.PIDs {
		if instead := w.addTarget(ctx, capture.Service{PID: pid}, capture.Own); instead != nil {
			return fmt.Errorf("%w; nor can its own profiles be had: %w", err, instead)
		}
	}
	w.warnings = append(w.warnings, fmt.Errorf("processes cannot be sampled from outside, so their own profiles are polled: %w", err))
	return nil
}

// sample starts a sampler at the rates of the moment.
func (w *Watcher) sample() (err error) {
	hz, switches, fetch := w.rates()
	w.sampler, err = bpf.Start(bpf.Options{Find: w.find.find, Hz: hz, Switches: switches, Fetch: fetch})
	return err
}

// rates are those of the moment. Services that answer hundreds of requests a second switch
// threads far more often than the clock finds them running, and what that takes is a small part
// of their CPU: a quarter of the rate is enough to share it out.
func (w *Watcher) rates() (hz, switches int, fetch time.Duration) {
	const often, seldom = 2 * time.Second, 4
	hz = w.throttle.hz(w.o.Hz)
	return hz, max(1, hz/seldom), w.throttle.every(min(often, w.o.Every))
}

// begin begins an interval.
func (w *Watcher) begin(ctx context.Context) {
	w.begun = time.Now()
	for _, p := range w.polls {
		p.begin(ctx)
	}
	if w.sampler == nil {
		return
	}
	all := w.find.instances()
	if !w.o.NoCount {
		if w.count == nil {
			w.count = newCounters(ctx)
		}
		w.count.begin(ctx, all, w.throttle.every(w.o.Every))
	}
	if w.o.Answers > 0 {
		if w.answers == nil {
			w.answers = &timers{most: w.o.Answers, of: map[*instance]*timer{}}
		}
		w.answers.begin(all)
	}
}

// errOver says that nothing is watched any more.
var errOver = errors.New("the watch is over")

// Next waits for the end of an interval and returns what was seen in it, and begins the
// next. It ends early, and for the last time, if the context is done; or, with an error
// that wraps [bpf.ErrEnded] beside what was seen, if all processes that were named have
// ended and nothing else is watched.
func (w *Watcher) Next(ctx context.Context) (*Interval, error) {
	if w.ended {
		return nil, errOver
	}
	over := w.wait(ctx)
	w.ended = over || ctx.Err() != nil
	i := &Interval{Begun: w.begun, Warnings: w.warnings}
	w.warnings = nil
	all, err := w.take(i)
	if err != nil {
		return nil, err
	}
	i.Duration = time.Since(i.Begun)
	for _, p := range w.polls {
		s, err := p.end(i.Duration)
		if err != nil {
			i.Warnings = append(i.Warnings, err)
			continue
		}
		all = append(all, s)
	}
	i.Services = w.bills(all)
	w.weigh(i)
	if over {
		return i, fmt.Errorf("nothing is left to watch: %w", bpf.ErrEnded)
	}
	if w.ended {
		return i, nil
	}
	if err := w.adapt(i); err != nil {
		return i, err
	}
	w.begin(ctx)
	return i, nil
}

// wait waits for the end of the interval. It reports whether nothing is left to watch.
func (w *Watcher) wait(ctx context.Context) (over bool) {
	const seldom = 2 * time.Second
	end := time.NewTimer(time.Until(w.begun.Add(w.throttle.every(w.o.Every))))
	defer end.Stop()
	look := time.NewTicker(w.throttle.every(min(seldom, w.o.Every))) // each waking costs, whatever it is for
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-end.C:
			return w.over()
		case <-look.C:
			if w.over() {
				return true
			}
		}
	}
}

// over reports whether all that is watched are processes that have ended.
func (w *Watcher) over() bool {
	return len(w.o.Groups) == 0 && !w.o.AllGo && !w.o.Pods && len(w.polls) == 0 && w.find.ended()
}

// take takes what was seen from outside.
func (w *Watcher) take(i *Interval) ([]Seen, error) {
	if w.sampler == nil {
		return nil, nil
	}
	var requests map[*instance]counted
	if w.count != nil {
		requests = w.count.end()
	}
	p, err := w.sampler.Take()
	if err != nil {
		return nil, fmt.Errorf("taking samples: %w", err)
	}
	i.Own.Lost = p.Lost
	i.Own.Kernel = p.Watching.Seconds() / p.Duration.Seconds()
	i.Warnings = append(i.Warnings, p.Warnings...)
	all := newGroups(p.Duration, i.Begun)
	for k := range p.Processes {
		if in := w.find.instance(&p.Processes[k]); in != nil {
			all.add(in, &p.Processes[k], requests[in])
			in.used = p.Processes[k].CPU
		}
	}
	if w.answers != nil {
		all.addAnswers(w.answers.end())
	}
	i.Warnings = append(i.Warnings, w.refusals()...)
	w.find.forget()
	return all.done(), nil
}

// refusals are why requests are not counted, or answers not timed.
func (w *Watcher) refusals() (all []error) {
	if w.count != nil {
		all = append(all, w.count.refusals()...)
	}
	if w.answers != nil {
		all = append(all, w.answers.refusals()...)
	}
	return all
}

// weigh fills in what watching took.
func (w *Watcher) weigh(i *Interval) {
	i.Own.CPU, i.Own.Memory = w.meter.since(time.Now())
	i.Own.Backoff = w.throttle.level
	if w.sampler != nil {
		i.Own.Hz = w.throttle.hz(w.o.Hz)
	}
}

// adapt has less sampled if watching took more than it may, and more once it is far below.
func (w *Watcher) adapt(i *Interval) error {
	var used time.Duration
	for k := range i.Services {
		used += i.Services[k].CPU
	}
	if w.sampler == nil || !w.throttle.note(i.Own.Share(), used.Seconds()/i.Duration.Seconds()) {
		return nil
	}
	return w.sampler.Pace(w.rates())
}

// Close ends the watching.
func (w *Watcher) Close() error {
	var errs []error
	if w.count != nil {
		errs = append(errs, w.count.close())
	}
	if w.answers != nil {
		errs = append(errs, w.answers.close())
	}
	for _, p := range w.polls {
		p.stop()
	}
	if w.sampler != nil {
		_, err := w.sampler.Stop()
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
