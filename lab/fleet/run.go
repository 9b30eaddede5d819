package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tarehq/tare/lab/fleet/wire"
	"github.com/tarehq/tare/load"
)

// stopWithin is more than an agent takes to give its result once its load is to end.
const stopWithin = 5 * time.Second

// lead is how long before its beginning a load is announced, at least.
const lead = 150 * time.Millisecond

// Bounds beyond which an agent's share does not count.
const (
	mostLate = 50 * time.Millisecond // of its start
	mostBusy = 0.80                  // of its threads' time
)

// run is one load on its way.
type run struct {
	fleet   *Fleet
	o       load.Options
	jobs    []*wire.Job
	start   int64 // of the warm-up, by the coordinator's clock
	measure int64 // of the measured part
	merged  *merger
	marked  bool // Mark was told of the beginning
}

// Run makes a load with all agents and returns what they measured. Of o, Progress is called
// once a second, Mark and Sealed as load.Run does, and CPUs do not matter. When ctx ends, so
// does the load: what was measured is returned, Result.Ended says why. Without a report the
// error wraps ErrLost, ErrNotAllowed, ErrVersion, ErrBusy, ErrUnshared or what load.Run failed with.
func (f *Fleet) Run(ctx context.Context, o load.Options) (*Report, error) {
	r := &run{fleet: f, o: o, merged: newMerger(o, len(f.members))}
	for k := range f.members {
		j, err := shareOut(o, k, len(f.members), f.o.CA)
		if err != nil {
			return nil, err
		}
		r.jobs = append(r.jobs, j)
	}
	rep, err := r.conduct(ctx)
	if rep == nil {
		f.Close() // whatever the agents do, they end it; the next load connects again
	}
	return rep, err
}

func (r *run) conduct(ctx context.Context) (*Report, error) {
	f := r.fleet
	jobs := map[*member]*wire.Job{}
	for k, m := range f.members {
		jobs[m] = r.jobs[k]
	}
	if err := f.each(func(m *member) error { return f.prepare(ctx, m, jobs[m]) }); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if r.o.WarmUp == 0 {
		r.mark(true) // it may take its time
	}
	r.schedule()
	if err := f.each(func(m *member) error {
		return lostUnless(m.link.Send(&wire.Message{Kind: wire.KindStart, At: r.start + m.offset}))
	}); err != nil {
		return nil, err
	}
	results, err := r.gather(ctx)
	switch {
	case err != nil && ctx.Err() != nil && !errors.Is(err, ErrLost):
		return nil, context.Cause(ctx) // agents were told to stop before their loads began
	case err != nil:
		return nil, err
	}
	if r.marked {
		r.mark(false)
	}
	return r.report(ctx, results)
}

func (r *run) mark(begin bool) {
	r.marked = begin
	if r.o.Mark != nil {
		r.o.Mark(begin)
	}
}

// prepare gives an agent its job, and compares clocks.
func (f *Fleet) prepare(ctx context.Context, m *member, j *wire.Job) error {
	if err := f.connect(ctx, m); err != nil {
		return lostUnless(err)
	}
	if _, err := exchange(m.link, &wire.Message{Kind: wire.KindJob, Job: j}, wire.KindReady); err != nil {
		return lostUnless(err)
	}
	return lostUnless(f.compareClocks(m))
}

// lostUnless says that an agent is lost, unless the error has a reason of the agent's own.
func lostUnless(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	for _, reason := range wire.Reasons() {
		if errors.Is(err, reason) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", ErrLost, err)
}

// schedule fixes when the load begins: when the announcement has reached all agents.
func (r *run) schedule() {
	ahead := lead
	for _, m := range r.fleet.members {
		ahead = max(ahead, 4*m.rtt)
	}
	r.start = r.fleet.clock() + int64(ahead)
	r.measure = r.start + int64(r.o.WarmUp)
}

// gathered is what became of an agent's share.
type gathered struct {
	member int
	result *load.Result
	text   string // load.Run's error beside the result
	err    error  // instead of it
}

// gather waits for all agents' results. The first agent that gives none ends the wait.
func (r *run) gather(ctx context.Context) ([]gathered, error) {
	f := r.fleet
	came := make(chan gathered, len(f.members))
	for k, m := range f.members {
		go func() { came <- r.follow(k, m) }()
	}
	results := make([]gathered, len(f.members))
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	var begins <-chan time.Time
	if r.o.WarmUp > 0 {
		begins = time.After(time.Duration(r.measure - f.clock()))
	}
	ended := ctx.Done()
	overdue := r.overdue()
	var first error
	fail := func(err error) {
		if first == nil {
			first = err
			f.hangUp() // the others end, and so do those who follow them
		}
	}
	for left := len(results); left > 0; {
		select {
		case g := <-came:
			left--
			results[g.member] = g
			if g.err != nil {
				fail(g.err)
			}
		case <-begins:
			begins = nil
			r.mark(true)
		case <-ticker.C:
			if first == nil {
				r.merged.progress(time.Duration(f.clock() - r.measure))
			}
		case <-ended:
			ended, begins = nil, nil
			overdue = time.After(stopWithin)
			if err := f.each(func(m *member) error { return lostUnless(m.link.Send(&wire.Message{Kind: wire.KindStop})) }); err != nil {
				fail(err)
			}
		case <-overdue:
			fail(fmt.Errorf("%w: %s: no result within %v after the load was to end", ErrLost, r.waitedFor(results), stopWithin))
		}
	}
	if begins != nil && first == nil { // over before the timer's turn had come
		r.mark(true)
	}
	return results, first
}

// patience is how long an agent waits for answers at the end of a load that names no time for one.
const patience = 30 * time.Second

// overdue is when an agent that gives no result is lost, although it gives signs of life. A load
// of a number of requests has no such moment.
func (r *run) overdue() <-chan time.Time {
	length := r.o.Duration
	if s := r.o.Schedule; s != nil {
		if whole, ends := s.Length(); ends && (length == 0 || whole < length) {
			length = whole
		}
	}
	if length == 0 {
		return nil
	}
	wait := patience
	if r.o.Timeout > 0 {
		wait = r.o.Timeout
	}
	return time.After(time.Duration(r.measure-r.fleet.clock()) + length + wait + stopWithin)
}

// waitedFor names the agents that have not said how their loads ended.
func (r *run) waitedFor(results []gathered) string {
	var names []string
	for k, g := range results {
		if g.result == nil && g.err == nil {
			names = append(names, r.fleet.members[k].name)
		}
	}
	return strings.Join(names, ", ")
}

// hangUp closes the connections, which ends what is received from them.
func (f *Fleet) hangUp() {
	for _, m := range f.members {
		m.link.Close()
	}
}

// follow takes what an agent sends until it has the result.
func (r *run) follow(k int, m *member) gathered {
	g := gathered{member: k}
	for g.result == nil && g.err == nil {
		reply, err := m.link.Receive()
		if errors.Is(err, io.EOF) {
			err = errors.New("it closed the connection")
		}
		if err != nil {
			g.err = r.lost(m, err)
			break
		}
		switch reply.Kind {
		case wire.KindPart:
			// A slice cannot be of a time that has not come; clocks may differ a little.
			if err := r.merged.add(k, reply, time.Duration(r.fleet.clock()-r.measure)+time.Second); err != nil {
				g.err = r.lost(m, err)
			}
			// The process is awake now, and the agent hears from it without another wake-up. If
			// this fails the link is closed, which the next receipt tells.
			_ = m.link.Sign()
		case wire.KindResult:
			base := r.fleet.base.Add(time.Duration(-m.offset))
			if g.result, err = wire.UnpackResult(reply, base); err != nil {
				g.err = r.lost(m, err)
			}
			g.text = reply.Text
		case wire.KindFail:
			g.err = fmt.Errorf("agent %s: %s", m.name, reply.Text)
		default:
			g.err = r.lost(m, fmt.Errorf("got message %q, which an agent does not send now", reply.Kind))
		}
	}
	return g
}

// lost says when in the load an agent was lost.
func (r *run) lost(m *member, err error) error {
	at := time.Duration(r.fleet.clock() - r.start).Round(100 * time.Millisecond)
	return fmt.Errorf("%w: %s, %v after the start: %w", ErrLost, m.name, at, err)
}
