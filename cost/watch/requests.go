package watch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tarehq/tare/cost/bpf/probe"
	"github.com/tarehq/tare/cost/bpf/reply"
)

// mostCounted is of how many processes requests are counted, of those that use most CPU.
const mostCounted = 16

// spans are how many windows there are in the time for which requests are counted. They make
// a tenth of it, however many they are; each takes the CPU of placing a probe.
const spans = 4

// counted is how many requests a process answered within some windows, and with how much
// CPU.
type counted = probe.Counted

// counters count the requests of processes by probes, by turns.
type counters struct {
	price    probe.Price
	err      error // why nothing is counted
	of       map[*instance]*counter
	opened   int     // counters so far
	interval int     // that is counted in next
	news     []error // of processes whose requests cannot be counted
}

// counter counts those of one process.
type counter struct {
	target *probe.Target
	probe  *probe.Counter // nil: they cannot be counted
	cancel context.CancelFunc
	done   chan struct{} // nil: not under way
	nth    int           // of all that were opened
	tries  int           // intervals in which it has counted
	known  bool          // something was counted
	seen   probe.Counted
	err    error
}

// newCounters finds out what counting costs.
func newCounters(ctx context.Context) *counters {
	c := &counters{of: map[*instance]*counter{}}
	if c.price, c.err = probe.Calibrate(ctx); c.err != nil {
		c.news = append(c.news, fmt.Errorf("requests are not counted, so costs are per second: %w", c.err))
	}
	return c
}

// due reports whether requests are counted in an interval: in one of twelve, and in the first few
// until there was one. Placing a probe costs more than what it counts.
func (o *counter) due(interval int) bool {
	const one, eager = 12, 3
	return (interval+o.nth)%one == 0 || !o.known && o.tries < eager
}

// begin begins to count for a while, those processes that it is the turn of.
func (c *counters) begin(ctx context.Context, all []*instance, d time.Duration) {
	if c.err != nil {
		return
	}
	first, near := busiest(all, mostCounted)
	for in, one := range c.of {
		if !near[in] {
			one.close() // with a process its probes have gone
			delete(c.of, in)
		}
	}
	counted := 0
	for _, one := range c.of {
		if one.probe != nil {
			counted++
		}
	}
	for _, in := range first {
		if c.of[in] == nil && counted < mostCounted && ctx.Err() == nil { // a large program takes a second
			c.of[in] = c.open(in)
			counted++
		}
	}
	for _, one := range c.of {
		if one.probe != nil && one.due(c.interval) {
			one.tries++
			one.begin(ctx, d)
		}
	}
	c.interval++
}

// busiest are those of the processes, which are in order, that use most CPU, and those that
// are near: as long as one uses half as much as the last of these it stays, since to begin with
// another takes far more CPU than a count. As long as nothing is known of their CPU, there are
// none if there are more.
func busiest(all []*instance, most int) (first []*instance, near map[*instance]bool) {
	if len(all) > most && all[0].used == 0 {
		return nil, nil
	}
	first, near = all[:min(len(all), most)], map[*instance]bool{}
	for k, in := range all {
		near[in] = k < 2*most || 2*in.used >= first[most-1].used
	}
	return first, near
}

// open prepares to count those of a process.
func (c *counters) open(in *instance) *counter {
	one := &counter{nth: c.opened}
	c.opened++
	var err error
	if one.target, err = probe.Open(in.pid); err == nil {
		one.probe, err = one.target.NewCounter(c.price)
	}
	if err == nil {
		one.probe.Spans = spans
	}
	if err != nil {
		c.news = append(c.news, fmt.Errorf("requests of %s are not counted, so its costs are per second: %w", in.Service, errors.Join(err, one.close())))
	}
	return one
}

func (o *counter) begin(ctx context.Context, d time.Duration) {
	ctx, o.cancel = context.WithCancel(ctx)
	done := make(chan struct{})
	o.done = done
	go func() {
		defer close(done)
		o.seen, o.err = o.probe.Run(ctx, d)
	}()
}

// end returns what was counted. What went wrong with one process is told, and it is not
// tried again.
func (c *counters) end() map[*instance]counted {
	all := map[*instance]counted{}
	for in, one := range c.of {
		if one.done == nil {
			continue
		}
		one.cancel()
		<-one.done
		one.done = nil
		if one.err != nil {
			c.news = append(c.news, fmt.Errorf("requests of %s are no longer counted: %w", in.Service, errors.Join(one.err, one.close())))
			continue
		}
		all[in] = one.seen
		one.known = one.known || one.seen.Requests > 0
	}
	return all
}

// refusals are what is new of why requests are not counted.
func (c *counters) refusals() []error {
	news := c.news
	c.news = nil
	return news
}

// close takes a process's probes away.
func (o *counter) close() error {
	var errs []error
	if o.done != nil {
		o.cancel()
		<-o.done
		o.done = nil
	}
	if o.probe != nil {
		errs = append(errs, o.probe.Close())
	}
	if o.target != nil {
		errs = append(errs, o.target.Close())
	}
	o.probe, o.target = nil, nil
	return errors.Join(errs...)
}

func (c *counters) close() error {
	var errs []error
	for _, one := range c.of {
		errs = append(errs, one.close())
	}
	return errors.Join(errs...)
}

// timers time the answers of processes.
type timers struct {
	most int
	of   map[*instance]*timer
	news []error
}

// timer times those of one process.
type timer struct {
	watch *reply.Watch // nil: they cannot be timed
	seen  []reply.Bucket
}

// begin begins to time the answers of processes that are new, and ends with those that have
// gone.
func (t *timers) begin(all []*instance) {
	first, near := busiest(all, t.most)
	for in, one := range t.of {
		if !near[in] {
			one.close()
			delete(t.of, in)
		}
	}
	for _, in := range first {
		if t.of[in] != nil || len(t.of) >= t.most {
			continue
		}
		one := new(timer)
		var err error
		if one.watch, err = reply.Start(in.pid); err != nil {
			t.news = append(t.news, fmt.Errorf("answers of %s are not timed: %w", in.Service, err))
		}
		t.of[in] = one
	}
}

// end returns the answers since the last time.
func (t *timers) end() map[*instance][]reply.Bucket {
	all := map[*instance][]reply.Bucket{}
	for in, one := range t.of {
		if one.watch == nil {
			continue
		}
		now, err := one.watch.Read()
		if err != nil {
			t.news = append(t.news, fmt.Errorf("answers of %s: %w", in.Service, err))
			continue
		}
		all[in] = since(now.Times, one.seen)
		one.seen = now.Times
	}
	return all
}

// since is a distribution without what was in it before.
func since(now, before []reply.Bucket) []reply.Bucket {
	had := map[time.Duration]uint64{}
	for _, b := range before {
		had[b.From] = b.Count
	}
	more := []reply.Bucket{}
	for _, b := range now {
		if b.Count > had[b.From] {
			more = append(more, reply.Bucket{From: b.From, Below: b.Below, Count: b.Count - had[b.From]})
		}
	}
	return more
}

func (t *timers) refusals() []error {
	news := t.news
	t.news = nil
	return news
}

func (o *timer) close() error {
	if o.watch == nil {
		return nil
	}
	err := o.watch.Close()
	o.watch = nil
	return err
}

func (t *timers) close() error {
	var errs []error
	for _, one := range t.of {
		errs = append(errs, one.close())
	}
	return errors.Join(errs...)
}
