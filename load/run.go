package load

import (
	"context"
	"errors"
	"time"

	"github.com/tarehq/tare/load/internal/sys"
	"github.com/tarehq/tare/stats/hist"
)

// Run offers the load that o describes and returns what it measured.
//
// When ctx ends, so does the run: no request is due any more, those in flight
// have a second to be answered, and what was measured is returned with
// Result.Ended set and no error. Failing requests are counted and are no error
// either, but when not one that is measured was answered the result comes with an
// error that says why. Without a result the error tells what is wrong with o or this
// machine.
func Run(ctx context.Context, o Options) (*Result, error) {
	p, err := newPlan(&o)
	if err != nil {
		return nil, err
	}
	c := &conductor{plan: p}
	if err := c.conduct(ctx); err != nil {
		return nil, err
	}
	res := c.result(context.Cause(ctx))
	ends := res.Counts
	if ends.Scheduled == 0 {
		ends = res.WarmUp // then that is what there was
	}
	if ends.Answered() == 0 && res.Ended == "" {
		return res, errors.Join(errUnanswered, p.firstCause())
	}
	return res, nil
}

var errUnanswered = errors.New("no request was answered")

// driver is an engine. It drives the plan's requests to their ends, every one
// of them, and returns with the connections still open. An error means that
// nothing could be run at all. The plan tells it when to stop.
type driver func(p *plan) (closeAll func(), err error)

// period of looking at the recorders.
const tick = 250 * time.Millisecond

// conductor watches over a run from one goroutine while an engine drives it.
type conductor struct {
	plan    *plan
	marked  bool          // the measured part has begun
	cpu     time.Duration // of this process at its beginning; after its end, since then
	stopped bool          // this process was, and went on

	recent   []point // answers seen at the latest ticks
	response hist.Hist
	service  hist.Hist
}

// point is a count at a time.
type point struct {
	at int64
	n  uint64
}

// conduct runs the plan.
func (c *conductor) conduct(ctx context.Context) error {
	p := c.plan
	if err := p.resolve(ctx); err != nil {
		return err
	}
	sys.ReserveDescriptors(p.opts.Connections)
	continued, release := sys.Continued()
	defer release()
	p.start(nanotime())
	if p.opts.WarmUp == 0 {
		c.mark(true)
		p.start(nanotime()) // the mark may have taken its time
	}
	p.series = newSeries(p.opts.Slice)
	p.series.tell = p.opts.Sealed
	var closeAll func()
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		closeAll, err = p.drive(p)
	}()
	c.watch(ctx, done)
	if err != nil {
		return err
	}
	if now := nanotime(); !c.marked && now >= p.measure && !p.ended(p.measure) {
		c.mark(true) // over before the timer's turn had come
	}
	if c.marked {
		c.mark(false)
	}
	release() // what had this process go on has been told now
	c.stopped = len(continued) > 0
	closeAll()
	return nil
}

// mark notes the boundaries of the measured part.
func (c *conductor) mark(begin bool) {
	if f := c.plan.opts.Mark; f != nil && begin {
		f(true) // before our own reading: what it costs is not the load's
	}
	c.cpu = sys.CPUTime() - c.cpu
	if f := c.plan.opts.Mark; f != nil && !begin {
		f(false)
	}
	c.marked = true
}

// watch looks after a run until the engine is done.
func (c *conductor) watch(ctx context.Context, done <-chan struct{}) {
	p := c.plan
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	var boundary <-chan time.Time
	if !c.marked {
		boundary = time.After(time.Duration(p.measure - nanotime()))
	}
	cancelled := ctx.Done()
	for {
		select {
		case <-done:
			return
		case <-cancelled:
			p.interrupt(nanotime())
			cancelled = nil
		case <-boundary:
			if !p.ended(p.measure) {
				c.mark(true)
			}
		case <-ticker.C:
			c.collectSlices(nanotime())
		}
	}
}

// collectSlices collects the slices that have ended and reports progress.
func (c *conductor) collectSlices(now int64) {
	p := c.plan
	s := Snapshot{Elapsed: time.Duration(now - p.measure)}
	if p.planned != never {
		s.Total = time.Duration(p.planned - p.measure)
	}
	for _, r := range p.all() {
		r.Lock()
		r.settle(now)
		r.turn(now)
		r.Unlock()
	}
	p.series.seal(p.sliceAt(now))
	if p.opts.Progress == nil {
		return
	}
	c.fillCounts(&s, now)
	p.opts.Progress(s)
}

// fillCounts fills in what has been counted so far.
func (c *conductor) fillCounts(s *Snapshot, now int64) {
	c.response.Reset()
	c.service.Reset()
	var counts, warmUp Counts
	for _, r := range c.plan.all() {
		r.Lock()
		counts.add(&r.counts)
		warmUp.add(&r.warmUp)
		c.service.Merge(r.service)
		r.slice.addTo(&c.response, &c.service)
		r.Unlock()
	}
	c.plan.series.addTo(&c.response, &c.service)
	s.Response, s.Service = &c.response, &c.service
	s.Flight = int(c.plan.flight.Load())
	s.Counts = counts
	if s.Elapsed < 0 {
		s.Counts = warmUp
	}
	s.Rate = c.rate(point{now, counts.Answered() + warmUp.Answered()})
}

// rate is the number of answers a second over about the last second.
func (c *conductor) rate(now point) float64 {
	if len(c.recent) == 0 {
		c.recent = append(c.recent, point{at: c.plan.begin})
	}
	first := c.recent[0]
	if len(c.recent) >= int(time.Second/tick) {
		c.recent = append(c.recent[:0], c.recent[1:]...)
	}
	c.recent = append(c.recent, now)
	return float64(now.n-first.n) / time.Duration(now.at-first.at).Seconds()
}

// all is the recorders so far.
func (p *plan) all() []*recorder {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.recorders
}

// add adds d to c.
func (c *Counts) add(d *Counts) {
	c.Scheduled += d.Scheduled
	for i, n := range d.Status {
		c.Status[i] += n
	}
	c.Refused += d.Refused
	c.Reset += d.Reset
	c.Timeout += d.Timeout
	c.Short += d.Short
	c.Malformed += d.Malformed
	c.Dropped += d.Dropped
	c.Unverified += d.Unverified
}
